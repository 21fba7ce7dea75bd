"""What cannot be of use, or cannot be, is refused before any data is read."""

from pathlib import Path

import pytest

from textmill.preflight.check import check


@pytest.fixture(autouse=True)
def phrases(here):
    Path("phrases.tsv").write_text("verb\tsee\n")


@pytest.mark.parametrize(
    ("experiment", "model"),
    [("classification/ngrams", "ngram_classifier"), ("regression/ngrams", "ngram_regressor")],
)
def test_a_dictionary_for_a_model_that_takes_none(experiment, model):
    found = check(experiment, ["dictionary.type=phrases", "dictionary.path=phrases.tsv"])
    assert found.problems == [
        f"dictionary: the model {model} takes none, so it would be of no use. Leave dictionary "
        "out, or choose another model."
    ]


def test_ngrams_beside_a_text_for_a_model_that_has_its_own():
    found = check("classification/docnn", ["model.type=ngram_classifier"])
    assert (
        "ngrams: the model ngram_classifier takes none, so it would be of no use. Leave ngrams "
        "out, or choose another model."
    ) in found.problems
    words = ["model.type=ngram_classifier", "ngrams=null"]
    assert "of no use" not in "".join(check("classification/docnn", words).problems)


def test_numbers_and_a_dictionary_for_models_that_take_them():
    for experiment, words in {
        "classification/ngrams": ["dense.type=fitted", "train_data.columns=[label,text,dense]"],
        "classification/docnn": ["dictionary.type=phrases", "dictionary.path=phrases.tsv"],
    }.items():
        found = check(experiment, words)
        assert found.problems, "there is no data"
        assert "of no use" not in "".join(found.problems)
