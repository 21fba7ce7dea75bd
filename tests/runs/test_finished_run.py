"""What a run that has ended tells in Python: its history; and of another length."""

import math

import pytest

import textmill
from tests.runs.made_runs import made_run
from textmill.errors import UserError


@pytest.fixture
def run(tmp_path):
    return textmill.Run(made_run(tmp_path / "run"))


def test_the_history_is_a_line_for_each_report_with_flat_values(run):
    (run.folder / "metrics.jsonl").write_text(
        '{"split": "train", "step": 1, "epoch": 0.1, "loss": "NaN", "time": {"elapsed": 2.5}}\n'
        '{"split": "valid", "step": 1, "epoch": 0.1, "loss": 3.0, "label/a/f1": 0.5}\n'
    )
    first, second = run.history
    assert math.isnan(first.pop("loss"))
    assert first == {"split": "train", "seconds": 2.5, "step": 1, "epoch": 0.1}
    assert second == {
        "split": "valid", "seconds": None, "step": 1, "epoch": 0.1, "loss": 3.0,
        "label/a/f1": 0.5,
    }  # fmt: skip
    assert isinstance(second["step"], int)


def test_a_run_without_the_file_has_no_history(run):
    (run.folder / "metrics.jsonl").unlink()
    assert run.history == []


def test_another_length_is_said_in_the_words_of_who_asks(tmp_path, monkeypatch, capsys):
    from textmill.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("a\tone two\nb\tthree four\n" * 4)
    words = ["train_data.path=rows.tsv", "valid_data=null", "trainer.max_steps=null"]
    recipe = "classification/averaging/local"
    run = textmill.train(recipe, [*words, "trainer.max_epochs=1"])
    with pytest.raises(UserError) as caught:
        textmill.train(recipe, [*words, "trainer.max_epochs=2"])
    assert str(caught.value) == (
        f"this run exists with another length: {run.folder} (trainer.max_epochs=1, finished).\n"
        f"  To go on with it: textmill.train('{run.folder}', ['trainer.max_epochs=2'])\n"
        "  To train anew: the same call with again=True"
    )
    assert main(["train", recipe, *words, "trainer.max_epochs=2"]) == 2
    assert (
        f"  To go on with it: textmill train {run.folder} trainer.max_epochs=2\n"
        "  To train anew: the same command with --again\n"
    ) in capsys.readouterr().err
    longer = textmill.train(str(run.folder), ["trainer.max_epochs=2"])  # the call that was named
    assert longer.result["epochs"] == 2


def test_a_predictor_says_what_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("a\tone two\nb\tthree four\n" * 4)
    words = ["train_data.path=rows.tsv", "valid_data=null", "trainer.max_steps=1"]
    run = textmill.train("classification/averaging/local", words)
    assert repr(textmill.load(run.folder, device="cpu")) == (
        "<Predictor: DocumentClassification of step-00000001, answers rows of text, on cpu>"
    )
