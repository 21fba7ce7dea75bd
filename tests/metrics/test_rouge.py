import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from weft.metrics.metric import MetricError
from weft.metrics.rouge import Rouge

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
# Few distinct words: many common subsequences of one length, of which one has to be chosen.
WORDS = ["the", "The", "cat", "sat", "on", "U.S.", "l'été", "42", "...", "\n", "\n\n", "\u2028"]


def text(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(0, most)))


@pytest.mark.parametrize("most", [3, 12, 80])
def test_the_numbers_are_those_of_rouge_score(most: int) -> None:
    chance = random.Random(most)
    scorer = RougeScorer(KINDS)
    for _ in range(40):
        given = text(chance, most)
        right = [text(chance, most) for _ in range(chance.randint(1, 3))]
        expected = scorer.score_multi(right, given)
        metric = Rouge()
        metric.update([given], [right])
        assert metric.compute() == {kind: expected[kind].fmeasure for kind in KINDS}


def test_a_corpus_is_the_mean_of_its_rows() -> None:
    metric = Rouge(["rougeL", "rouge1"])
    metric.update(["a b", ""], [["a b"], ["a"]])
    assert metric.compute() == {"rougeL": 0.5, "rouge1": 0.5}


@pytest.mark.parametrize(("kinds", "found"), [(["rouge3"], "'rouge3'"), ([], "none")])
def test_unknown_kinds(kinds: list[str], found: str) -> None:
    with pytest.raises(MetricError) as error:
        Rouge(kinds)  # type: ignore[arg-type]
    assert str(error.value) == (
        f"The kinds of ROUGE are rouge1, rouge2, rougeL, rougeLsum, but given is {found}."
    )


def test_each_text_has_a_reference() -> None:
    with pytest.raises(MetricError, match=r"Rouge needs .* but text 1 of 1 has none"):
        Rouge().update(["a"], [[]])
