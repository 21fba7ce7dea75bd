"""What answers for a folder: the run's own export where that is the same, else the run."""

import shutil

import pytest

import textmill
from tests.recipes.local_data import write_data
from textmill.cli.main import main
from textmill.errors import UserError
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


@pytest.mark.parametrize("asked", [{"device": "cpu"}, {"checkpoint": "last"}], ids=str)
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


def test_a_damaged_export_is_told_and_the_run_answers(run, caplog):
    graph = run / "export/onnx/graph/model.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    assert isinstance(load_answering(run), Predictor)
    assert "model.onnx" in caplog.text
    assert "the run itself answers" in caplog.text


def test_vectors_are_the_runs(run, capsys, tmp_path):
    (tmp_path / "texts.txt").write_text("wake me\n")
    assert main(["embed", str(run), str(tmp_path / "texts.txt")]) == 0
    assert '"prediction": [' in capsys.readouterr().out


def test_a_folder_that_is_not_there_and_a_checkpoint_of_an_export(run):
    with pytest.raises(UserError, match="there is no such folder"):
        load_answering(run / "none")
    with pytest.raises(UserError, match="is an export, which holds one checkpoint"):
        load_answering(run / "export/onnx", checkpoint="last")
