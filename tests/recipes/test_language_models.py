"""Language models end to end: PyText's small case, and what a checkpoint keeps of the state."""

import json

import pytest
import torch
from safetensors.torch import load_file

from textmill.data.text_lines import TextLines
from textmill.runs.python_api import create_task, run_experiment
from textmill.runs.train import train
from textmill.tasks.evaluation import evaluate

LINES = ["to be or not to be", "", "that is the question", "whether it is nobler"] * 6


@pytest.fixture
def words(tmp_path):
    """The command-line words that name a small text."""
    (tmp_path / "play.txt").write_text("\n".join(LINES) + "\n")
    return ["train_data.path=play.txt", "valid_data.path=play.txt", "trainer.fast.linear=torch"]


def test_the_small_case_of_pytext(shared_data, tmp_path):
    """Case 7: 6,237 parameters over 25 ids, a perplexity of 25 at first, at most 4.58 later."""
    path = shared_data / "pytext-tiny" / "alarm_lm_tiny.tsv"
    words = [f"train_data.path={path}", f"valid_data.path={path}", "trainer.max_epochs=150"]
    words.append("trainer.max_steps=null")
    task = create_task("language/lstm/local", words)
    assert sum(p.numel() for p in task.module.parameters()) == 6237
    assert task.text.tokenizer.vocab_info.size == 25
    rows = TextLines.Config(path=path, shuffle=False).build()
    fresh = evaluate(task, task.batches(rows, train=False, seed=1)).values["perplexity"]
    assert 22 < fresh < 28
    run = run_experiment("language/lstm/local", "train_and_evaluate", tmp_path / "run", words)
    assert run.evaluations["valid_data"].values["perplexity"] < 4.58
    (path,) = (tmp_path / "run" / "predictions").glob("valid-*")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["text"] for row in found] == [row["text"] for row in rows]
    assert all(1 < row["perplexity"] < 4.58 for row in found)


def test_checkpoints_hold_the_carried_state(words, tmp_path):
    run = train("language/lstm/local", [*words, "trainer.max_steps=2"], run_dir=tmp_path / "run")
    (path,) = run.folder.glob("checkpoints/step-00000002/carried*.safetensors")
    (state,) = load_file(path).values()
    assert state.shape == (2, 1, 5, 32)
    assert torch.isfinite(state).all()
