"""A trainer of the recipe's own: its result, its weights, its end, and where it goes on."""

import pytest

import textmill
from textmill.checkpoint.manifest import Manifest
from textmill.errors import RunError, UserError
from textmill.preflight.check import check

DATA = '''"""A trainer of its own."""

import torch

from textmill import like
from textmill.checkpoint import Checkpoints
from textmill.config import Component, Config, setting
from textmill.data import TextRows
from textmill.models.classifier import Classifier
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import AdamW, Progress

train_data = TextRows.Config(path="rows.tsv", batch_size=4, max_tokens=None)
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config(embedding={"dim": 8}, encoder={"type": "averaging"}, dropout=0.0)
task = DocumentClassification.Config()
optimizer = AdamW.Config(lr=0.05)
'''

PLAIN = (
    DATA
    + """

class trainer:
    def __init__(self, task, train_data, optimizer, max_epochs: int = 3):
        self.task, self.optimizer, self.max_epochs = task, optimizer, max_epochs
        self.batches = task.batches(train_data, train=True, seed=1)

    def fit(self) -> Progress:
        steps = 0
        for _ in range(self.max_epochs):
            for batch in self.batches:
                loss = self.task.training_step(batch)
                self.optimizer.zero_grad()
                (loss.total / loss.count).backward()
                self.optimizer.step()
                steps += 1
        return Progress(steps=steps, epochs=self.max_epochs)
"""
)

KEPT = (
    DATA
    + '''

class Mine(Component):
    """Saves itself every five steps."""

    class Config(Config):
        max_steps: int = setting(12, in_key=False)
        fail_at: int = setting(0, in_key=False)

    def __init__(self, config, *, task, train_data, optimizer, xp):
        self.config, self.task, self.optimizer = config, task, optimizer
        self.checkpoints = Checkpoints(xp.folder / "checkpoints")
        self.batches = task.batches(train_data, train=True, seed=1)
        self.steps = 0

    def state_dict(self):
        parts = {"optimizer": self.optimizer, "batches": self.batches}
        return {"steps": self.steps, **{name: part.state_dict() for name, part in parts.items()}}

    def load_state_dict(self, state):
        self.steps = state["steps"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.batches.load_state_dict(state["batches"])

    def fit(self) -> Progress:
        while True:
            for batch in self.batches:
                torch.manual_seed(self.steps)
                loss = self.task.training_step(batch)
                self.optimizer.zero_grad()
                (loss.total / loss.count).backward()
                self.optimizer.step()
                self.steps += 1
                if self.steps % 5 == 0:
                    parts = {"model": self.task.module, "trainer": self}
                    self.checkpoints.save(self.steps, parts, write_text=self.task.text.save)
                if self.steps == self.config.fail_at:
                    raise RuntimeError("the power is gone")
                if self.steps == self.config.max_steps:
                    return Progress(steps=self.steps)


trainer = Mine.Config()
'''
)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a recipe and its data into the folder of the test."""
    monkeypatch.chdir(tmp_path)
    rows = [("good", "what a fine day"), ("bad", "what a grey day"), ("good", "fine and warm")]
    text = "".join(f"{label}\t{text} {i}\n" for i in range(6) for label, text in rows)
    (tmp_path / "rows.tsv").write_text(text)

    def write(source, name="own.py"):
        (tmp_path / name).write_text(source)
        return name

    return write


def weights(folder, step):
    manifest = Manifest.read(folder / "checkpoints" / f"step-{step:08d}")
    return manifest.files["model.safetensors"].sha256


def test_its_progress_is_the_result_and_its_weights_answer(script, caplog):
    run = textmill.train(script(PLAIN))
    assert run.result == {"steps": 15, "epochs": 3}
    assert textmill.load(run.folder)("a fine day").label == "good"
    found = textmill.evaluate(run.folder, ["valid_data.path=rows.tsv"])
    assert found["valid_data"].values["accuracy"] == 1.0
    caplog.set_level("INFO", logger="textmill")
    before = weights(run.folder, 15)
    assert textmill.train("own.py") == run
    assert caplog.messages[-1] == f"This run is finished: {run.folder}"
    assert weights(run.folder, 15) == before


def test_one_with_a_state_goes_on_where_it_saved_itself(script, caplog):
    whole = textmill.train(script(KEPT), run_dir="whole")
    with pytest.raises(RuntimeError, match="the power is gone"):
        textmill.train("own.py", ["trainer.fail_at=8"], run_dir="cut")
    caplog.set_level("INFO", logger="textmill")
    assert textmill.train("own.py", run_dir="cut").result == whole.result
    assert "Resumed at step 5." in caplog.messages
    cut = whole.folder.with_name("cut")
    assert weights(cut, 12) == weights(whole.folder, 12)


def test_one_without_a_state_trains_anew_and_says_so(script, caplog):
    source = KEPT.replace("def state_dict", "def own_state")
    whole = textmill.train(script(source.replace('"trainer": self', '"optimizer": self.optimizer')))
    with pytest.raises(RuntimeError, match="the power is gone"):
        textmill.train("own.py", ["trainer.fail_at=8"], run_dir="cut")
    assert textmill.train("own.py", run_dir="cut").result == whole.result
    assert "Mine has no state_dict: it trains anew." in caplog.messages


@pytest.mark.parametrize(("returns", "found"), [("return steps", "a int"), ("", "None")])
def test_one_that_returns_no_progress_is_told_what_is_wanted(script, returns, found):
    source = PLAIN.replace("return Progress(steps=steps, epochs=self.max_epochs)", returns)
    with pytest.raises(RunError) as caught:
        textmill.train(script(source), run_dir="run")
    said = f"trainer.fit() returned {found}; wanted a textmill.training.Progress(steps=..., epochs"
    assert str(caught.value).startswith(said)


NO_TASK = (
    "the recipe's trainer does not take 'task', whose module's weights a run saves: nothing could "
    "be evaluated or predicted with. Give it a parameter 'task', and train task.module."
)
NO_FIT = "the ingredient 'trainer' is a trainer, which has no method fit() -> Progress."


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (f"{DATA}\n\nclass trainer:\n    def __init__(self, module): ...\n", NO_TASK),
        (f"{DATA}\n\nclass trainer:\n    def __init__(self, task, train_data): ...\n", NO_FIT),
    ],
)
def test_what_could_not_be_run_or_used_is_refused_before_it_trains(script, source, text, tmp_path):
    with pytest.raises(UserError) as caught:
        textmill.train(script(source), run_dir="run")
    assert str(caught.value) == text
    assert not (tmp_path / "run").exists()
    assert check("own.py").problems == [f"trainer: {text}" if text == NO_FIT else text]
