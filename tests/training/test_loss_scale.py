"""fp16: the loss is scaled, an overflow is no broken number, and the factor is state."""

import math

import pytest
import torch

from tests.training.bench import (
    KillAt,
    differences,
    killed_and_resumed,
    metrics_of,
    outcome,
    undisturbed,
)
from textmill.errors import NonFiniteError
from textmill.tasks import Translation
from textmill.training import Every
from textmill.training.precision import GROWS_AFTER, LEAST, MOST, START, LossScale


class Overflows(Translation):
    """Gradients of a loss that is scaled by more than 16 are infinite."""

    most = 16.0

    def training_step(self, batch, examples=()):
        found = super().training_step(batch, examples)
        found.total.register_hook(lambda g: g * math.inf if g > self.most else g)
        return found


def test_a_scaled_loss_gives_the_gradients_of_the_loss(bench, monkeypatch):
    """In float32 numbers a power of 2 changes no digit; so it is the plain run, to the last bit."""
    plain = bench.but(folder=bench.folder / "plain").make(max_steps=4)
    plain.fit()
    scaled = bench.but(folder=bench.folder / "scaled").make(max_steps=4)
    scaled.updates.arithmetic.scale = LossScale("fp16")
    scaled.fit()
    wanted, found = outcome(plain), outcome(scaled)
    for part in ("model", "optimizer", "last"):
        assert differences(wanted[part], found[part]) == [], part


def test_a_step_that_overflows_is_left_out_and_counted_and_the_factor_halves(bench):
    here = bench.but(task_class=Overflows)
    trainer = here.make(precision="fp16", max_steps=8, report_every=Every(4))
    trainer.fit()
    assert START == 128
    lines = [line for line in metrics_of(here.folder) if line["split"] == "train"]
    said = [(line["step"], line.get("overflowed_steps"), line["loss_scale"]) for line in lines]
    assert said == [(4, 3.0, 16.0), (5, None, 16.0), (8, None, 16.0)]
    steps = {s["step"].item() for s in trainer.optimizer.state_dict()["state"].values()}
    assert steps == {5.0}  # 8 without 3
    assert "nonfinite" not in trainer.parts


@pytest.mark.slow
def test_a_killed_run_is_the_undisturbed_one(bench):
    here = bench.but(
        task_class=Overflows, valid_data=None, test_data=None,
        trainer={"precision": "fp16", "save_every": Every(1), "max_steps": 6},
    )  # fmt: skip
    whole = undisturbed(here)
    for step in (2, 4):
        resumed = killed_and_resumed(here, KillAt(step), folder=f"killed-{step}")
        assert differences(outcome(whole), outcome(resumed)) == []
        assert (
            resumed.updates.arithmetic.scale.state_dict()
            == whole.updates.arithmetic.scale.state_dict()
        )


def test_at_its_least_the_gradient_itself_is_broken(bench, monkeypatch):
    monkeypatch.setattr(Overflows, "most", 0.0)
    monkeypatch.setattr("textmill.training.precision.LEAST", START / 4)
    with pytest.raises(NonFiniteError, match=r"^The gradient norm is (nan|inf) at step 3; "):
        bench.but(task_class=Overflows).make(precision="fp16").fit()


def test_it_doubles_after_many_good_steps_in_a_row_and_has_bounds():
    scale = LossScale("fp16")
    for _ in range(GROWS_AFTER - 1):
        scale.fine()
    assert scale.overflowed()
    assert scale.now == START / 2
    for _ in range(GROWS_AFTER):
        assert scale.now == START / 2
        scale.fine()
    assert scale.now == START
    for _ in range(40 * GROWS_AFTER):
        scale.fine()
    assert scale.now == MOST
    while scale.overflowed():
        pass
    assert scale.now == LEAST
    assert scale.of(torch.tensor(3.0)).item() == 3 * LEAST
