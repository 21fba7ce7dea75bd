"""After training: load a run, predict."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.inference.load import Predictor as Predictor
    from weft.inference.load import load_run as load_run
    from weft.inference.load_encoder import load_encoder as load_encoder

__getattr__, __dir__ = on_first_use(__name__)
