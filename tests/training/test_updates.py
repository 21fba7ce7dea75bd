"""An optimizer that needs more than one gradient says so itself: the loop knows nothing of it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.training.bench import differences, outcome, prove

WITHOUT_TESTS = {"valid_data": None, "test_data": None}


class Sharp(torch.optim.SGD):
    """Two passes (Foret et al. 2021): the gradient where the loss nearby is the highest."""

    radius = 0.05

    def gradient_of_step(self, passes):
        first = passes.gradient()
        before = [p.detach().clone() for p in first.parameters]
        with torch.no_grad():
            for p, g in zip(first.parameters, first.tensors, strict=True):
                p.add_(g * (self.radius * first.factor / first.norm))
        second = passes.gradient()
        with torch.no_grad():
            torch._foreach_copy_(list(first.parameters), before)
        return second


class Curved(torch.optim.SGD):
    """A second backward pass of another loss now and then, as of labels that are drawn (Sophia)."""

    def gradient_of_step(self, passes):
        gradient = passes.gradient()
        if passes.step % 2:
            twice = passes.gradient(lambda batch: doubled(batch.loss()))
            self.seen = [*getattr(self, "seen", []), (twice.norm / gradient.norm).item()]
        return gradient


def doubled(loss):
    return replace(loss, total=2 * loss.total)


def by(kind, **attributes):
    """An optimizer ingredient of a class."""

    def build(*, module, task):
        made = kind(task.parameter_groups(), lr=0.1)
        vars(made).update(attributes)
        return made

    return SimpleNamespace(build=build)


@pytest.fixture
def plain(bench):
    trainer = bench.but(folder=bench.folder / "plain", optimizer=by(torch.optim.SGD)).make()
    trainer.fit()
    return outcome(trainer)


@pytest.mark.slow
def test_two_passes_of_no_radius_are_the_plain_run(bench, plain):
    """Each pass of a step has the same dropout, and the first leaves nothing behind."""
    trainer = bench.but(optimizer=by(Sharp, radius=0.0)).make()
    trainer.fit()
    assert (
        differences({**plain, "tested weights": 0}, {**outcome(trainer), "tested weights": 0}) == []
    )


def test_the_second_gradient_is_that_of_the_weights_moved_uphill(bench):
    trainer = bench.but(optimizer=by(Sharp), dropout=0.0, **WITHOUT_TESTS).make()
    (group,) = trainer.data.groups(1, None)
    parameters = list(trainer.task.module.parameters())

    def gradient():
        losses = [batch.loss() for batch in group.batches]
        mean = sum(each.total for each in losses) / sum(each.count for each in losses)
        return torch.autograd.grad(mean, parameters)

    trainer.task.module.train()
    start = [p.detach().clone() for p in parameters]
    first = gradient()
    norm = torch.nn.utils.get_total_norm(first)
    with torch.no_grad():
        torch._foreach_add_(parameters, [g * (0.05 / norm) for g in first])
    wanted = gradient()
    with torch.no_grad():
        torch._foreach_copy_(parameters, start)
    found = trainer.updates.gradient([group], step=1)
    assert differences(start, [p.detach() for p in parameters]) == []
    for p, g in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(p.grad * found.factor, g)


def test_a_second_backward_pass_does_not_touch_the_first_gradient(bench, plain):
    trainer = bench.but(optimizer=by(Curved)).make()
    trainer.fit()
    assert trainer.optimizer.seen == pytest.approx([2.0] * 6)
    assert differences(plain, outcome(trainer)) == []


def test_a_killed_run_of_two_passes_goes_on_bitwise(bench):
    prove(bench.but(optimizer=by(Sharp), **WITHOUT_TESTS), (7,))
