"""Settings no run can have are refused where they are written: the place, and what was found."""

from datetime import timedelta

import pytest

from textmill.errors import UserError
from textmill.tasks import Translation
from textmill.training import (
    SGD,
    Adafactor,
    Adam,
    AdamW,
    Cosine,
    Every,
    InverseSquareRoot,
    Linear,
    Muon,
    Plateau,
    Selection,
    Trainer,
)

NAN, INF = float("nan"), float("inf")
REFUSED = [
    (Translation, "task.", {"label_smoothing": 1.5}),
    (Linear, "lr_scheduler.", {"warmup_steps": -1}),
    (InverseSquareRoot, "lr_scheduler.", {"warmup_steps": -2}),
    (Plateau, "lr_scheduler.", {"decay": 1.0}), (Plateau, "lr_scheduler.", {"patience": 0}),
    *[(kind, "lr_scheduler.", {"end": end}) for kind in (Linear, Cosine) for end in (-1.0, 5.0)],
    (Plateau, "lr_scheduler.", {"end": NAN}),
    (InverseSquareRoot, "lr_scheduler.", {"cooldown": 1.5}),
    (Selection, "trainer.selection.", {"patience": 0}),
    (Selection, "trainer.selection.", {"min_delta": INF}),
    (Trainer, "trainer.", {"clip_norm": NAN}), (Trainer, "trainer.", {"max_nonfinite": 3}),
    (Trainer, "trainer.", {"max_nonfinite": 0, "on_nonfinite": "skip"}),
    (Trainer, "trainer.", {"max_time": timedelta(minutes=-5)}), (Trainer, "trainer.", {"keep": 0}),
    (Trainer, "trainer.", {"ema": 1.0}), (Adam, "optimizer.", {"lr": NAN}),
    (Adam, "optimizer.", {"lr": 0.0}), (Adam, "optimizer.", {"eps": 0.0}),
    (AdamW, "optimizer.", {"layer_decay": 0.0}), (AdamW, "optimizer.", {"layer_decay": 5.0}),
    (AdamW, "optimizer.", {"betas": (0.9, 1.0)}), (AdamW, "optimizer.", {"weight_decay": -1.0}),
    (SGD, "optimizer.", {"momentum": 1.0}), (Adafactor, "optimizer.", {"clip": 0.5}),
    (Adafactor, "optimizer.", {"beta2_decay": 0.8}), (Muon, "optimizer.", {"momentum": -0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "place", "settings"), REFUSED)
def test_a_number_no_run_can_have_is_refused(kind, place, settings):
    with pytest.raises(UserError) as caught:
        kind.Config(**settings)
    name, value = next(iter(settings.items()))
    assert str(caught.value).startswith(f"{place}{name} ")
    assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: AdamW.Config(rates={"a": INF}),
            r"optimizer.rates\['a'\] .* inf; optimizer.freeze",
        ),
        (lambda: SGD.Config(nesterov=True), "optimizer.nesterov needs a momentum"),
        (lambda: Trainer.Config(compile=True, data_parallelism="fsdp"), "trainer.compile is not"),
        (lambda: Every(0), "An interval must be at least 1 steps, but is 0"),
    ],
)
def test_what_does_not_go_together_is_refused(make, says):
    with pytest.raises(UserError, match=says):
        make()


def test_the_edges_are_allowed():
    Translation.Config(label_smoothing=0.0)
    InverseSquareRoot.Config(warmup_steps=0, cooldown=1.0)
    Selection.Config(patience=1, min_delta=0.0)
    AdamW.Config(betas=(0.0, 0.0), weight_decay=0.0)
