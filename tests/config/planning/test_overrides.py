"""Settings that go over a recipe's from Python: a dictionary means what a command line means."""

from pathlib import Path

import pytest

from textmill.config.planning.overrides import words_of
from textmill.errors import PlanError
from textmill.recipes.planning import plan_recipe
from textmill.training import Every, Selection


def settings(overrides):
    return plan_recipe("classification/docnn", overrides, targets=["trainer"]).plan.settings


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            {"trainer.max_steps": 10, "lr": 1e-3, "valid_data": None},
            ["trainer.max_steps=10", "lr=1e-3", "valid_data=null"],
        ),
        (
            {"trainer": {"max_time": "15m", "selection": {"patience": 3}, "seed": 7}},
            ["trainer.max_time=15m", "trainer.selection.patience=3", "trainer.seed=7"],
        ),
        (
            {"model.encoder": {"type": "lstm", "hidden_dim": 6}, "model.hidden": (4, 2)},
            ["model.encoder.type=lstm", "model.encoder.hidden_dim=6", "model.hidden=[4, 2]"],
        ),
        (
            {"train_data": {"path": Path("a b: c.tsv")}, "trainer.evaluate_every": Every(5)},
            ["train_data.path=a b: c.tsv", "trainer.evaluate_every=5 steps"],
        ),
        (
            {
                "trainer.selection": Selection.Config(metric="loss", patience=2),
                "fast.linear": "torch",
            },
            ["trainer.selection={metric: loss, patience: 2}", "fast.linear=torch"],
        ),
        ({"optimizer": {"type": "sgd", "lr": 1}}, ["optimizer.type=sgd", "optimizer.lr=1"]),
        (
            {"trainer.initialize": "no", "valid_data.path": "null"},
            ["trainer.initialize=no", "valid_data.path='null'"],
        ),
    ],
)
def test_a_dictionary_means_what_the_words_mean(overrides, words):
    assert settings(overrides) == settings(words)


def test_one_word_needs_no_list():
    assert words_of("trainer.max_steps=3") == ["trainer.max_steps=3"]
    assert words_of({}) == words_of(()) == []


def test_what_is_wrong_in_a_dictionary_is_said_as_of_words():
    with pytest.raises(PlanError) as caught:
        settings({"trainer": {"max_steps": "10k", "learning_rate": 1}, "modle": {"dropout": 0.1}})
    assert [problem.message.partition(" It has")[0] for problem in caught.value.problems] == [
        "'modle' is no ingredient of this recipe. Did you mean 'model'?",
        "trainer has no setting 'learning_rate'. In textmill it is optimizer.lr.",
        "trainer.max_steps: wanted int, found '10k'.",
    ]
