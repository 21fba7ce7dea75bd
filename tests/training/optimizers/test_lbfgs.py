"""L-BFGS: the minimum it finds, and what it decays by."""

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.training import LBFGS, Linear, Trainer


def steps(config, module, loss, count):
    optimizer = config.build(module=module)
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
    return optimizer


def test_it_finds_the_ridge_regression():
    """Whose closed form is the oracle; the condition of the matrix is 600."""
    torch.manual_seed(0)
    rows = torch.randn(200, 12) * torch.logspace(0, 1.2, 12)
    wanted = rows @ torch.randn(12, 1) + 0.1 * torch.randn(200, 1)
    module = nn.Linear(12, 1, bias=False)
    nn.init.zeros_(module.weight)
    config = LBFGS.Config(weight_decay=2 / 200)
    steps(config, module, lambda: (module(rows) - wanted).square().mean(), 60)
    x, y = rows.double(), wanted.double()
    best = torch.linalg.solve(x.T @ x + torch.eye(12, dtype=torch.float64), x.T @ y)
    torch.testing.assert_close(module.weight.double().T, best, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_where_the_rate_falls_the_last_step_is_no_overshot_one(seed):
    """Nobody sees the slope after the last step; on the way some steps are five times too far."""
    torch.manual_seed(seed)
    share = 1 / torch.arange(1, 501).float() ** 0.8  # as of words in texts
    rows = nn.functional.normalize((torch.rand(500, 500) < share).float())
    labels = (rows @ torch.randn(500) + 0.05 * torch.randn(500)).sign()
    module, losses = nn.Linear(500, 1), []
    optimizer = LBFGS.Config(weight_decay=1e-5).build(module=module)
    schedule = Linear.Config(hold=0.8).build()
    for step in range(1, 62):
        optimizer.zero_grad(set_to_none=True)
        loss = (1 - labels * module(rows).squeeze(1)).clamp(min=0).square().mean()
        loss.backward()
        losses.append(loss.item() + 0.5e-5 * module.weight.square().sum().item())
        optimizer.param_groups[0]["lr"] = schedule(min(step, 60), 60)
        optimizer.step()
    assert losses[60] < 1.01 * min(losses)
    assert losses[60] < 0.1 * losses[0]


def test_the_decay_is_that_of_the_rows():
    build = LBFGS.Config().build
    groups = build(module=nn.Linear(2, 2), train_data=range(50)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.04]
    own = LBFGS.Config(weight_decay=0.5).build(module=nn.Linear(2, 2), train_data=range(50))
    assert own.param_groups[0]["weight_decay"] == 0.5


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (None, "there is no train_data"),
        (iter("ab"), "it does not say how many it has"),
        ([], "it does not say how many it has"),
    ],
)
def test_a_decay_that_nobody_can_say_is_refused(data, found):
    with pytest.raises(UserError) as error:
        LBFGS.Config().build(module=nn.Linear(2, 2), train_data=data)
    assert str(error.value) == (
        f"optimizer.weight_decay is null, which is 2 over the rows of train_data, but {found}. "
        "Set optimizer.weight_decay, as 0.002 for a thousand rows."
    )


@pytest.mark.parametrize("setting", [{"accumulate": 1}, {"clip_norm": 1.0}])
def test_steps_of_some_rows_are_refused_before_the_first(bench, setting):
    trainer = {"accumulate": "epoch", "clip_norm": None, **setting}
    optimizer = LBFGS.Config(weight_decay=0.1)
    with pytest.raises(UserError) as error:
        bench.but(optimizer=optimizer).make(**trainer)
    assert str(error.value) == (
        "optimizer.type=lbfgs compares the gradients of the same rows. Set "
        "trainer.accumulate=epoch and trainer.clip_norm=null; they are "
        f"{trainer['accumulate']} and {trainer['clip_norm']}."
    )


def test_rows_that_cannot_change_are_not_gone_on_with():
    with pytest.raises(UserError, match=r"each step is of the same\. Leave it out"):
        Trainer.Config(accumulate="epoch", on_nonfinite="skip")
