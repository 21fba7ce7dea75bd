"""What the tests save, and a process that saves until it is killed."""

import itertools
import json

import torch

from textmill.checkpoint import Checkpoints
from textmill.checkpoint.state import join_state, split_state
from textmill.checkpoint.tensors import read_tensors, tensors_size, write_tensors
from textmill.runtime.disk import HashingFile


class Part:
    """A tensor and a number that belong together: weight == step everywhere."""

    def __init__(self, step=0, size=300):
        self.step = step
        self.weight = torch.full((size,), float(step))

    def state_dict(self):
        return {"step": self.step, "weight": self.weight}

    def load_state_dict(self, state):
        self.step, self.weight = state["step"], state["weight"]


def _write_text(folder):
    (folder / "tokenizer.json").write_text('{"type": "words", "size": 12}')


def save(store, step):
    return store.save(step, {"model": Part(step), "optimizer": Part(step)}, write_text=_write_text)


def verify(path):
    return Checkpoints(path.parent).verify(path)


def through_disk(state, folder):
    """The state as it comes back from a file of tensors and a text."""
    tensors, plain = split_state(state)
    path = folder / "part.safetensors"
    with HashingFile(path) as file:
        write_tensors(file, tensors)
    assert path.stat().st_size == tensors_size(tensors) == file.size
    return join_state(read_tensors(path.read_bytes()), json.loads(json.dumps(plain)))


def keep_saving(folder, tell):
    """Saves step after step from the last one there on; tells where it starts, and of one save."""
    torch.set_num_threads(1)
    store = Checkpoints(folder, keep=2)
    parts = {"model": Part(0), "optimizer": Part(0)}
    start = store.restore(parts) or 0
    for part in parts.values():
        assert part.step == start
        assert torch.equal(part.weight, torch.full((300,), float(start)))
    tell.send(start)
    for step in itertools.count(start + 1):
        save(store, step)
        if step == start + 1:
            tell.send(step)
        if step % 3 == 0:
            store.mark_best(step)
