"""A small run that is pushed and pulled."""

import shutil
from pathlib import Path

import pytest

import textmill
from tests.hostile.small_run import words


@pytest.fixture(scope="package")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "run"
    return textmill.train("classification/docnn", words(), run_dir=folder).folder


@pytest.fixture
def run(trained, tmp_path):
    return Path(shutil.copytree(trained, tmp_path / "run"))
