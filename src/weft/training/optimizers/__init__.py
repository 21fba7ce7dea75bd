"""Optimizers as components: one file an algorithm, on one base that says what learns how fast."""

from weft.training.optimizers.adafactor import Adafactor as Adafactor
from weft.training.optimizers.adam import Adam as Adam
from weft.training.optimizers.adam import AdamW as AdamW
from weft.training.optimizers.lamb import LAMB as LAMB
from weft.training.optimizers.lbfgs import LBFGS as LBFGS
from weft.training.optimizers.lion import Lion as Lion
from weft.training.optimizers.muon import Muon as Muon
from weft.training.optimizers.optimizer import Optimizer as Optimizer
from weft.training.optimizers.sgd import SGD as SGD
