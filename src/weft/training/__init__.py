"""Training: the loop (``loop.py`` is the page), optimizers, schedules, selection, intervals."""

from weft.training.loop import Trainer as Trainer
from weft.training.observers import Callback as Callback
from weft.training.optimizers import LAMB as LAMB
from weft.training.optimizers import LBFGS as LBFGS
from weft.training.optimizers import SGD as SGD
from weft.training.optimizers import Adafactor as Adafactor
from weft.training.optimizers import Adam as Adam
from weft.training.optimizers import AdamW as AdamW
from weft.training.optimizers import Lion as Lion
from weft.training.optimizers import Muon as Muon
from weft.training.progress import Every as Every
from weft.training.progress import Progress as Progress
from weft.training.progress import Until as Until
from weft.training.schedules import Constant as Constant
from weft.training.schedules import Cosine as Cosine
from weft.training.schedules import Exponential as Exponential
from weft.training.schedules import InverseSquareRoot as InverseSquareRoot
from weft.training.schedules import Linear as Linear
from weft.training.schedules import OneCycle as OneCycle
from weft.training.schedules import Plateau as Plateau
from weft.training.schedules import Polynomial as Polynomial
from weft.training.schedules import Schedule as Schedule
from weft.training.schedules import Step as Step
from weft.training.selection import Selection as Selection
