"""Gradients that are summed over the ranks: what is sent, in which order, and when."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from textmill.errors import UserError
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.training import gradient_sums
from textmill.training.gradient_sums import GradientSums


class TwoAlike(Ranks):
    """Two ranks of which the other has the gradients of this one; what is sent is written down."""

    def __init__(self, log):
        self.env, self.log = Env(world_size=2), log

    def begin_sum_(self, tensor):
        self.log.append(tensor.numel())
        return lambda: tensor.mul_(2).shape.numel() and None


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(gradient_sums, "GROUP", 1)  # a group a parameter
    return []


def layers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4, bias=False))


def test_what_is_complete_is_sent_before_the_backward_pass_ends(log):
    module = layers()
    sums = GradientSums(TwoAlike(log), list(module.parameters()))
    hidden = module[0](torch.ones(1, 2))
    hidden.register_hook(lambda grad: log.append("first layer"))
    with sums.last_backward():
        module[2](module[1](hidden)).sum().backward()
    assert log == [12, "first layer", 3, 6]
    sums.receive(sums.send())
    assert log == [12, "first layer", 3, 6], "nothing is sent twice"


def test_sums_are_those_of_all_ranks(log):
    module, alone = layers(), layers()
    sums = GradientSums(TwoAlike(log), list(module.parameters()))
    rows = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    for _ in range(2):  # a second step begins anew
        module.zero_grad()
        alone.zero_grad()
        module(rows[:1]).sum().backward()  # a batch that is accumulated is not sent
        with sums.last_backward():
            module(rows[1:]).sum().backward()
        sums.receive(sums.send())
        (2 * alone(rows).sum()).backward()
        for ours, theirs in zip(module.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
    assert log == [12, 3, 6] * 2


def test_a_rank_without_a_row_sends_the_same(log):
    module = layers()
    sums = GradientSums(TwoAlike(log), list(module.parameters()))
    assert sums.send() == [False, False, False]
    sums.receive([True, False, True])
    assert log == [12, 3, 6]
    grads = [p.grad for p in module.parameters()]
    assert grads[0] is not None
    assert not grads[0].any()
    assert grads[1] is None, "no rank's rows have used it: the optimizer leaves it as it is"


def test_a_parameter_that_is_reached_twice_is_refused(log):
    module = nn.Linear(2, 2)
    sums = GradientSums(TwoAlike(log), list(module.parameters()))
    rows = torch.ones(1, 2, requires_grad=True)
    twice = module(checkpoint(module, rows, use_reentrant=True))
    with pytest.raises(UserError, match="use_reentrant=False"), sums.last_backward():
        twice.sum().backward()
