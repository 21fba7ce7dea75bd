"""``python -m tools.corpus``: writes the corpus that textmill ships."""

import bz2
from importlib.resources import files
from pathlib import Path

from textmill.recipes.corpus.parts import FILE
from textmill.runtime.files import write_atomic
from tools.corpus.generate import table

write_atomic(Path(str(files("textmill.recipes.corpus") / FILE)), bz2.compress(table()))
