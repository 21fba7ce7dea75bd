"""A module without memory: its shapes, and how little it takes to know them."""

import subprocess
import sys

import torch
from torch import nn

from textmill.preflight.loadable import shape_of

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


def test_numbers_are_drawn_where_there_is_memory():
    def build():
        linear = nn.Linear(3, 4)
        linear.weight.data.normal_()
        nn.init.trunc_normal_(linear.bias)
        kept = nn.init.normal_(torch.empty(9, device="cpu"))
        assert kept.unique().numel() == 9
        return linear

    module = shape_of(build)
    assert module is not None
    assert {name: (p.shape, p.is_meta) for name, p in module.named_parameters()} == {
        "weight": ((4, 3), True),
        "bias": ((4,), True),
    }
    assert nn.init.normal_(torch.empty(9)).unique().numel() == 9
