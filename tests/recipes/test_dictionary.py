"""Dictionaries from the recipe to the answer: what they know decides where words are unseen."""

import json
import random

import pytest

import textmill
from textmill.errors import DataError

QUIET = ("reporters.console=false", "reporters.html=false")
QUICK = ("trainer.max_steps=60", "trainer.max_epochs=null", "optimizer.lr=0.02")
NAMES = {"drink": ["mate", "ka va", "raki"], "song": ["yesterday", "la mer", "hurt"]}
"""By kind; those of the first half of ``phrases`` are in the training rows, these in none."""


def phrases():
    """A kind and a phrase of one or two words: 20 of each kind, and then NAMES."""
    draw = random.Random(3)
    for kind, unseen in NAMES.items():
        for number in range(20):
            word = "".join(draw.choices("abcdefgh", k=6))
            yield kind, word if number % 2 else f"{word} {''.join(draw.choices('klmn', k=3))}"
        yield from ((kind, phrase) for phrase in unseen)


def rows(*, seen):
    unseen = {phrase for kind in NAMES.values() for phrase in kind}
    found = [(k, p) for k, p in phrases() if (p not in unseen) == seen]
    random.Random(1).shuffle(found)
    return found


def tags(kind, phrase):
    return " ".join(f"{'I' if place else 'B'}-{kind}" for place, _ in enumerate(phrase.split()))


def given(kind, phrase):
    places = range(2, 2 + len(phrase.split()))
    return json.dumps([{"tokenIdx": place, "features": {kind: 0.5}} for place in places])


LINES = {
    "classification/bilstm": lambda k, p: f"{k}\tget me {p} now",
    "regression/docnn": lambda k, p: f"{len(k)}\tget me {p} now",
    "tagging/bilstm": lambda k, p: f"get me {p} now\tO O {tags(k, p)} O",
    "joint/bilstm": lambda k, p: f"{k}\tget me {p} now\tO O {tags(k, p)} O",
}
LARGER = ("trainer.max_steps=120", "model.dropout=0.1", "model.encoder.hidden_dim=16")
EXTRA = {
    "tagging/bilstm": (
        "train_data.columns=[words, tags]", "train_data.format=tsv", "dictionary.column=words",
        *LARGER,
    ),
    # The n-grams of made-up names say of others what is not so.
    "joint/bilstm": ("train_data.columns=[label, text, slots]", "ngrams=null", *LARGER),
}  # fmt: skip
RIGHT = {
    "classification/bilstm": lambda answer, k, p: answer.label == k,
    "regression/docnn": lambda answer, k, p: abs(answer.number - len(k)) < 0.4,
    "tagging/bilstm": lambda answer, k, p: (
        [tag[2:] for tag in answer.tags] == ["", "", *[k] * len(p.split()), ""]
    ),
    "joint/bilstm": lambda answer, k, p: (
        [answer.intent, *(tag[2:] for tag in answer.tags)] == [k, "", "", *[k] * len(p.split()), ""]
    ),
}


@pytest.fixture
def train(tmp_path):
    def run(experiment, *words, line=None, folder="run"):
        line = line or LINES[experiment]
        for name, seen in (("train", True), ("valid", False)):
            text = "".join(f"{line(*row)}\n" for row in rows(seen=seen))
            (tmp_path / f"{name}.tsv").write_text(text)
        (tmp_path / "names.tsv").write_text("".join(f"{k}\t{p}\n" for k, p in phrases()))
        data = [f"{name}_data.path={tmp_path / name}.tsv" for name in ("train", "valid")]
        words = (*data, *QUIET, *QUICK, "tokenizer.type=fitted_words", *words)
        return textmill.train(f"{experiment}/local", [*words], run_dir=tmp_path / folder)

    return run


@pytest.mark.parametrize(
    "experiment",
    [next(iter(LINES)), *(pytest.param(e, marks=pytest.mark.slow) for e in [*LINES][1:])],
)
def test_phrases_tell_of_words_that_training_never_saw(experiment, train, tmp_path):
    path = tmp_path / "names.tsv"
    words = ["dictionary.type=phrases", f"dictionary.path={path}", *EXTRA.get(experiment, ())]
    folder = train(experiment, *words).folder
    path.unlink()  # it is saved with the run
    predictor, unseen = textmill.load(folder), rows(seen=False)
    for (kind, phrase), answer in zip(
        unseen, predictor([f"get me {phrase} now" for _, phrase in unseen]), strict=True
    ):
        assert RIGHT[experiment](answer, kind, phrase), (phrase, answer)


def test_kinds_that_rows_have_as_json(train):
    def line(kind, phrase):
        return f"{kind}\tget me {phrase} now\t{given(kind, phrase)}"

    words = ("dictionary.type=given", "train_data.columns=[label, text, dictionary]")
    run = train("classification/bilstm", *words, line=line)
    assert run.result["best"]["accuracy"] == 1
    predictor = textmill.load(run.folder)
    cell = given("drink", "tea")
    assert predictor({"text": "get me tea now", "dictionary": cell}).label == "drink"
    with pytest.raises(DataError, match="reads the columns text, dictionary; a string fills only"):
        predictor("get me tea now")
    with pytest.raises(DataError, match=r"the word at 2 \(from 0\), but the text in 'text' has 2"):
        predictor({"text": "get me", "dictionary": cell})
