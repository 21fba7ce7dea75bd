"""Learning-rate schedules: pure functions of progress, so there is no schedule state to save."""

from weft.training.schedules.decay import Constant as Constant
from weft.training.schedules.decay import Cosine as Cosine
from weft.training.schedules.decay import Exponential as Exponential
from weft.training.schedules.decay import InverseSquareRoot as InverseSquareRoot
from weft.training.schedules.decay import Linear as Linear
from weft.training.schedules.decay import OneCycle as OneCycle
from weft.training.schedules.decay import Plateau as Plateau
from weft.training.schedules.decay import Polynomial as Polynomial
from weft.training.schedules.decay import Step as Step
from weft.training.schedules.schedule import Schedule as Schedule
