"""What answers for a folder: the run's own export where that is the same, else the run."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

import textmill
from tests.recipes.local_data import write_data
from textmill.cli.main import main
from textmill.errors import CheckpointError, UserError
from textmill.exported.manifest import is_export
from textmill.exported.row_predictor import ExportedPredictor
from textmill.inference import Predictor
from textmill.runs import answering
from textmill.runs.answering import load_answering
from textmill.runs.export import export

EXPERIMENT = "classification/docnn/local"
TEXTS = ["wake me at seven", "play some jazz"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with its export beside it."""
    folder = tmp_path_factory.mktemp("answering")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_data(EXPERIMENT)
        words = ["reporters.console=false", "trainer.max_steps=2"]
        textmill.train(EXPERIMENT, words, run_dir="run")
        export("run", "onnx")
    return folder / "run"


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained.parent)
    monkeypatch.setattr(answering, "may_have_accelerator", lambda: False)
    return shutil.copytree(trained, tmp_path / "run")


def test_its_export_answers_for_a_run_as_the_run_does(run):
    predictor, itself = load_answering(run), load_answering(run, itself=True)
    assert isinstance(predictor, ExportedPredictor)
    assert isinstance(itself, Predictor)
    for found, wanted in zip(predictor(TEXTS), itself(TEXTS), strict=True):
        assert found.label == wanted.label
        assert found.scores == pytest.approx(wanted.scores, abs=1e-5)


ASKED = [{"device": "cpu"}, {"checkpoint": "last"}, {"precision": "bf16"}]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_run_itself_answers_what_is_asked_of_it(run, asked):
    assert isinstance(load_answering(run, **asked), Predictor)


def test_an_accelerator_is_the_runs(run, monkeypatch):
    monkeypatch.setattr(answering, "may_have_accelerator", lambda: True)
    assert isinstance(load_answering(run), Predictor)


def test_an_export_of_other_weights_does_not_answer(run):
    words = ["reporters.console=false", "trainer.max_steps=4"]
    textmill.train(EXPERIMENT, words, run_dir=run)
    assert isinstance(load_answering(run), Predictor)


def test_nor_does_one_whose_weights_are_of_8_bits(run):
    shutil.rmtree(run / "export")
    export(
        run, {"format": "onnx", "quantize": "int8", "max_quality_loss": 9}, out=run / "export/onnx"
    )
    assert is_export(run / "export/onnx")
    assert isinstance(load_answering(run), Predictor)


@pytest.mark.parametrize("file", ["export.json", "graph/model.onnx"])
def test_a_damaged_export_is_told_and_the_run_answers(run, caplog, file):
    damaged = run / "export/onnx" / file
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert isinstance(load_answering(run), Predictor)
    assert f"{run}/export/onnx is not used, and the run itself answers: " in caplog.text
    assert Path(file).name in caplog.text


def test_an_engine_that_cannot_be_imported_is_told_and_the_run_answers(
    run, caplog, monkeypatch, tmp_path
):
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('onnxruntime: GLIBC_2.38')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    assert isinstance(load_answering(run), Predictor)
    assert "onnxruntime" in caplog.text


def test_what_the_run_refuses_is_refused_with_an_export_too(run):
    with (run / "config.yaml").open("a") as file:
        file.write("# edited\n")
    with pytest.raises(CheckpointError, match="is not as the run wrote it"):
        load_answering(run)


@pytest.mark.parametrize("command", ["predict", "embed", "evaluate"])
def test_commands_compute_in_the_precision_that_is_asked_for(run, tmp_path, capsys, command):
    """In bf16 numbers have 8 bits: they are others, and near."""

    def numbers(*words):
        values = tmp_path / "values.json"
        if command == "evaluate":
            assert main([command, str(run), *words, "--values", str(values)]) == 0
            return [json.loads(values.read_text())["valid_data"]["loss"]]
        (tmp_path / "texts.txt").write_text("wake me\n")
        json_lines = ["--json"] if command == "predict" else []
        assert main([command, str(run), str(tmp_path / "texts.txt"), *json_lines, *words]) == 0
        row = json.loads(capsys.readouterr().out)
        return [*row["scores"].values()] if command == "predict" else row["prediction"]

    wide, narrow = numbers("--device", "cpu"), numbers("--precision", "bf16")
    assert narrow != wide
    assert narrow == pytest.approx(wide, rel=0.02, abs=0.01)


def test_a_precision_ends_with_the_answer_and_its_copies_are_made_once(run):
    predictor = load_answering(run, precision="bf16")
    with predictor.computing():
        predictor("wake me")
    assert not torch.is_autocast_enabled("cpu")
    assert predictor.embedder()._copies is predictor._copies


def test_vectors_are_the_runs(run, capsys, tmp_path):
    (tmp_path / "texts.txt").write_text("wake me\n")
    assert main(["embed", str(run), str(tmp_path / "texts.txt")]) == 0
    assert '"prediction": [' in capsys.readouterr().out


def test_a_folder_that_is_not_there_and_a_checkpoint_of_an_export(run):
    with pytest.raises(UserError, match="there is no such folder"):
        load_answering(run / "none")
    with pytest.raises(UserError, match="is an export, which holds one checkpoint"):
        load_answering(run / "export/onnx", checkpoint="last")
    with pytest.raises(UserError, match="is an export, which computes as it was written"):
        load_answering(run / "export/onnx", precision="bf16")
