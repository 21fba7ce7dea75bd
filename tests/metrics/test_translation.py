"""The oracle is sacrebleu itself, on all sentences at once."""

import itertools
import random

import pytest
import sacrebleu

from textmill.metrics.metric import MetricError
from textmill.metrics.translation import Bleu, ChrF, plain_spaces

REFERENCES = [
    ["Le chat dort sur le lit.", "Le chat est en train de dormir sur le lit."],
    ["Où est la gare, s'il vous plaît ?"],
    ["Elle n'a pas mangé.", "Elle n'a rien mangé.", "Elle n\u2019a point mangé !"],
    ["J'ai 1 234,5 euros (environ).", "J'ai 1234,5 euros, environ."],
    ["Oui."],
    ["« Viens ! » dit-il."],
]
HYPOTHESES = [
    "Le chat dort dans le lit.", "Où est la gare s'il vous plaît ?", "Elle n'a rien mangé !",
    "J'ai 1234,5 euros (environ).", "", "« Viens » , dit-il .",
]  # fmt: skip


def streams(references):
    return [list(stream) for stream in itertools.zip_longest(*references)]


def corpus(seed, rows):
    """Random sentences with one to five references; hypotheses share words with them."""
    chance = random.Random(seed)
    words = [w for texts in REFERENCES for text in texts for w in text.split()]
    references = [
        [
            " ".join(chance.choices(words, k=chance.randint(1, 20)))
            for _ in range(chance.randint(1, 5))
        ]
        for _ in range(rows)
    ]
    hypotheses = []
    for texts in references:
        kept = [w for w in chance.choice(texts).split() if chance.random() < 0.8]
        hypotheses.append(" ".join(kept + chance.choices(words, k=chance.randint(0, 3))))
    return hypotheses, references


def scored(metric, seed):
    """The metric after some updates, and all that it was given."""
    hypotheses, references = corpus(seed, 40) if seed else (HYPOTHESES, REFERENCES)
    for start in range(0, len(hypotheses), 7):
        metric.update(hypotheses[start : start + 7], references[start : start + 7])
    return metric, hypotheses, streams(references)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("tokenize", "lowercase"),
    [("13a", False), ("intl", True), ("char", False), ("none", True), ("zh", False)],
)
def test_bleu_is_sacrebleus(seed, tokenize, lowercase):
    settings = {"tokenize": tokenize, "lowercase": lowercase}
    bleu, *texts = scored(Bleu.Config(**settings, normalize_spaces=False).build(), seed)
    oracle = sacrebleu.metrics.BLEU(**settings, force=True)
    expected = oracle.corpus_score(*texts)
    assert bleu.compute() == {"bleu": expected.score}
    assert str(bleu.score()) == str(expected)
    assert bleu.details() == {"bleu": str(oracle.get_signature())}
    assert 0 < expected.score < 100


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "settings", [{}, {"word_order": 2}, {"char_order": 4, "beta": 3}, {"lowercase": True}]
)
def test_chrf_is_sacrebleus(seed, settings):
    chrf, *texts = scored(ChrF.Config(**settings, normalize_spaces=False).build(), seed)
    oracle = sacrebleu.metrics.CHRF(**settings)
    assert chrf.compute() == {"chrf": oracle.corpus_score(*texts).score}
    assert chrf.details() == {"chrf": str(oracle.get_signature())}


def test_the_signature_counts_references_over_all_updates():
    bleu = Bleu.Config().build()
    assert bleu.details() == {}
    bleu.update(["a"], [["a", "b"]])
    assert bleu.details()["bleu"].startswith("nrefs:2|")
    bleu.update(["a"], [["a"]])
    assert bleu.details()["bleu"].startswith("nrefs:var|")


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none", "zh"])
def test_special_spaces_cost_no_match(tokenize):
    text = "Quoi ? Vraiment ? Oui ! Bien sûr !"
    special = "Quoi\u202f? Vraiment\u00a0? Oui\u2009! Bien sûr\u202f!"
    assert plain_spaces(special) == text
    for normalize in (True, False):  # False too: sacrebleu's own tokenizers split at every space
        bleu = Bleu.Config(tokenize=tokenize, normalize_spaces=normalize).build()
        bleu.update([text, special], [[special], [text]])
        assert bleu.compute()["bleu"] == pytest.approx(100.0)


def test_tokenized_text_raises_no_warning(caplog):
    bleu = Bleu.Config().build()
    bleu.update(["Oui ."] * 200, [["Oui ."]] * 200)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("references", "named"),
    [([["a"]], "2 and 1"), ([["a"], []], "text 2 of 2"), ([["a"], "b"], "the string 'b'")],
)
def test_what_cannot_be_scored_is_refused(references, named):
    with pytest.raises(MetricError, match=named):
        Bleu.Config().build().update(["a", "b"], references)
