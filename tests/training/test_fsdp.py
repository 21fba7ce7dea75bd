"""Which optimizers can move a share of a parameter."""

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.training import registries
from textmill.training.fsdp import check_elementwise

MOVE_SHARES = {"adam", "adamw", "sgd"}


@pytest.mark.parametrize("name", sorted(registries.optimizers.names()))
def test_every_optimizer_is_taken_or_refused(name):
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = registries.optimizers.get(name).Config().build(module=module)
    if name in MOVE_SHARES:
        check_elementwise(optimizer)
        return
    with pytest.raises(UserError, match=f"{type(optimizer).__name__} looks at whole ones"):
        check_elementwise(optimizer)


def test_an_optimizer_of_ones_own_says_that_it_moves_shares():
    class Signs(torch.optim.Optimizer):
        elementwise = True

    check_elementwise(Signs(nn.Linear(1, 1).parameters(), {}))
    Signs.elementwise = False
    with pytest.raises(UserError, match="Signs looks at whole ones"):
        check_elementwise(Signs(nn.Linear(1, 1).parameters(), {}))


def moved(kind, parts, **settings):
    """A parameter after three steps, moved in parts of some rows each."""
    torch.manual_seed(0)
    whole, gradients = torch.randn(7, 3), torch.randn(3, 7, 3)
    shares = [nn.Parameter(part.clone()) for part in whole.split(parts)]
    optimizer = kind(shares, **settings)
    for gradient in gradients:
        for share, part in zip(shares, gradient.split(parts), strict=True):
            share.grad = part.clone()
        optimizer.step()
    return torch.cat([share.detach() for share in shares])


@pytest.mark.parametrize("name", sorted(MOVE_SHARES))
def test_shares_move_as_the_whole_does(name):
    """Also where a rank has no row."""
    config = registries.optimizers.get(name).Config(weight_decay=0.1)

    def make(shares):
        return config.make([{"params": shares, "lr": 0.1}], nn.Linear(1, 1))

    assert torch.allclose(moved(make, [7]), moved(make, [4, 3, 0]), rtol=1e-6, atol=0)
