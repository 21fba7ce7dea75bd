"""A trained run, its predictor, and a copy to change."""

import pytest

import textmill
from tests.trained_run import copy_of, library_run


@pytest.fixture(scope="session")
def predictor():
    return textmill.load(library_run())


@pytest.fixture
def run(tmp_path):
    return copy_of(library_run(), tmp_path / "run")
