"""A trained run, its predictor, and a copy to change."""

from pathlib import Path

import pytest

import textmill
from tests.trained_run import copy_of, library_run
from textmill.inference import Predictor


@pytest.fixture(scope="session")
def predictor() -> Predictor:
    return textmill.load(library_run())


@pytest.fixture
def run(tmp_path) -> Path:
    return copy_of(library_run(), tmp_path / "run")
