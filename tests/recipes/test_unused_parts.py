"""What cannot be of use, or cannot be, is refused before any data is read."""

from pathlib import Path

import pytest

from textmill.preflight.check import check

LARGE = "vocab_size must be at most 4,194,304, but is 10,000,000,000."


@pytest.fixture(autouse=True)
def phrases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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


@pytest.mark.parametrize(
    "tokenizer",
    [
        "type: fitted_words",
        "type: fitted_ngrams",
        *(f"type: fitted, kind: {kind}" for kind in ("bpe", "characters", "bytes")),
    ],
)
def test_a_vocabulary_of_ten_billion_words(tokenizer):
    experiment = "ngrams" if "ngrams" in tokenizer else "averaging/local"
    word = f"tokenizer={{{tokenizer}, vocab_size: {10**10}}}"
    (found,) = check(f"classification/{experiment}", [word]).problems
    assert found.endswith(LARGE)
