"""Sizes that no machine has are refused by their numbers, before any memory is taken."""

import pytest
import torch
from torch import nn

import textmill
from tests.hostile.small_run import words
from textmill.errors import UserError
from textmill.preflight.resource_estimate import within_memory


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"model.embedding.dim": 10**12}, " x 1,000,000,000,000 numbers takes "),
        ({"model.embedding.dim": 10**20}, " x 100,000,000,000,000,000,000 numbers takes "),
        ({"model.hidden": f"[{10**12}]"}, "a table of 1,000,000,000,000 x 8 numbers takes "),
        ({"tokenizer": f"{{type: fitted, vocab_size: {10**10}}}"}, "vocab_size must be at most "),
        (
            {"tokenizer": f"{{type: fitted, kind: sentencepiece, vocab_size: {10**10}}}"},
            "vocab_size must be at most 4,194,304, but is 10,000,000,000.",
        ),
    ],
)
def test_a_recipe_that_is_larger_than_memory_is_refused(tmp_path, setting, message):
    with pytest.raises(UserError) as caught:
        textmill.train("classification/averaging", words(**setting), run_dir=tmp_path / "run")
    assert message in str(caught.value)
    if "table" in str(caught.value):
        assert str(caught.value).endswith(
            "Make the model smaller: its sizes are settings of model."
        )
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_many_parameters_that_are_larger_together_are_refused():
    with within_memory(10_000):
        made = nn.ModuleList(nn.Linear(10, 10, bias=False) for _ in range(25))
    assert sum(p.numel() * 4 for p in made.parameters()) == 10_000
    message = r"^the parameters up to Linear.weight take 0.0 MB of memory, "
    with pytest.raises(UserError, match=message), within_memory(9_999):
        nn.ModuleList(nn.Linear(10, 10, bias=False) for _ in range(25))
    nn.Linear(1000, 1000)  # afterwards nothing is looked at


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn])
def test_a_table_is_measured_however_it_is_made(make):
    with within_memory(8_000):
        assert make(2000).numel() == make((20, 100)).numel() == 2000
        assert make(size=(10, 10), dtype=torch.float64).numel() == 100
        assert make(10**6, device="meta").is_meta
        for sizes in ([2001], [(20, 101)], [20, 101], [torch.Size([2001])]):
            with pytest.raises(UserError, match=r"^a table of "):
                make(*sizes)
