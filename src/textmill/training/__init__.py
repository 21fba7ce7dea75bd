"""Training: the loop (``loop.py`` is the page), optimizers, schedules, selection, intervals."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.training.linear_trainer import LinearTrainer as LinearTrainer
    from textmill.training.loop import Trainer as Trainer
    from textmill.training.observers import Callback as Callback
    from textmill.training.optimizers import SGD as SGD
    from textmill.training.optimizers import Adafactor as Adafactor
    from textmill.training.optimizers import Adam as Adam
    from textmill.training.optimizers import AdamW as AdamW
    from textmill.training.optimizers import Muon as Muon
    from textmill.training.optimizers import Optimizer as Optimizer
    from textmill.training.progress import Every as Every
    from textmill.training.progress import Progress as Progress
    from textmill.training.progress import Until as Until
    from textmill.training.schedules import Constant as Constant
    from textmill.training.schedules import Cosine as Cosine
    from textmill.training.schedules import Exponential as Exponential
    from textmill.training.schedules import InverseSquareRoot as InverseSquareRoot
    from textmill.training.schedules import Linear as Linear
    from textmill.training.schedules import Plateau as Plateau
    from textmill.training.schedules import Schedule as Schedule
    from textmill.training.selection import Selection as Selection

__getattr__, __dir__ = on_first_use(__name__)
