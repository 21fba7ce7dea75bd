"""Numbers are those of rouge-score, whose words are recorded: it is maintained no more."""

import json
import random
from pathlib import Path

import pytest
from nltk.stem.porter import PorterStemmer

from textmill.errors import UserError
from textmill.metrics.metric import MetricError
from textmill.metrics.rouge import Rouge, stem

RECORDED = json.loads((Path(__file__).parent / "recorded" / "rouge_score.json").read_text("utf-8"))
KINDS = RECORDED["kinds"]


@pytest.mark.parametrize(("stems", "best"), [(False, "best"), (True, "best_of_stems")])
def test_the_numbers_are_those_of_rouge_score(stems, best):
    for row in RECORDED["texts"]:
        metric = Rouge.Config(stems=stems).build()
        metric.update([row["text"]], [row["references"]])
        assert metric.compute() == dict(zip(KINDS, row[best], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_chooses_the_reference_of_all(kind):
    for row in RECORDED["texts"]:
        every = [dict(zip(KINDS, scores, strict=True)) for scores in row["each"]]
        metric = Rouge.Config(chosen_by=kind).build()
        metric.update([row["text"]], [row["references"]])
        assert metric.compute() == max(every, key=lambda scores: scores[kind])


def test_a_corpus_is_the_mean_of_its_rows():
    metric = Rouge.Config(kinds=("rougeL", "rouge1")).build()
    metric.update(["a b", ""], [["a b"], ["a"]])
    assert metric.compute() == {"rougeL": 0.5, "rouge1": 0.5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": ["rouge3"]}, r"\.kinds\[0\]: wanted one of 'rouge1', .* found 'rouge3'"),
        ({"kinds": []}, "The kinds of ROUGE are rouge1, .* but given is none"),
        ({"chosen_by": "rouge9"}, r"\.chosen_by: wanted one of 'rouge1', .* found 'rouge9'"),
    ],
)
def test_unknown_kinds(settings, message):
    with pytest.raises(UserError, match=message):
        Rouge.Config(**settings)


def test_each_text_has_a_reference():
    with pytest.raises(MetricError, match=r"Rouge needs .* but text 1 of 1 has none"):
        Rouge.Config().build().update(["a"], [[]])


ENDINGS = [
    "ational", "tional", "enci", "anci", "izer", "bli", "alli", "entli", "eli", "ousli",
    "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti",
    "biliti", "fulli", "logi", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al",
    "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "sion",
    "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "sses", "ies", "ss", "s", "ied",
    "eed", "ed", "ing", "y", "ly", "e", "ll", "l", "at", "bl", "iz",
]  # fmt: skip


def word(chance):
    letters = "".join(chance.choices("aeiouybcdlnrstwxz", k=chance.randint(0, 6)))
    return letters + "".join(chance.choices(ENDINGS, k=chance.randint(0, 2)))


def test_made_words_have_the_stems_of_nltk():
    chance, oracle = random.Random(1), PorterStemmer()
    words = {word(chance) for _ in range(20_000)} - {""}
    assert len(words) > 10_000
    assert [(w, stem(w)) for w in words] == [(w, oracle.stem(w)) for w in words]
