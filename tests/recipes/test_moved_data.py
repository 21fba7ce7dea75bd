"""A run whose files were moved: it goes on where their content is what it has read."""

import logging
import os
from pathlib import Path

import pytest

import textmill
from tests.runs.tiny import write_recipe
from textmill.errors import RunStoppedError, UserError
from textmill.run_folder.folder import RunFolder

STOPS = """
import os, signal
from textmill.training import Callback

class Stop(Callback):
    def step(self, progress):
        if progress.steps == 9 and "GOES_ON" not in os.environ:
            signal.raise_signal(signal.SIGTERM)

def callbacks(): return [Stop()]
"""
HELD_OUT = [
    "train_data.path=all.tsv", "train_data.holdout=0.2", "tokenizer.vocab_size=60",
    "trainer.max_steps=4",
]  # fmt: skip
LABELS = [
    *("train_data.path=rows.tsv", "valid_data.path=rows.tsv"),
    *("tokenizer.type=fitted_words", "dictionary.type=phrases", "dictionary.path=phrases.tsv"),
    *("model.embedding.vectors=vectors.txt", "model.embedding.dim=2"),
]


@pytest.fixture
def folder(tmp_path, caplog):
    write_recipe(tmp_path)
    caplog.set_level(logging.INFO, logger="textmill")
    with (tmp_path / "tiny.py").open("a", encoding="utf-8") as recipe:
        recipe.write(STOPS)
    return tmp_path


def move(*names: str) -> None:
    Path("new").mkdir()
    for name in names:
        os.rename(name, f"new/{name}")


def weights(run: Path) -> dict[str, bytes]:
    last = run / "checkpoints" / "step-00000020"
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


def test_a_run_stopped_half_way_goes_on_to_the_same_bits(folder, monkeypatch, caplog):
    with monkeypatch.context() as patched:
        patched.setenv("GOES_ON", "1")
        undisturbed = textmill.train("tiny.py", run_dir="undisturbed").folder
    with pytest.raises(RunStoppedError):
        textmill.train("tiny.py", run_dir="moved")
    move("train.tsv", "test.tsv")
    words = ["train_data.path=new/train.tsv", "test_data.path=new/test.tsv"]
    run = textmill.train("moved", words, allow_code=True)
    assert "train_data.path: train.tsv -> new/train.tsv" in caplog.messages
    assert weights(run.folder) == weights(undisturbed) != {}
    assert run.result["best"] == RunFolder(undisturbed).result["best"]
    settings = RunFolder(run.folder).info["changes"][-1]["settings"]
    assert [*settings] == ["train_data.path", "test_data.path"]
    assert textmill.train(
        "moved", [*words, "trainer.max_steps=21"], allow_code=True
    ).folder.exists()
    assert "test_data" in textmill.evaluate("moved", allow_code=True)


def test_other_content_at_the_new_place_is_refused(folder):
    with pytest.raises(RunStoppedError):
        textmill.train("tiny.py", run_dir="run")
    move("train.tsv")
    with Path("new/train.tsv").open("a") as file:
        file.write("the cat\tle chat\n")
    with pytest.raises(UserError) as caught:
        textmill.train("run", ["train_data.path=new/train.tsv"], allow_code=True)
    assert str(caught.value).startswith("train_data changed since run was started: the files have")


def test_a_file_that_is_gone_is_said_with_what_goes_on(folder, caplog):
    with pytest.raises(RunStoppedError):
        textmill.train("tiny.py", run_dir="run")
    move("train.tsv")
    with pytest.raises(UserError, match=r"path: there is no file train\.tsv"):
        textmill.train("run", allow_code=True)
    assert "textmill train run train_data.path=ITS_NEW_PLACE" in caplog.text


@pytest.mark.parametrize("same", [True, False])
def test_files_of_vectors_and_phrases_may_be_moved_too(folder, same):
    Path("rows.tsv").write_text("ham\tok see you\nspam\twin it now\n" * 3)
    Path("phrases.tsv").write_text("verb\tsee\nverb\twin\n")
    Path("vectors.txt").write_text("see 0.5 1\nwin 1 0.5\n")
    textmill.train("classification/docnn/local", [*LABELS, "trainer.max_steps=2"], run_dir="run")
    move("rows.tsv", "phrases.tsv", "vectors.txt")
    words = [word.replace("=rows", "=new/rows") for word in LABELS if "rows.tsv" in word]
    words += ["dictionary.path=new/phrases.tsv", "model.embedding.vectors=new/vectors.txt"]
    words += ["trainer.max_steps=3"]
    if same:
        run = RunFolder(textmill.train("run", words).folder)
        assert len(run.info["changes"][-1]["settings"]) == len(words)
        return
    Path("new/vectors.txt").write_text("see 0.5 1\nwin 1 0.6\n")
    with pytest.raises(UserError, match=r"^run cannot go on with another model.embedding.vectors:"):
        textmill.train("run", words)


@pytest.mark.slow
def test_rows_held_out_move_with_their_file(folder):
    Path("all.tsv").write_text(Path("train.tsv").read_text() + Path("valid.tsv").read_text())
    textmill.train("tiny.py", HELD_OUT, run_dir="run")
    move("all.tsv")
    words = ["train_data.path=new/all.tsv", "trainer.max_steps=6"]
    run = RunFolder(textmill.train("run", words, allow_code=True).folder)
    moved = run.info["changes"][-1]["settings"]
    assert moved["valid_data.path"] == {"before": "all.tsv", "now": "new/all.tsv"}
    assert textmill.evaluate("run").keys() == {"valid_data"} | {"test_data"}


def test_of_a_moved_file_the_rows_that_were_held_out_are_evaluated(folder):
    Path("all.tsv").write_text(Path("train.tsv").read_text() + Path("valid.tsv").read_text())
    textmill.train("tiny.py", HELD_OUT, run_dir="run")
    before = textmill.evaluate("run")["valid_data"]
    move("all.tsv")
    again = textmill.evaluate("run", ["valid_data.path=new/all.tsv"])["valid_data"]
    assert again.rows == before.rows
    other = Path("new/all.tsv").read_text().splitlines(keepends=True)
    Path("other.tsv").write_text("".join(other[1:]))
    whole = textmill.evaluate("run", ["valid_data.path=other.tsv"])["valid_data"]
    assert len(whole.rows) == len(other) - 1 > len(before.rows)
