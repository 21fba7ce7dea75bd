"""After training: load a run, predict."""

from weft.inference.load import Predictor as Predictor
from weft.inference.load import load_run as load_run
