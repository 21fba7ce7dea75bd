"""A small project of Lightning and Hydra, and the command that trains it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.project import write_project
from textmill.runs.resume import Run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROJECT_ROOT", raising=False)
    write_project(tmp_path)
    return tmp_path


@pytest.fixture
def train(project: Path) -> Callable[..., Run]:
    def train_it(*words: str, **options: Any) -> Run:
        from textmill.interop.hydra.run import train_hydra

        return train_hydra("configs", "train.yaml", words, **options)

    return train_it
