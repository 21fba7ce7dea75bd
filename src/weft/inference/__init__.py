"""After training: load a run, predict."""

from weft.inference.load import load_run as load_run
from weft.inference.predictor import Predictor as Predictor
