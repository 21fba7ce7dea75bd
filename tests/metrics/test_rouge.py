import random
from typing import Any

import pytest
from rouge_score.rouge_scorer import RougeScorer

from weft.metrics.metric import MetricError
from weft.metrics.rouge import Rouge

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
# Few distinct words: many common subsequences of one length, of which one has to be chosen.
WORDS = [
    "the",
    "The",
    "cat",
    "cats",
    "dying",
    "Dies",
    "sat",
    "on",
    "U.S.",
    "l'été",
    "42",
    "...",
    "\n",
    "\n\n",
    "\u2028",
]


def text(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(0, most)))


@pytest.mark.parametrize("stems", [False, True])
@pytest.mark.parametrize("most", [3, 12, 80])
def test_the_numbers_are_those_of_rouge_score(most: int, stems: bool) -> None:
    chance = random.Random(most)
    scorer = RougeScorer(KINDS, use_stemmer=stems)
    for _ in range(40):
        given = text(chance, most)
        right = [text(chance, most) for _ in range(chance.randint(1, 3))]
        expected = scorer.score_multi(right, given)
        metric = Rouge.Config(stems=stems).build()
        metric.update([given], [right])
        assert metric.compute() == {kind: expected[kind].fmeasure for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_chooses_the_reference_of_all(kind: str) -> None:
    chance = random.Random(kind)
    scorer = RougeScorer(KINDS)
    for _ in range(20):
        given, right = text(chance, 12), [text(chance, 12) for _ in range(3)]
        every = [scorer.score(one, given) for one in right]
        best = max(every, key=lambda scores: scores[kind].fmeasure)
        metric = Rouge.Config(chosen_by=kind).build()  # type: ignore[arg-type]
        metric.update([given], [right])
        assert metric.compute() == {kind: best[kind].fmeasure for kind in KINDS}
    with pytest.raises(MetricError, match="counts with the settings"):
        Rouge.Config(chosen_by=kind).build().merge(Rouge.Config().build())  # type: ignore[arg-type]
    with pytest.raises(MetricError, match="counts with the settings"):
        Rouge.Config(stems=True).build().merge(Rouge.Config().build())


def test_a_corpus_is_the_mean_of_its_rows() -> None:
    metric = Rouge.Config(kinds=("rougeL", "rouge1")).build()
    metric.update(["a b", ""], [["a b"], ["a"]])
    assert metric.compute() == {"rougeL": 0.5, "rouge1": 0.5}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"kinds": ["rouge3"]}, "'rouge3'"),
        ({"kinds": []}, "none"),
        ({"chosen_by": "rouge9"}, "'rouge9'"),
    ],
)
def test_unknown_kinds(settings: dict[str, Any], found: str) -> None:
    with pytest.raises(MetricError) as error:
        Rouge.Config(**settings)
    assert str(error.value) == (
        f"The kinds of ROUGE are rouge1, rouge2, rougeL, rougeLsum, but given is {found}."
    )


def test_each_text_has_a_reference() -> None:
    with pytest.raises(MetricError, match=r"Rouge needs .* but text 1 of 1 has none"):
        Rouge.Config().build().update(["a"], [[]])
