"""Experiments from Python: the modes, what comes back, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import textmill
from textmill.data.text_rows import TextRows
from textmill.errors import CodeNotAllowedError, UserError
from textmill.models.classifier import Classifier
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Constant, Selection, Trainer

ROWS = "ham\tsee you at home\nspam\twin cash now\nham\thome late\nspam\tcash for you\n" * 3


SCRIPT = """
from pathlib import Path

import textmill
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Classifier
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Trainer

train_data = TextRows.Config(path=Path("rows.tsv"), batch_size=4)
valid_data = textmill.like("train_data", shuffle=False)
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config()
task = DocumentClassification.Config()
trainer = Trainer.Config(max_steps=1)
"""


class Loud(DocumentClassification):
    """Classification of a script's own, registered nowhere."""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text(ROWS)
    return textmill.Recipe(
        "Classifies messages.",
        train_data=TextRows.Config(path=Path("rows.tsv"), batch_size=4),
        valid_data=textmill.like("train_data", shuffle=False),
        tokenizer=FittedWords.Config(),
        labels=FittedLabels.Config(),
        model=Classifier.Config(
            embedding=WordEmbedding.Config(dim=8), encoder=AveragingEncoder.Config(), dropout=0.0
        ),
        task=DocumentClassification.Config(),
        optimizer=Adam.Config(lr=0.05),
        lr_scheduler=Constant.Config(),
        trainer=Trainer.Config(max_epochs=8, selection=Selection.Config(metric="accuracy")),
    )


def test_the_modes(recipe):
    trained = textmill.run_experiment(recipe, "train", "run")
    assert trained.folder == Path("run")
    assert trained.result["steps"] == 24
    assert not trained.evaluations
    found = textmill.run_experiment(recipe, "evaluate", "run")
    assert set(found.evaluations) == {"valid_data"}
    values = found.evaluations["valid_data"].values
    assert values["accuracy"] == trained.result["best"]["accuracy"] == 1
    assert len(found.evaluations["valid_data"].rows) == 12
    both = textmill.run_experiment(recipe, "train_and_evaluate", "other")
    assert both.result["steps"] == 24
    assert both.evaluations["valid_data"].values == values
    assert textmill.evaluate("run")["valid_data"].values == values


def test_nothing_is_evaluated_that_was_not_trained(recipe):
    with pytest.raises(UserError, match=r"^Nothing was trained in nowhere, so nothing can be"):
        textmill.run_experiment(recipe, "evaluate", "nowhere")
    assert not Path("nowhere").exists()
    textmill.run_experiment(recipe, "train", "run")
    with pytest.raises(UserError, match=r"^run holds another run"):
        textmill.run_experiment(recipe, "evaluate", "run", ["model.embedding.dim=4"])


def test_an_unknown_mode(recipe):
    with pytest.raises(UserError, match=r"^mode is 'eval'; wanted one of train, evaluate,"):
        textmill.run_experiment(recipe, "eval")


def test_the_trained_model_has_the_weights_of_its_best_evaluation(recipe):
    predictor, best = textmill.train_model(recipe, run_dir="run")
    assert best == {"step": best["step"], "accuracy": 1}
    assert [str(a) for a in predictor(["win cash", "late at home"])] == ["spam", "ham"]
    loaded = textmill.load("run")
    assert loaded.checkpoint == predictor.checkpoint == f"step-{best['step']:08d}"
    weights = predictor.task.module.state_dict()
    for name, weight in loaded.task.module.state_dict().items():
        assert torch.equal(weight, weights[name])


def test_a_task_that_nothing_registers_comes_back_in_the_process_that_has_it(recipe):
    recipe.ingredients["task"] = replace(Loud.Config(), column="text")
    predictor, _ = textmill.train_model(recipe, run_dir="run")
    assert type(predictor.task) is Loud
    assert str(predictor("win cash")) == "spam"
    found = textmill.run_experiment(recipe, "evaluate", "run")
    assert found.evaluations["valid_data"].values["accuracy"] == 1


def test_a_task_as_training_starts_with_it(recipe):
    task = textmill.create_task(recipe)
    assert type(task) is DocumentClassification
    assert [str(a) in ("ham", "spam") for a in task.predict([{"text": "win"}])] == [True]
    again = textmill.create_task(recipe)
    for one, other in zip(task.module.parameters(), again.module.parameters(), strict=True):
        assert torch.equal(one, other)
    seeded = textmill.create_task(recipe, ["task.max_length=3"])
    assert seeded.config.max_length == 3
    frozen = textmill.train(recipe, ["optimizer.lr=1e-30"], run_dir="run")
    for one, other in zip(
        task.module.parameters(), textmill.load(frozen.folder).task.module.parameters(), strict=True
    ):
        assert torch.equal(one, other)  # no rate: what training starts with


def test_a_task_takes_the_weights_it_is_given(recipe, caplog):
    run = textmill.train(recipe, {"trainer": {"max_steps": 3}, "lr": 0.1}, run_dir="run")
    assert run.result["steps"] == 3
    trained = textmill.load(run.folder).task.module.state_dict()
    for state in (trained, run.folder, str(run.folder / "checkpoints" / "step-00000003")):
        task = textmill.create_task(recipe, model_state=state)
        for name, tensor in task.module.state_dict().items():
            assert torch.equal(tensor, trained[name])
    head = next(name for name in trained if name.endswith("bias"))
    del trained[head]
    with pytest.raises(UserError) as caught:
        textmill.create_task(recipe, model_state={**trained, "scale": torch.zeros(1)})
    assert f"missing key '{head}'\n  unexpected key 'scale'" in str(caught.value)
    with pytest.raises(UserError, match="is 'none', where no checkpoint is"):
        textmill.create_task(recipe, model_state="none")
    found = textmill.evaluate(run.folder, {"valid_data": {"batch_size": 1}})
    assert list(found) == ["valid_data"]


def test_code_that_a_run_keeps_is_run_where_it_is_allowed(recipe):
    source = '''

class Mine(DocumentClassification):
    """A task of the script's own."""


task = Mine.Config()
'''
    Path("mine.py").write_text(SCRIPT + source)
    run = textmill.run_experiment("mine.py", "train_and_evaluate", "run")
    for call in (textmill.run_experiment, textmill.train_model, textmill.create_task):
        with pytest.raises(CodeNotAllowedError):
            call("run")
        call("run", allow_code=True)
    assert textmill.run_experiment("run", "train").result == run.result  # none is needed to say so
    found = textmill.run_experiment("run", "evaluate", allow_code=True)
    values = run.evaluations["valid_data"].values
    assert found.evaluations["valid_data"].values == values
