"""Settings no run can have are refused where they are written, with the number that was found."""

from datetime import timedelta

import pytest

from textmill.errors import UserError
from textmill.tasks import Translation
from textmill.training import AdamW, Every, InverseSquareRoot, Linear, Selection, Trainer

REFUSED = [
    (
        lambda: Translation.Config(label_smoothing=1.5),
        "task.label_smoothing must be from 0 to below 1, but is 1.5.",
    ),
    (
        lambda: Translation.Config(label_smoothing=-0.1),
        "task.label_smoothing must be from 0 to below 1, but is -0.1.",
    ),
    (
        lambda: Linear.Config(warmup_steps=-1),
        "lr_scheduler.warmup_steps must be at least 0, but is -1.",
    ),
    (
        lambda: InverseSquareRoot.Config(warmup_steps=-2),
        "lr_scheduler.warmup_steps must be at least 0, but is -2.",
    ),
    (
        lambda: InverseSquareRoot.Config(cooldown=1.5),
        "lr_scheduler.cooldown must be from 0 to 1, but is 1.5.",
    ),
    (
        lambda: Selection.Config(patience=0),
        "trainer.selection.patience must be at least 1 or null, but is 0.",
    ),
    (
        lambda: Selection.Config(min_delta=-0.5),
        "trainer.selection.min_delta must be at least 0, but is -0.5.",
    ),
    (
        lambda: Trainer.Config(clip_norm=float("nan")),
        "trainer.clip_norm must be positive or null, but is nan.",
    ),
    (
        lambda: Trainer.Config(max_nonfinite=3),
        "trainer.max_nonfinite is 3, but trainer.on_nonfinite=stop ends the run with the first. "
        "Leave it out, or set on_nonfinite to skip or rollback.",
    ),
    (lambda: AdamW.Config(lr=0.0), "optimizer.lr must be positive, but is 0.0."),
    (
        lambda: AdamW.Config(betas=(0.9, 1.0)),
        "optimizer.betas must be from 0 to below 1, but is (0.9, 1.0).",
    ),
    (lambda: AdamW.Config(eps=0.0), "optimizer.eps must be positive, but is 0.0."),
    (
        lambda: AdamW.Config(weight_decay=-0.1),
        "optimizer.weight_decay must be at least 0, but is -0.1.",
    ),
    (lambda: AdamW.Config(lr=float("inf")), "optimizer.lr must be positive, but is inf."),
    (
        lambda: AdamW.Config(layer_decay=5.0),
        "optimizer.layer_decay must be at most 1, but is 5.0.",
    ),
    (
        lambda: AdamW.Config(rates={"a": float("inf")}),
        "optimizer.rates['a'] must be positive, but is inf; "
        'optimizer.freeze=["a"] holds parameters still.',
    ),
    (
        lambda: Selection.Config(min_delta=float("inf")),
        "trainer.selection.min_delta must be at least 0, but is inf.",
    ),
    (
        lambda: Trainer.Config(max_time=timedelta(minutes=-5)),
        "trainer.max_time must be longer than nothing, as 15m, but is -1 day, 23:55:00.",
    ),
    (
        lambda: Trainer.Config(compile=True, data_parallelism="fsdp"),
        "trainer.compile is not for trainer.data_parallelism=fsdp. Leave one of them out.",
    ),
    (lambda: Every(0), "An interval must be at least 1 steps, but is 0."),
    (lambda: Trainer.Config(keep=0), "trainer.keep must be at least 1, but is 0."),
]


@pytest.mark.parametrize(("make", "says"), REFUSED)
def test_a_number_no_run_can_have_is_refused(make, says):
    with pytest.raises(UserError) as caught:
        make()
    assert str(caught.value) == says


def test_the_edges_are_allowed():
    Translation.Config(label_smoothing=0.0)
    InverseSquareRoot.Config(warmup_steps=0, cooldown=1.0)
    Selection.Config(patience=1, min_delta=0.0)
    AdamW.Config(betas=(0.0, 0.0), weight_decay=0.0)
