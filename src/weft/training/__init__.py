"""Training: the loop (``loop.py`` is the page), optimizers, schedules, selection, intervals."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.training.loop import Trainer as Trainer
    from weft.training.observers import Callback as Callback
    from weft.training.optimizers.foreach_optimizer import LAMB as LAMB
    from weft.training.optimizers.foreach_optimizer import Lion as Lion
    from weft.training.optimizers.lbfgs import LBFGS as LBFGS
    from weft.training.optimizers.muon import Muon as Muon
    from weft.training.optimizers.optimizer import Optimizer as Optimizer
    from weft.training.optimizers.torch_optimizers import SGD as SGD
    from weft.training.optimizers.torch_optimizers import Adafactor as Adafactor
    from weft.training.optimizers.torch_optimizers import Adam as Adam
    from weft.training.optimizers.torch_optimizers import AdamW as AdamW
    from weft.training.progress import Every as Every
    from weft.training.progress import Progress as Progress
    from weft.training.progress import Until as Until
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
    from weft.training.selection import Selection as Selection

__getattr__, __dir__ = on_first_use(__name__)
