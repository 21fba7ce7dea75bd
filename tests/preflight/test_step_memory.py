"""What a step holds, from a part of a batch, against the whole batch; the optimizer's state."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.bench import Rows, sentences
from textmill.data.batching import Batching, largest_batch, plan_epoch
from textmill.preflight.step_memory import (
    LiveBytes,
    largest_rows,
    optimizer_bytes,
    step_bytes,
    weight_bytes,
)
from textmill.recipes import registries
from textmill.runtime.seeds import HostRandom
from textmill.tasks import Translation


def whole(trainer):
    """The most that a step on the whole largest batch holds, counted."""
    epoch, task = trainer.data.data.batches, trainer.task
    batch = epoch.gathered(largest_rows(epoch))
    task.module.train()
    with LiveBytes() as live:
        if trainer.config.accumulate > 1:
            for parameter in task.module.parameters():
                parameter.grad = torch.zeros_like(parameter)
            live.history.clear()
        task.training_step(batch).total.backward()
        peak = live.peak
    task.module.zero_grad(set_to_none=True)
    return peak


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("rows", [3, 30, 400])
def test_a_part_of_a_batch_tells_what_the_whole_holds(bench, rows, accumulate):
    data = (sentences() * 12)[:rows]
    trainer = bench.but(train_data=lambda: Rows(data, batch_size=rows)).make(accumulate=accumulate)
    found = step_bytes(
        trainer.task,
        trainer.data.data.batches,
        numbers=trainer.updates.autocast,
        accumulate=accumulate,
    )
    assert found.whole == pytest.approx(whole(trainer), rel=0.1)
    assert found.tried <= found.whole + weight_bytes(trainer.task.module)


class Counting(Translation):
    """Keeps count of its steps, and draws from every generator."""

    def training_step(self, batch):
        self.steps = getattr(self, "steps", 0) + 1
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002  # the global one
        return super().training_step(batch)


def test_a_trial_leaves_no_trace(bench):
    trainer = bench.but(task_class=Counting).make()
    before = copy.deepcopy(trainer.task.module.state_dict())
    states = HostRandom().state_dict(), torch.get_rng_state().tolist()
    step_bytes(trainer.task, trainer.data.data.batches, numbers=trainer.updates.autocast)
    assert states == (HostRandom().state_dict(), torch.get_rng_state().tolist())
    assert not hasattr(trainer.task, "steps")
    assert all(p.grad is None for p in trainer.task.module.parameters())
    assert all(torch.equal(v, before[n]) for n, v in trainer.task.module.state_dict().items())
    assert trainer.data.data.state_dict() == {"epoch": 0, "position": 0}


@pytest.mark.parametrize("name", sorted(registries.optimizers.names()))
def test_the_state_of_every_optimizer_is_known_before_its_first_step(name):
    module = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 7), nn.LayerNorm(7))
    config = registries.optimizers.get(name).Config(weight_decay=0.0)
    optimizer = config.build(module=module)
    before = copy.deepcopy(module.state_dict())
    found = optimizer_bytes(optimizer)
    assert not optimizer.state
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    module(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    tensors = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
    assert found == sum(t.numel() * t.element_size() for t in tensors)
    assert optimizer_bytes(optimizer) == found


class Searching:
    """An optimizer of one's own, whose step asks for the loss again."""

    def __init__(self, parameters):
        self.state, self.param_groups = {}, [{"params": list(parameters)}]

    def step(self, closure):
        closure()


def test_an_optimizer_that_wants_a_closure_is_taken_for_adam():
    assert optimizer_bytes(Searching(nn.Linear(3, 2).parameters())) == 2 * 8 * 4


def test_the_largest_batch_has_the_most_cells_and_of_those_the_longest_rows():
    lengths = [np.array([50, 10, 10, 10, 10, 10, 3]), np.array([50, 10, 10, 10, 10, 10, 3])]
    plan = plan_epoch(lengths, Batching(max_tokens=100), seed=1, epoch=0)
    assert plan[largest_batch(lengths, plan)].tolist() == [0]
