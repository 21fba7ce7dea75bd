"""Runs of a few steps that begin with pretrained models, and what they answer."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import textmill

QUIET = (
    "lr_scheduler.type=constant",  # which does not look at the length
    "reporters.console=false",
    "reporters.html=false",
)


def train_from(
    folder: Path, experiment: str, rows: str, *words: str, suffix: str = "tsv", steps: int = 2
) -> Path:
    """Trains on the rows, which are evaluated, too; returns the run folder."""
    settings = [*settings_for(folder, rows, suffix=suffix, steps=steps), *words]
    run = folder / "run"
    textmill.run_experiment(experiment, "train", str(run), settings)
    return run


def settings_for(folder: Path, rows: str, *, suffix: str = "tsv", steps: int = 2) -> list[str]:
    """Writes the rows; returns the settings that read them for a few steps."""
    file = folder / f"train.{suffix}"
    file.write_text(rows)
    data = [f"{part}_data.path={file}" for part in ("train", "valid")]
    return [*data, f"trainer.max_steps={steps}", *QUIET]


def quick(names: Iterable[str], one: str) -> list[Any]:
    """The names; tests of all but one are slow."""
    return [n if n == one else pytest.param(n, marks=pytest.mark.slow) for n in names]


def answers(run: Path, asked: Sequence[object]) -> list[str]:
    return [repr(answer) for answer in textmill.load(run)([*asked])]
