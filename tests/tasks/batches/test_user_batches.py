"""Ready batches: what they draw by chance is the same after a resume in any epoch."""

import json
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from textmill.runtime.seeds import HostRandom
from textmill.tasks.batches.user_batches import ReadyBatches
from textmill.training.sources import Groups


def loader():
    """Shuffles and, in its batches, augments with torch's global generator."""
    noise = lambda rows: torch.stack(rows) + torch.rand(len(rows), 1)  # noqa: E731
    return DataLoader(torch.arange(11.0)[:, None], batch_size=2, shuffle=True, collate_fn=noise)


class InPlace:
    """Goes on from its last order, by all three global generators."""

    def __init__(self):
        self.items = list(range(6))

    def __iter__(self):
        random.shuffle(self.items)
        for item in self.items:
            yield torch.tensor([item + np.random.random(), random.random()]) + torch.rand(1)  # noqa: NPY002


class OwnGenerator:
    """Its permutations come from a generator that is its own."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(5)

    def __iter__(self):
        yield from torch.randperm(6, generator=self.generator)[:, None]


class Stateful:
    """Knows its place in an order that is drawn at each epoch's start."""

    def __init__(self):
        self.order, self.at = [], 0

    def __iter__(self):
        if not self.at:
            self.order = torch.randperm(6).tolist()
        while self.at < len(self.order):
            self.at += 1
            yield torch.tensor([self.order[self.at - 1]]) + torch.rand(1)
        self.at = 0

    def state_dict(self):
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state):
        self.order, self.at = state["order"], state["at"]


def groups(source):
    """Reads one batch ahead, as the trainer does."""
    return Groups(ReadyBatches(source(), list, seed=3), size=1)


def steps(data, count):
    """Batches of so many steps, which draw from all global generators, as augmentation does."""
    for _ in range(count):
        yield next(data)[0]
        torch.rand(3), random.random(), np.random.random()  # noqa: NPY002


def seed_all(seed):
    torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)  # noqa: NPY002


@pytest.mark.parametrize("source", [loader, InPlace, OwnGenerator, Stateful])
def test_a_run_resumed_in_any_epoch_has_the_batches_of_the_undisturbed_one(source):
    seed_all(0)
    undisturbed, wanted, places = groups(source), [], []
    while undisturbed.epochs < 3:
        place = undisturbed.state_dict(), HostRandom().state_dict()
        places.append(json.loads(json.dumps(place, default=dict)))  # as a file has it
        wanted += steps(undisturbed, 1)
    for step, (place, host) in enumerate(places):
        seed_all(9)
        resumed = groups(source)
        resumed.load_state_dict(place)
        HostRandom().load_state_dict(host)
        found = list(steps(resumed, len(wanted) - step))
        assert all(map(torch.equal, wanted[step:], found)), step


def test_epochs_and_seeds_differ():
    first = torch.cat(list(ReadyBatches(loader(), list, seed=1)))
    batches = ReadyBatches(loader(), list, seed=1)
    again, later = torch.cat(list(batches)), torch.cat(list(batches))
    other = torch.cat(list(ReadyBatches(loader(), list, seed=2)))
    assert torch.equal(first, again)
    orders = {tuple(found.int().flatten().tolist()) for found in (first, later, other)}
    assert len(orders) == 3


def test_what_others_draw_from_torch_does_not_depend_on_the_batches():
    torch.manual_seed(4)
    wanted = torch.rand(2)
    torch.manual_seed(4)
    list(ReadyBatches(loader(), list))
    assert torch.equal(torch.rand(2), wanted)


def test_a_source_that_fails_leaves_the_generator_of_torch_as_it_was():
    def broken():
        torch.rand(3)
        yield 1
        raise ValueError("no more")

    torch.manual_seed(4)
    with pytest.raises(ValueError, match="no more"):
        list(ReadyBatches(iter(broken()), list))
    found = torch.rand(2)
    torch.manual_seed(4)
    assert torch.equal(found, torch.rand(2))
