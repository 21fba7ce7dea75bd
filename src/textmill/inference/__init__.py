"""After training: load a run, predict."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.inference.load import Predictor as Predictor
    from textmill.inference.load import load_run as load_run
    from textmill.inference.load_encoder import load_encoder as load_encoder

__getattr__, __dir__ = on_first_use(__name__)
