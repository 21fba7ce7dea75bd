"""Optimizers as components, on one base that says what learns how fast."""

from weft.training.optimizers.lamb import LAMB as LAMB
from weft.training.optimizers.lbfgs import LBFGS as LBFGS
from weft.training.optimizers.lion import Lion as Lion
from weft.training.optimizers.muon import Muon as Muon
from weft.training.optimizers.optimizer import Optimizer as Optimizer
from weft.training.optimizers.torch_optimizers import SGD as SGD
from weft.training.optimizers.torch_optimizers import Adafactor as Adafactor
from weft.training.optimizers.torch_optimizers import Adam as Adam
from weft.training.optimizers.torch_optimizers import AdamW as AdamW
