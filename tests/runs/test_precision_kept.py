"""What trainer.precision=auto was when a run began, on whatever device it goes on."""

import json
import logging
from dataclasses import asdict

import pytest
import torch

import textmill
from tests.runs.tiny import write_recipe
from textmill.cli.main import main
from textmill.errors import RunError, UserError
from textmill.models.layers.precision import TYPES
from textmill.run_folder.folder import RunFolder
from textmill.runtime.devices import processor
from textmill.runtime.machine import Measured, present, usual

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

    def noted(device, dtype=None, *, enabled=True):
        found.update({dtype} if enabled else ())
        return cast(device, dtype=dtype, enabled=enabled)

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


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table of a machine that is fastest in bf16, as ``textmill bench --machine`` keeps it."""
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    kernels = usual()  # the table says otherwise
    of_libraries = (300.0, 400.0) if kernels.linear == "onednn" else (400.0, 300.0)
    of_attention = (200.0, 100.0) if kernels.attention == "fp32" else (100.0, 200.0)
    times = *of_libraries, *of_attention
    measured = Measured(processor(), torch.__version__, 1, 2.0, *times)
    monkeypatch.setattr("textmill.preflight.machine_steps.measure", lambda: measured)
    present.cache_clear()
    yield tmp_path / "cache" / "machine.json"
    present.cache_clear()


def test_a_run_computes_as_this_machine_was_measured_and_keeps_it(table, kinds, caplog, capsys):
    assert main(["bench", "--machine"]) == 0
    printed, said = capsys.readouterr()
    assert "took 2.0 times as long at times: other programs were at work" in said
    assert "bfloat16, attention in bfloat16, too " in printed
    assert "  trainer.precision=bf16\n" in printed
    assert str(table) in printed
    run = textmill.train("tiny.py", SHORT)
    kernels = asdict(present())
    assert kernels.pop("precision") == "bf16"
    assert all(kernels[name] != value for name, value in asdict(usual()).items() if name in kernels)
    found = {"precision": "bf16", "kernels": kernels}
    assert found.items() <= info(run).items()
    table.unlink()
    present.cache_clear()
    kinds.clear()
    with caplog.at_level(logging.INFO, "textmill"):
        textmill.train("tiny.py", ["trainer.max_steps=4"])
    assert kinds == {TYPES["bf16"]}
    assert "trainer.precision=auto: bf16 on cpu, as when this run began." in caplog.messages
    assert found.items() <= info(run).items()


@pytest.mark.parametrize("kernels", [{"linear": "torch"}, ["torch"], {"linear": 1, "attention": 2}])
def test_kernels_that_no_run_writes_are_refused(kernels):
    run = textmill.train("tiny.py", SHORT)
    RunFolder(run.folder).write_info(finished=False, kernels=kernels)
    with pytest.raises(RunError, match=r"run\.json: 'kernels' is not what a run writes: "):
        textmill.train("tiny.py", SHORT)


def test_a_cache_folder_that_cannot_be_made_is_said_first(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["bench", "--machine"]) == 1
    said = capsys.readouterr().err
    assert "TEXTMILL_CACHE names another cache folder" in said
    assert "Measuring" not in said


def test_what_to_measure_is_asked_for(capsys):
    assert main(["bench"]) == 2
    assert "--machine" in capsys.readouterr().err
