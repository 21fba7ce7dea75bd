"""``max_tokens=auto``: what is found, that it is found once, and what it is refused for."""

import copy
import json
import logging
import random

import numpy as np
import pytest
import torch

from tests.runs.tiny import write_recipe
from tests.training.bench import Rows, sentences
from textmill.config.planning.session import Session
from textmill.data import BatchedRows
from textmill.preflight import max_tokens
from textmill.preflight.max_tokens import largest_that_fits, settle_max_tokens
from textmill.runs.load_run import evaluate
from textmill.runs.train import train
from textmill.runtime.devices import Env
from textmill.runtime.seeds import HostRandom
from textmill.tasks import Translation


class Counting(Translation):
    """Keeps count of its steps, draws from every generator, and has room for so many cells."""

    room = 10**9

    def training_step(self, batch, examples=()):
        if batch.source.numel() + batch.target.numel() > self.room:
            raise torch.OutOfMemoryError
        self.steps = getattr(self, "steps", 0) + 1
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002  # the global one
        return super().training_step(batch, examples)


@pytest.mark.parametrize(
    ("room", "most", "found"),
    [
        (10**9, 5000, 5000),  # so that an epoch has batches
        (2100, 10**9, 2048),
        (1024, 10**9, 1024),
        (700, 10**9, 512),
        (63, 10**9, None),
    ],
)
def test_a_batch_doubles_until_memory_runs_out_and_leaves_no_trace(
    bench, monkeypatch, room, most, found
):
    monkeypatch.setattr(Counting, "room", room)
    data = sentences() * 60
    made = bench.but(train_data=lambda: Rows(data, max_tokens=99), task_class=Counting).make()
    task, epoch = made.task, made.data.data.batches
    before = copy.deepcopy(task.module.state_dict())
    states = HostRandom().state_dict(), torch.get_rng_state().tolist()
    assert found == largest_that_fits(
        task, made.data.data, numbers=made.updates.arithmetic.autocast, checkpointing=False,
        besides=10**6, most=most,
    )  # fmt: skip
    assert states == (HostRandom().state_dict(), torch.get_rng_state().tolist())
    assert not hasattr(task, "steps")
    assert all(p.grad is None for p in task.module.parameters())
    assert all(torch.equal(v, before[n]) for n, v in task.module.state_dict().items())
    assert made.data.data.state_dict() == {"epoch": 0, "position": 0}
    assert epoch.batching.max_tokens == 99


def session(bench, **data):
    """What a run has before its trainer."""
    trainer = bench.make()
    made = {"task": trainer.task, "optimizer": trainer.optimizer, "env": Env()}
    return Session({}, {**made, **data})


def test_without_auto_nothing_is_looked_for(bench):
    assert settle_max_tokens(session(bench, train_data=[{"source": "a"}]), {}, seed=1) is None


def test_all_data_takes_what_is_found_for_train_data_or_what_is_recorded(bench):
    def rows():
        return BatchedRows(sentences(), max_tokens="auto")

    for recorded, wanted in ((None, 1024), (50, 50)):
        train_data, valid_data = rows(), rows()
        made = session(bench, train_data=train_data, valid_data=valid_data)
        assert settle_max_tokens(made, {"ema": 0.9}, seed=1, recorded=recorded) == wanted
        assert train_data.batching.max_tokens == valid_data.batching.max_tokens == wanted


def test_a_run_keeps_what_it_found_and_goes_on_with_it(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    logging.getLogger("textmill").propagate = True
    monkeypatch.setattr(max_tokens, "CELLS", 90)
    words = ["reporters.console=false", "reporters.html=false", "trainer.accumulate=1"]
    words += ["test_data=null", "train_data.batch_size=null", "train_data.max_tokens=auto"]
    write_recipe(tmp_path)
    parts = train("tiny.py", [*words, "trainer.max_steps=1"], run_dir="parts").folder
    assert "max_tokens=auto: batches of 90 cells." in caplog.messages
    assert json.loads((parts / "run.json").read_text())["max_tokens"] == 90
    settings, _, built = (parts / "config.yaml").read_text().partition("built:")
    assert settings.count("max_tokens: auto") == 2
    assert built.count("max_tokens: 90") == 2
    train(parts, ["trainer.max_steps=3", *words[:2]], allow_code=True)
    assert "max_tokens=auto: batches of 90 cells, as when this run began." in caplog.messages
    whole = train("tiny.py", [*words, "trainer.max_steps=3"], run_dir="whole").folder
    weights = "checkpoints/step-00000003/model.safetensors"
    assert (parts / weights).read_bytes() == (whole / weights).read_bytes()
    assert evaluate(whole, device="cpu")["valid_data"].values["loss"] > 0
