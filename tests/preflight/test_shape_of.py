"""A module without memory: its shapes, and how little it takes to know them."""

import subprocess
import sys

PROGRAM = """
import sys
from types import SimpleNamespace
from textmill.preflight.loadable import shape_of
from textmill.models.layers.positions import SinusoidalPositions
from textmill.models.tagger import Tagger
tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0, unk_idx=1))
given = {"tokenizer": tokenizer, "labels": ["O", "B-x", "I-x"]}
module = shape_of(lambda: Tagger.Config(crf=True).build(**given))
assert shape_of(lambda: SinusoidalPositions(8, max_length=12))
print(next(module.parameters()).device, [m for m in ("torch._dynamo",) if m in sys.modules])
"""


def test_it_is_built_without_torchs_compiler():
    # Importing the compiler takes longer than all else that loading a small model does.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "meta []\n"
