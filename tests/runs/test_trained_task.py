"""Another run as an ingredient of a task: what it gives, and that nothing of it is kept."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

import textmill
from textmill.errors import UserError
from textmill.recipes import registries
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.several.trained_task import TrainedTask

WORDS = {"good": "pos", "fine": "pos", "bad": "neg", "poor": "neg"}


@registries.tasks.register("taught_classification")
class Taught(DocumentClassification):
    """Learns what a teacher answers, whatever label the row has."""

    class Config(DocumentClassification.Config):
        """And whose answers."""

        teacher: TrainedTask.Config

    teacher = None

    def training_step(self, batch, examples=()):
        if self.teacher is None:
            self.teacher = self.config.teacher.build(device=str(self.device))
        names = self.text.label.labels.names
        told = [names.index(a.label) for a in self.teacher.predict(examples)]
        batch["label"].copy_(torch.tensor(told))
        return super().training_step(batch, examples)


def rows(path, label):
    lines = [f"{label(w)}\tit was {w} {i}" for i in range(12) for w in WORDS]
    path.write_text("".join(f"{line}\n" for line in lines))
    return f"{path.stem}_data.path={path}"


@pytest.fixture
def taught(tmp_path, monkeypatch):
    """A teacher, and a run that learnt from it on rows whose labels are all wrong."""
    monkeypatch.chdir(tmp_path)
    valid = rows(tmp_path / "valid.tsv", WORDS.get)
    right = [rows(tmp_path / "train.tsv", WORDS.get), valid, "trainer.max_steps=60"]
    name = "classification/averaging/local"
    textmill.train(name, [*right, "optimizer.lr=0.02"], run_dir=tmp_path / "teacher")
    wrong = rows(tmp_path / "train.tsv", lambda word: "neg" if WORDS[word] == "pos" else "pos")
    words = [wrong, valid, "trainer.max_steps=60", "optimizer.lr=0.02"]
    words += ["task.type=taught_classification", "task.teacher.path=teacher"]
    return textmill.train(name, words, run_dir=tmp_path / "taught")


def test_a_task_learns_from_the_answers_of_another_run_and_predicts_without_it(taught, tmp_path):
    texts = [f"it was {word} 3" for word in WORDS]
    built = TrainedTask.Config(path=tmp_path / "teacher").build(device="cpu")
    assert not built.module.training
    assert not any(p.requires_grad for p in built.module.parameters())
    teacher = built.predict([{"text": text} for text in texts])
    shutil.rmtree(tmp_path / "teacher")
    assert [a.label for a in textmill.load(taught.folder)(texts)] == [a.label for a in teacher]
    assert [a.label for a in teacher] == list(WORDS.values())
    (weights,) = taught.folder.glob("checkpoints/step-*60/model.safetensors")
    plain = textmill.load(taught.folder).task.module.state_dict()
    assert load_file(weights).keys() == plain.keys()  # of the teacher nothing is saved


def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="nothing"):
        TrainedTask.Config(path=tmp_path / "nothing").build()
