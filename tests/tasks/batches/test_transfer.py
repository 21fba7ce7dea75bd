"""Copies to a CUDA device, one batch ahead: which calls of torch's are made, and in what order."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from textmill.data.block_batches import BlockBatch
from textmill.data.column_batch import ColumnBatch
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.tasks.batches.device import Transfer
from textmill.training.sources import Groups

IDS = torch.tensor([[5, 3, 0], [6, 7, 3]])
BATCHES = {
    "pairs": Seq2SeqBatch.from_padded(IDS, IDS, pad_idx=0),
    "columns": ColumnBatch(columns={"text": IDS}, lengths={"text": torch.tensor([2, 3])}),
    "block": BlockBatch(
        inputs=IDS, targets=IDS, counted=IDS > 0, begins=True, rows=np.arange(1),
        row_lengths=np.arange(1), row_of=np.arange(5),
    ),
}  # fmt: skip


@pytest.fixture
def calls(monkeypatch):
    """Stands for CUDA's streams, and for its memory by the device without numbers."""
    found: list[str] = []

    class Stream:
        def __init__(self, device="cuda"):
            self.name = "own" if device != "step" else "step's"

        def record_event(self):
            found.append(f"event of {self.name}")
            return SimpleNamespace(of=self.name)

        def wait_event(self, event):
            found.append(f"{self.name} waits for {event.of}")

    @contextmanager
    def entered(stream):
        found.append(f"on {stream.name}")
        yield

    to = Tensor.to

    def noted(tensor, device, *, non_blocking=False):
        found.append(f"copy {non_blocking}")
        return to(tensor, "meta")

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("step"))
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: (found.append("pin"), tensor)[1])
    monkeypatch.setattr(Tensor, "to", noted)
    monkeypatch.setattr(Tensor, "record_stream", lambda tensor, s: found.append(f"kept {s.name}"))
    return found


@pytest.mark.parametrize(("name", "count"), [("pairs", 4), ("columns", 2), ("block", 3)])
def test_a_batch_is_pinned_copied_apart_and_kept_for_the_step(calls, name, count):
    transfer, batch = Transfer("cuda:0"), BATCHES[name]
    sent = transfer.send(batch)
    copied = ["pin"] * count + ["on own"] + ["copy True"] * count + ["event of own"]
    assert calls == copied
    received = transfer.receive(sent)
    assert calls[len(copied) :] == ["step's waits for own", *["kept step's"] * count]
    assert type(received) is type(batch)
    assert len(received) == len(batch)


def test_the_next_batch_is_copied_before_the_step_begins_and_not_waited_for(calls):
    class Data:
        epoch = 0

        def __iter__(self):
            for number in range(2):
                calls.append(f"batch {number}")
                yield BATCHES["columns"]

        def state_dict(self):
            return {}

    groups = Groups(Data(), size=1, device="cuda:0")
    next(groups)
    order = [each for each in calls if each.startswith(("batch", "event", "step's"))]
    assert order == ["batch 0", "event of own", "step's waits for own", "batch 1", "event of own"]


def test_what_a_recipe_makes_itself_is_left_to_its_task(calls):
    transfer = Transfer("cuda:0")
    for batch in ({"x": IDS}, (IDS,), None):
        assert transfer.receive(transfer.send(batch)) is batch
    assert not calls


def test_on_a_cpu_nothing_is_done(calls):
    transfer = Transfer("cpu")
    assert transfer.receive(transfer.send(BATCHES["pairs"])) is BATCHES["pairs"]
    assert not calls


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device here")
@pytest.mark.parametrize("name", BATCHES)
def test_what_arrives_on_a_gpu_is_what_was_sent(name):
    transfer, batch = Transfer("cuda:0"), BATCHES[name]
    here = transfer.receive(transfer.send(batch)).to("cpu")
    for field in ("source", "target", "inputs", "targets", "counted"):
        if getattr(batch, field, None) is not None:
            assert torch.equal(getattr(here, field), getattr(batch, field))
    if name == "columns":
        assert torch.equal(here["text"], batch["text"])
