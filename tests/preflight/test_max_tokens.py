"""``max_tokens=auto``: what is found, that it is found once, and what it is refused for."""

import json
import logging

import numpy as np
import pytest
import torch

from tests.runs.tiny import write_recipe
from tests.training.bench import Rows, sentences
from textmill.config.planning.session import Session
from textmill.data import BatchedRows, Batching, EpochBatches, Seq2SeqBatch
from textmill.errors import UserError
from textmill.preflight import max_tokens
from textmill.preflight.max_tokens import Trials, largest_that_pays, settle_max_tokens
from textmill.preflight.step_memory import largest_rows, middle_rows, step_bytes
from textmill.runs.load_run import evaluate
from textmill.runs.train import train
from textmill.runtime import memory
from textmill.runtime.devices import Env
from textmill.text import Ragged


class Faked:
    """A machine where so many cells fit, and whose rate grows up to so many cells."""

    def __init__(self, fitting, best, *, runs_out=10**9):
        self.fitting, self.best, self.runs_out, self.tried = fitting, best, runs_out, []

    def fits(self, number):
        self.tried.append(number)
        return number <= self.fitting

    def rate(self, number):
        assert number <= self.fitting, "nothing is run that does not fit"
        return 0.0 if number > self.runs_out else float(min(number, self.best))


@pytest.mark.parametrize(
    ("trials", "most", "found"),
    [
        (Faked(10**9, 10_000), 10**9, 8192 * 2),  # 16,384 has 1.2 times the tokens of 8,192
        (Faked(10**9, 8192), 10**9, 8192),
        (Faked(10**9, 10**9), 5000, 5000),  # so that an epoch has batches
        (Faked(10**9, 1), 10**9, 1024),
        (Faked(6000, 10**9), 10**9, 5632),
        (Faked(700, 10**9), 10**9, 640),
        (Faked(1024, 10**9), 10**9, 1024),
        (Faked(63, 10**9), 10**9, None),
        (Faked(10**9, 10**9, runs_out=3000), 10**9, 2048),
    ],
)
def test_a_batch_doubles_while_it_fits_and_pays(trials, most, found):
    assert largest_that_pays(trials, most=most) == found
    assert len(trials.tried) < 16


def trials_of(trainer, room, **settings):
    return Trials(
        trainer.task,
        trainer.data.data.batches,
        numbers=lambda: trainer.updates.autocast,
        room=lambda device: room,
        **settings,
    )


def test_the_largest_batch_of_what_is_found_fits_into_the_room_and_a_little_more_does_not(bench):
    data = sentences() * 60
    trainer = bench.but(train_data=lambda: Rows(data, max_tokens=2048)).make()
    epoch = trainer.data.data.batches

    def holds(number):
        return step_bytes(
            trainer.task, epoch.with_max_tokens(number), numbers=trainer.updates.autocast
        )

    room = int((holds(1700).whole + 50_000) / max_tokens.USED)
    trials = trials_of(trainer, room, besides=50_000)
    found = max_tokens._between(trials, 1024, 4096)
    assert 1500 <= found <= 1800
    assert holds(found).whole <= trials.limit < holds(int(1.25 * found)).whole
    assert trials.rate(found) > 0
    assert trainer.data.data.state_dict() == {"epoch": 0, "position": 0}
    assert epoch.batching.max_tokens == 2048


def test_a_device_whose_memory_runs_out_does_not_fit(bench, monkeypatch):
    trainer = bench.but(train_data=lambda: Rows(sentences(), max_tokens=99)).make()
    trials = trials_of(trainer, 10**9)
    assert trials.fits(64)

    def full(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(max_tokens, "step_bytes", full)
    monkeypatch.setattr(max_tokens, "step_without_update", full)
    assert not trials.fits(64)
    assert trials.rate(64) == 0


def session(bench, **data):
    """What a run has before its trainer."""
    trainer = bench.make()
    made = {"task": trainer.task, "optimizer": trainer.optimizer, "env": Env()}
    return Session({}, {**made, **data})


def test_without_auto_nothing_is_looked_for(bench):
    assert settle_max_tokens(session(bench, train_data=[{"source": "a"}]), {}, seed=1) is None


def test_all_data_takes_what_is_found_for_train_data_or_what_is_recorded(bench, monkeypatch):
    def rows():
        return BatchedRows(sentences(), max_tokens="auto")

    monkeypatch.setattr(max_tokens, "largest_that_pays", lambda trials, most: 77)
    for recorded, wanted in ((None, 77), (50, 50)):
        train_data, valid_data = rows(), rows()
        made = session(bench, train_data=train_data, valid_data=valid_data)
        assert settle_max_tokens(made, {"ema": 0.9}, seed=1, recorded=recorded) == wanted
        assert train_data.batching.max_tokens == valid_data.batching.max_tokens == wanted


READY = [Seq2SeqBatch.from_padded(torch.full((2, 5), 7), torch.full((2, 5), 7), pad_idx=0)]


class OwnRows(Rows):
    """Rows of a recipe's own that cannot take a number."""


def test_what_auto_cannot_be_found_for_is_refused(bench, monkeypatch):
    auto = BatchedRows(sentences(), max_tokens="auto")
    with pytest.raises(UserError) as caught:
        settle_max_tokens(session(bench, train_data=READY, valid_data=auto), {}, seed=1)
    assert str(caught.value) == (
        "valid_data: max_tokens=auto is what is found for train_data, whose max_tokens is not "
        "auto. Set that to auto too, or give a number."
    )
    given = session(bench, train_data=BatchedRows(sentences(), max_tokens=300), valid_data=auto)
    assert settle_max_tokens(given, {}, seed=1) == 300
    assert given.get("valid_data").batching.max_tokens == 300
    auto = BatchedRows(sentences(), max_tokens="auto")
    own = OwnRows(sentences(), max_tokens="auto")
    with pytest.raises(UserError) as caught:
        settle_max_tokens(session(bench, train_data=own), {}, seed=1, recorded=50)
    assert str(caught.value) == (
        "train_data is a OwnRows with max_tokens=auto, but without a method "
        "take_max_tokens(number). Add it, or give a number."
    )
    made = session(bench, train_data=auto)
    monkeypatch.setattr(memory, "host_room", lambda: 1000)
    with pytest.raises(UserError) as caught:
        settle_max_tokens(made, {}, seed=1)
    assert str(caught.value) == (
        "train_data.max_tokens=auto: not even batches of 64 cells fit into the memory there is on "
        "cpu; the longest row alone, 0 from 0, has 34. Take a smaller model, or shorter rows."
    )
    monkeypatch.setattr(memory, "host_room", lambda: None)
    with pytest.raises(UserError) as caught:
        settle_max_tokens(made, {}, seed=1)
    assert str(caught.value) == (
        "max_tokens=auto needs to know how much memory there is, and cpu does not say. Give a "
        "number."
    )
    task = made.get("task")
    monkeypatch.setattr(task, "batches", lambda data, *, train, seed: READY)
    with pytest.raises(UserError) as caught:
        settle_max_tokens(made, {}, seed=1)
    assert str(caught.value) == (
        "train_data.max_tokens=auto is found on rows, but this task makes batches of its own of "
        "them (list). Give a number."
    )


def test_a_run_keeps_what_it_found_and_goes_on_with_it(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    logging.getLogger("textmill").propagate = True
    numbers = iter([90, 90])
    monkeypatch.setattr(max_tokens, "largest_that_pays", lambda trials, most: next(numbers))
    words = ["reporters.console=false", "reporters.html=false", "trainer.accumulate=1"]
    words += ["test_data=null", "train_data.batch_size=null", "train_data.max_tokens=auto"]
    monkeypatch.chdir(write_recipe(tmp_path))
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


def test_one_long_row_does_not_stand_for_the_batches():
    column = Ragged.from_lists([[1] * length for length in [*range(5, 40), 4000] * 1])
    batching = Batching(max_tokens=200, shuffle=True)
    epoch = EpochBatches({"source": column}, batching, lambda rows: rows, seed=1)
    assert largest_rows(epoch).tolist() == [35]
    rows = middle_rows(epoch)
    assert len(rows) > 1
    assert 35 not in rows
    alone = EpochBatches(
        {"source": column}, batching, lambda rows: rows, seed=1, rows=np.array([35])
    )
    assert middle_rows(alone).tolist() == [0]
