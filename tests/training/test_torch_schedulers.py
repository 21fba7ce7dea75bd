"""Torch's own schedulers: the rates that torch has, in runs that are killed and go on."""

import pytest
import torch
from torch.optim import lr_scheduler as torchs

from tests.training.bench import differences, metrics_of, outcome, prove
from tests.training.test_nonfinite import Poisoned, broken
from textmill.errors import UserError
from textmill.training import SGD, Callback


def sequential(optimizer):
    parts = [torchs.LinearLR(optimizer, 0.1, total_iters=3), torchs.ExponentialLR(optimizer, 0.9)]
    return torchs.SequentialLR(optimizer, parts, milestones=[3])


def chained(optimizer):
    return torchs.ChainedScheduler([torchs.StepLR(optimizer, 2), torchs.ConstantLR(optimizer)])


KINDS = {
    "exponential": lambda o: torchs.ExponentialLR(o, 0.9),
    "milestones": lambda o: torchs.MultiStepLR(o, [2, 5], 0.5),
    "one cycle": lambda o: torchs.OneCycleLR(o, 0.02, total_steps=12),
    "cyclic": lambda o: torchs.CyclicLR(o, 0.001, 0.01, step_size_up=3, cycle_momentum=False),
    "restarts": lambda o: torchs.CosineAnnealingWarmRestarts(o, 4),
    "function": lambda o: torchs.LambdaLR(o, lambda step: 1 / (1 + step)),
    "sequential": sequential,
    "chained": chained,
}


class Rates(Callback):
    """The rates and momenta of all groups after each step."""

    def __init__(self):
        self.seen = []

    def step(self, progress):
        groups = self.optimizer.param_groups
        self.seen.append([(group["lr"], group.get("betas")) for group in groups])


def rates_of_torch(make, steps):
    """What torch gives for each step, where step and scheduler take turns."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=5e-3, betas=(0.9, 0.98))
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"]))
        optimizer.step()
        scheduler.step()
    return rates


QUICK = ("milestones", "one cycle", "sequential")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in KINDS]
)
def test_a_run_has_torchs_rates_and_a_killed_one_has_them_too(bench, kind):
    here = bench.but(scheduler=KINDS[kind], valid_data=None, test_data=None)
    rates = Rates()
    trainer = here.but(folder=bench.folder / "seen").make(rates)
    rates.optimizer = trainer.optimizer
    trainer.fit()
    wanted = rates_of_torch(KINDS[kind], 12)
    assert [lr for (lr, _), *_ in rates.seen] == pytest.approx([lr for lr, _ in wanted], rel=1e-12)
    assert {len({*step}) for step in rates.seen} == {1}  # that of every group
    if kind == "one cycle":
        moved = [betas[0] for ((_, betas), *_) in rates.seen]
        assert moved == pytest.approx([betas[0] for _, betas in wanted])
    prove(here, (5,))


def test_a_rollback_takes_the_rates_back(bench, monkeypatch):
    monkeypatch.setattr(Poisoned, "how", "loss")
    policy = {"on_nonfinite": "rollback", "max_steps": 12}
    here = bench.but(task_class=Poisoned, scheduler=KINDS["chained"], trainer=policy)
    first = broken(here)[0]
    trainer = here.but(folder=bench.folder / "back").make()
    trainer.fit()
    lines = [line for line in metrics_of(trainer.xp.folder) if line["split"] == "train"]
    wanted = rates_of_torch(KINDS["chained"], 12)
    assert any(line.get("rollbacks") for line in lines)
    assert first < 12
    for line in lines:
        assert line["lr"] == pytest.approx(wanted[line["step"] - 1][0])


def test_one_of_another_optimizer_and_one_that_follows_a_value_are_refused(bench):
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    with pytest.raises(UserError, match=r"^lr_scheduler: this StepLR moves another optimizer .*"):
        bench.but(scheduler=lambda _: torchs.StepLR(other, 1)).make()
    with pytest.raises(UserError, match=r"^lr_scheduler: ReduceLROnPlateau .*type=plateau, whic"):
        bench.but(scheduler=torchs.ReduceLROnPlateau).make()


def test_it_is_the_schedule_of_that_formula(bench):
    """The weights of a run by torch's scheduler are bitwise those by a function that is equal."""
    here = bench.but(optimizer=SGD.Config(lr=0.5))  # torch multiplies, and powers of 2 are exact
    one = here.but(folder=bench.folder / "torch", scheduler=lambda o: torchs.StepLR(o, 3, 0.5))
    two = here.but(
        folder=bench.folder / "own", schedule=lambda step, total, history: 0.5 ** ((step - 1) // 3)
    )
    found = []
    for each in (one, two):
        trainer = each.make()
        trainer.fit()
        found.append(outcome(trainer)["model"])
    assert differences(*found) == []
