"""What trainer.precision=auto was when a run began, on whatever device it goes on."""

import json
import logging

import pytest
import torch

import textmill
from tests.runs.tiny import write_recipe
from textmill.errors import UserError
from textmill.run_folder.folder import RunFolder
from textmill.training.precision import TYPES

SHORT = ["trainer.max_steps=2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def kinds(monkeypatch):
    """The types that training steps compute in."""
    found = set()
    cast = torch.autocast

    def noted(device, dtype):
        found.add(dtype)
        return cast(device, dtype=dtype)

    monkeypatch.setattr(torch, "autocast", noted)
    return found


def info(run) -> dict:
    return json.loads((run.folder / "run.json").read_text())


def test_it_is_in_the_record_of_the_run():
    run = textmill.train("tiny.py", [*SHORT, "trainer.precision=bf16"])
    assert info(run)["precision"] == "bf16"


def test_a_run_that_began_in_bf16_goes_on_in_it_on_a_cpu(kinds, caplog):
    run = textmill.train("tiny.py", SHORT)
    assert not kinds
    assert info(run)["precision"] == "fp32"
    RunFolder(run.folder).write_info(finished=False, precision="bf16")  # as if begun on a GPU
    with caplog.at_level(logging.INFO, "textmill"):
        textmill.train(run.folder, ["trainer.max_steps=4"], allow_code=True)
    assert kinds == {TYPES["bf16"]}
    assert "trainer.precision=auto: bf16 on cpu, as when this run began." in caplog.messages
    assert info(run)["precision"] == "bf16"


def test_another_precision_than_a_run_began_with_is_refused():
    run = textmill.train("tiny.py", SHORT)
    RunFolder(run.folder).write_info(finished=False, precision="bf16")
    with pytest.raises(UserError) as caught:
        textmill.train(run.folder, ["trainer.precision=fp32"], allow_code=True)
    assert "cannot go on with another trainer.precision: that is another run" in str(caught.value)
