"""Learning-rate schedules: pure functions of progress, so there is no schedule state to save."""

from weft.training.schedules.constant import Constant as Constant
from weft.training.schedules.cosine import Cosine as Cosine
from weft.training.schedules.exponential import Exponential as Exponential
from weft.training.schedules.inverse_square_root import InverseSquareRoot as InverseSquareRoot
from weft.training.schedules.linear import Linear as Linear
from weft.training.schedules.one_cycle import OneCycle as OneCycle
from weft.training.schedules.plateau import Plateau as Plateau
from weft.training.schedules.polynomial import Polynomial as Polynomial
from weft.training.schedules.schedule import Schedule as Schedule
from weft.training.schedules.step import Step as Step
