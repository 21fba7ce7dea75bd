"""``python -m tools.corpus``: writes the corpus that weft ships."""

import bz2
from importlib.resources import files
from pathlib import Path

from tools.corpus.generate import table
from weft.recipes.corpus.parts import FILE
from weft.runtime.files import write_atomic

write_atomic(Path(str(files("weft.recipes.corpus") / FILE)), bz2.compress(table()))
