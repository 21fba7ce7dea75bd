"""The schedules against torch's, the plateau against torch's own bookkeeping, and in a run."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from textmill.errors import UserError
from textmill.recipes import registries
from textmill.training import (
    Constant,
    Cosine,
    Exponential,
    InverseSquareRoot,
    Linear,
    Plateau,
    Schedule,
)  # fmt: skip

LRS = torch.optim.lr_scheduler


def rates_of_torch(make, steps):
    """What a scheduler of torch gives for each step, from a rate of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


SAME = [
    (Exponential.Config(decay=0.5, period=1), lambda o: LRS.ExponentialLR(o, 0.5)),
    (Linear.Config(), lambda o: LRS.LinearLR(o, 1.0, 0.0, 20)),
    (Cosine.Config(end=0.1), lambda o: LRS.CosineAnnealingLR(o, 20, eta_min=0.1)),
]


@pytest.mark.parametrize(("config", "torchs"), SAME)
def test_it_is_torchs(config, torchs):
    schedule = config.build()
    mine = [schedule(step, 20) for step in range(1, 21)]
    assert mine == pytest.approx(rates_of_torch(torchs, 20), abs=1e-12)


def test_an_exponential_one_falls_in_the_step_after_its_peak():
    """PyText's WarmupScheduler of 2 steps around an ExponentialLR: .0005, .001, .0005."""
    schedule = Exponential.Config(warmup_steps=2, decay=0.5, period=1).build()
    assert [0.001 * schedule(step, None) for step in (1, 2, 3, 4)] == [5e-4, 1e-3, 5e-4, 2.5e-4]
    smooth = Exponential.Config(decay=0.9, period=10).build()
    assert [smooth(step, None) for step in (1, 11, 16)] == pytest.approx([1.0, 0.9, 0.9**1.5])


@given(
    st.lists(st.one_of(st.floats(0, 4).map(lambda x: round(x, 1)), st.just(math.nan)), max_size=40),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_the_plateau_is_torchs(losses, patience, cooldown):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = LRS.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=patience - 1, cooldown=cooldown,
        threshold=0.0, threshold_mode="abs", eps=0.0, min_lr=0.1,
    )  # fmt: skip
    mine = Plateau.Config(decay=0.5, patience=patience, cooldown=cooldown, end=0.1).build()
    for count in range(1, len(losses) + 1):
        theirs.step(losses[count - 1])
        assert mine(1, None, losses[:count]) == pytest.approx(optimizer.param_groups[0]["lr"])


NAMES = sorted(registries.schedules._modules)


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_warms_up_and_stays_between_0_and_1(name):
    kind = registries.schedules.get(name)
    schedule = kind.Config(warmup_steps=5).build()
    assert isinstance(schedule, Schedule)
    factors = [schedule(step, 20, [1.0, 2.0, 3.0]) for step in range(1, 31)]
    assert all(0 <= factor <= 1 for factor in factors)
    assert factors[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert factors[4:] == sorted(factors[4:], reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_unknown_length_is_refused_before_it_starts_where_it_matters(name):
    schedule = registries.schedules.get(name).Config().build()
    if name in ("constant", "exponential", "inverse_square_root", "plateau"):
        schedule.check(None, measured=True)
        return
    with pytest.raises(UserError, match=rf"^The {name} schedule needs .* trainer\.max_steps"):
        schedule.check(None, measured=True)


def test_a_plateau_without_valid_data_is_refused_before_training(bench):
    with pytest.raises(UserError, match=r"^The plateau schedule .* Define valid_data"):
        bench.but(schedule=Plateau.Config().build(), valid_data=None).make()


def test_two_lengths_of_a_warm_up_are_refused_and_a_share_of_what_is_not_known():
    with pytest.raises(UserError, match=r"warmup_steps is 400, and .*warmup_ratio is 0\.1: set"):
        InverseSquareRoot.Config(warmup_ratio=0.1)
    with pytest.raises(UserError, match=r"^The constant \(warmup_ratio\) .*, or .*warmup_st"):
        Constant.Config(warmup_ratio=0.1).build().check(None, measured=True)
