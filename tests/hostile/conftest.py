"""A copy of a trained run for a hostile hand to change."""

from pathlib import Path

import pytest

from tests.trained_run import copy_of, library_run


@pytest.fixture
def run(tmp_path) -> Path:
    return copy_of(library_run(), tmp_path / "run")
