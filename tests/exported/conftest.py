"""One export of the tiny trained run, and a copy to change."""

import shutil

import pytest

from tests.trained_run import library_run
from textmill.runs.export import export


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "ctranslate2"
    return export(library_run(), "ctranslate2", out=folder).folder


@pytest.fixture
def folder(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "copy")
    return tmp_path / "copy"
