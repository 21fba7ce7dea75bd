"""L-BFGS: the minimum it finds, what it decays by, and a run that is killed."""

import numpy as np
import pytest
import torch
from torch import nn

import weft
from weft.errors import UserError
from weft.training import LBFGS


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


@pytest.mark.parametrize("seed", range(5))
def test_no_step_is_far_worse_than_the_one_before(seed):
    """A last step is seen by nobody: it must not be one that overshot by far."""
    torch.manual_seed(seed)
    rows, labels = torch.randn(80, 30), torch.randn(80).sign()
    module = nn.Linear(30, 1)
    losses = []

    def loss():
        found = (1 - labels * module(rows).squeeze(1)).clamp(min=0).square().mean()
        losses.append(found.item())
        return found

    steps(LBFGS.Config(weight_decay=1e-3), module, loss, 60)
    least = np.minimum.accumulate(losses)
    assert all(now < 2 * best + 0.02 for best, now in zip(least[5:], losses[6:], strict=False))
    assert losses[-1] < 0.35 * losses[0]


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


def test_a_run_that_goes_on_ends_as_one_that_was_not_stopped(tmp_path):
    table = tmp_path / "train.tsv"
    words = ["wake", "play", "stop", "rain", "song", "alarm"]
    lines = [f"{words[i % 3]}\t{words[i % 3]} {words[3 + i % 2]} {i % 7}" for i in range(60)]
    table.write_text("\n".join(lines) + "\n")
    asked = {"train_data.path": table, "valid_data.path": table}
    whole = weft.train("classification/ngrams", asked, run_dir=tmp_path / "whole")
    short = {**asked, "trainer.max_epochs": 23}
    weft.train("classification/ngrams", short, run_dir=tmp_path / "parts")
    parts = weft.train("classification/ngrams", asked, run_dir=tmp_path / "parts")
    one, other = (weft.load(run.folder).task.module.state_dict() for run in (whole, parts))
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[name]) for name, value in one.items())
