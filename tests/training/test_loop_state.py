"""The sums since the last report: exact, whatever their types, and read late."""

import math
from fractions import Fraction

import pytest
import torch

from textmill.tasks import Loss
from textmill.training.progress import Clock, Progress, Until
from textmill.training.running_loss import RunningLoss


def losses(number, **kinds):
    """Losses of many magnitudes, whose sum in float32 is another one."""
    rng = torch.Generator().manual_seed(3)
    made = []
    for i in range(number):
        total, nll = torch.randn(2, generator=rng) * 10.0 ** (i % 17 - 8)
        targets = torch.tensor(float(1 + i % 7)).to(kinds.get("count", torch.float32))
        made.append(Loss(total, targets, {"nll": nll.to(kinds.get("nll", torch.float32))}))
    return made


def wanted(made):
    count = sum(Fraction(loss.count.item()) for loss in made)
    total = sum(Fraction(loss.total.item()) for loss in made)
    nll = sum(Fraction(loss.sums["nll"].item()) for loss in made)
    return {"loss": float(total) / float(count), "nll": float(nll) / float(count)}


@pytest.mark.parametrize(
    "kinds", [{}, {"count": torch.int64}, {"nll": torch.float64}], ids=["alike", "count", "nll"]
)
@pytest.mark.parametrize("number", [1, 40, 1029])
def test_means_are_exact(kinds, number):
    sums, made = RunningLoss(), losses(number, **kinds)
    for loss in made:
        sums.add(loss)
    assert sums.pop()[0] == wanted(made)
    assert sums.pop()[0] == {}


def test_kinds_mix_and_a_state_in_the_middle_changes_nothing():
    made = [*losses(9), *losses(5, count=torch.int64), *losses(7)]
    sums = RunningLoss()
    for loss in made[:11]:
        sums.add(loss)
    resumed = RunningLoss()
    resumed.load_state_dict(sums.state_dict())
    for loss in made[11:]:
        sums.add(loss)
        resumed.add(loss)
    assert sums.pop()[0] == resumed.pop()[0] == wanted(made)


def test_a_tensor_changed_afterwards_does_not_change_the_sum_and_no_graph_is_kept():
    sums, kept = RunningLoss(), torch.tensor(2.0, requires_grad=True)
    loss = Loss(torch.tensor(5.0), torch.tensor(2.0), {"kept": kept * 2})
    sums.add(loss)
    assert not any(value.requires_grad for value in sums.sums["kept"]._pending)
    loss.total.zero_()
    assert sums.pop()[0] == {"loss": 2.5, "kept": 2.0}


@pytest.mark.parametrize("value", ["3", None, -1, 10**400, True, math.nan])
@pytest.mark.parametrize("name", ["steps", "examples", "seconds"])
def test_a_saved_place_that_no_run_can_be_at_is_refused(name, value):
    sums, clock = RunningLoss(), Clock(Until(steps=1))
    state = {**Progress().state_dict(), name: value}
    with pytest.raises(ValueError, match=f"^{name} of a run cannot be "):
        sums.load_state_dict({"count": "0", "sums": {}, **state})
    for place in ("now", "seen", "closed"):
        with pytest.raises(ValueError, match=f"^{name} of a run cannot be "):
            clock.load_state_dict({**clock.state_dict(), place: state})


@pytest.mark.parametrize("total", ["1e999999999", "0x10", "", "1/2/3", "1.5"])
def test_a_saved_sum_that_is_none_is_refused(total):
    with pytest.raises(ValueError, match="is not the text of a sum"):
        RunningLoss().load_state_dict({"count": total, "sums": {}})
