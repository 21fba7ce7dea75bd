"""Ranks that each hold a share of the weights: what is saved, gone on with, loaded and refused."""

import json

import pytest
import torch

import textmill
from tests.runs.many_ranks import largest_difference, lines_of
from tests.runs.tiny import run_folder, write_recipe
from tests.training.bench import differences
from textmill.checkpoint.parts import load_part
from textmill.cli.main import main

SLOW = pytest.mark.slow
WORDS = [
    "tiny.py", "model.dropout=0", "trainer.report_every=6", "trainer.accumulate=1",
    "trainer.save_every=3",
]  # fmt: skip
FSDP = "trainer.data_parallelism=fsdp"
STOPPING = """
import os, signal
from textmill.training import Callback


class Stopping(Callback):
    def step(self, progress):
        if progress.steps == int(os.environ.get("STOP", 0)):
            os.kill(os.getpid(), signal.SIGTERM)


def callbacks(env):
    return [Stopping()]
"""


def recipe_in(folder, more=STOPPING):
    write_recipe(folder)
    (folder / "tiny.py").write_text((folder / "tiny.py").read_text() + more)
    return folder


@pytest.fixture(scope="module")
def undisturbed(runs, tmp_path_factory):
    """What one process measures."""
    folder = recipe_in(tmp_path_factory.mktemp("whole"))
    codes, said = runs.run(folder, "train", *WORDS, size=1)
    assert codes == [0], said
    return folder


@pytest.fixture
def stopped(runs, tmp_path):
    """A run of two ranks that a signal ended at step 11."""
    folder = recipe_in(tmp_path / "stopped")
    codes, said = runs.run(folder, "train", *WORDS, FSDP, size=2, env={"STOP": "11"})
    assert 143 in codes, said
    return run_folder(folder)


def whole_valid(folder):
    return [line for line in lines_of(folder) if line["split"] == "valid"]


@pytest.mark.parametrize(
    ("then", "shares"),
    [
        (1, "ddp"),
        *(pytest.param(*p, marks=SLOW) for p in [(3, "fsdp"), (2, "ddp"), (1, "fsdp")]),
    ],
)
def test_a_run_in_shares_goes_on_with_any_number_of_ranks(runs, stopped, undisturbed, then, shares):
    files = {path.name for path in stopped.glob("checkpoints/step-*/*.safetensors")}
    assert files == {"model.safetensors", "optimizer.safetensors"}  # as one process saves it
    folder = stopped.parents[2]
    words = [*WORDS, f"trainer.data_parallelism={shares}"]
    codes, said = runs.run(folder, "train", *words, size=then)
    assert codes == [0] * then, said
    assert "Resumed at step 11." in said[0]
    assert largest_difference(whole_valid(undisturbed), whole_valid(folder)) < 1e-6
    ours, theirs = (
        load_part(newest(run), "optimizer") for run in (stopped, run_folder(undisturbed))
    )
    for number, state in theirs["state"].items():
        for name, value in state.items():
            assert torch.allclose(ours["state"][number][name], value, rtol=1e-3, atol=1e-6)


def newest(run):
    return max(run.glob("checkpoints/step-*"))


def test_two_ranks_go_on_bitwise(runs, stopped, tmp_path):
    """Two ranks that were stopped, beside two that were not."""
    whole = recipe_in(tmp_path / "two")
    for folder in (stopped.parents[2], whole):
        codes, said = runs.run(folder, "train", *WORDS, FSDP, size=2)
        assert codes == [0, 0], said
    for part in ("model", "optimizer"):
        ours, theirs = (load_part(newest(run), part) for run in (stopped, run_folder(whole)))
        assert differences(ours, theirs) == []


def test_a_run_in_shares_is_loaded_and_verified(stopped, capsys):
    assert textmill.load(stopped, allow_code=True)("the cat sees tea") is not None
    assert main(["runs", "verify", str(stopped)]) == 0
    assert "0 damaged" in capsys.readouterr().out


@SLOW
def test_weights_of_shares_begin_another_run(runs, stopped, tmp_path):
    folder = recipe_in(tmp_path / "other")
    words = [*WORDS, FSDP, f"trainer.initialize={stopped}", "optimizer.lr=1e-9"]
    codes, said = runs.run(folder, "train", *words, "trainer.max_steps=1", size=2)
    assert codes == [0, 0], said
    best = json.loads((stopped / "checkpoints/best.json").read_text())["folder"]
    ours, theirs = (
        load_part(path, "model")
        for path in (newest(run_folder(folder)), stopped / "checkpoints" / best)
    )
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in theirs)


def test_an_optimizer_that_looks_at_whole_parameters_is_refused(runs, tmp_path):
    folder = recipe_in(tmp_path)
    codes, said = runs.run(folder, "train", *WORDS, FSDP, "optimizer.type=muon", size=1)
    assert codes == [2], said
    assert "With trainer.data_parallelism=fsdp a rank has a share of each parameter, and" in said[0]
    assert not list(folder.glob("runs/tiny/*/checkpoints"))


OUTSIDE = """
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)


def module(model, tokenizer):
    module = model.build(tokenizer=tokenizer)
    module.more = nn.ModuleList([Block()])
    norm = next(part for part in module.modules() if isinstance(part, nn.LayerNorm))
    norm.register_forward_hook(lambda *given: given[-1] + module.more[0].inner.weight.sum())
    return module
"""


@SLOW
def test_a_block_that_is_used_without_a_call_is_refused(runs, tmp_path):
    codes, said = runs.run(recipe_in(tmp_path, OUTSIDE), "train", *WORDS, FSDP, size=2)
    assert 2 in codes, said
    assert "something uses them outside of a call" in "".join(said)
    assert "Call the block, or use trainer.data_parallelism=ddp." in "".join(said)
