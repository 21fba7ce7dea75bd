import collections
import math
import random
import re
import string

import pytest

from textmill.metrics.accumulators import SquadScores, normalized_answer
from textmill.metrics.metric import MetricError

# What the paper and the script of SQuAD 2.0 describe, step by step, for the tests alone.


def normalized(text: str) -> str:
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    text = re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text)
    return " ".join(text.split())


def f1(right: str, given: str) -> float:
    gold, words = normalized(right).split(), normalized(given).split()
    same = sum((collections.Counter(gold) & collections.Counter(words)).values())
    if not gold or not words:
        return float(gold == words)
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(gold)
    return 2 * precision * recall / (precision + recall)


WORDS = ["the", "The", "a", "an", "U.S.", "1066", "Normans,", "of", "is-land", "été", "¿", "-", ""]


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(0, 5)))


@pytest.mark.parametrize("seed", range(10))
def test_as_the_script_of_squad(seed: int) -> None:
    chance = random.Random(seed)
    given = [text(chance) for _ in range(40)]
    right = [[text(chance) for _ in range(chance.randint(0, 3))] for _ in given]
    exact, overlap = [], []
    for answer, references in zip(given, right, strict=True):
        kept = [reference for reference in references if normalized(reference)] or [""]
        exact.append(max(int(normalized(r) == normalized(answer)) for r in kept))
        overlap.append(max(f1(r, answer) for r in kept))
    metric = SquadScores()
    metric.update(given, right)
    values = metric.compute()
    for prefix, wanted in (("", {True, False}), ("has_answer/", {True}), ("no_answer/", {False})):
        rows = [i for i, references in enumerate(right) if bool(references) in wanted]
        mean = [sum(column[i] for i in rows) / len(rows) for column in (exact, overlap)]
        found = [values[f"{prefix}exact_match"], values[f"{prefix}f1"]]
        assert found == pytest.approx(mean)


def test_articles_go_as_words_and_after_punctuation() -> None:
    assert normalized_answer("A theory: the a.n.") == "theory"
    assert normalized_answer("an-other  THE end!") == "another end"


def test_predicting_nothing_is_right_where_there_is_no_answer() -> None:
    # squad_tiny.json of PyText: 112 of 208 questions have none, so EM = F1 = 53.846 %.
    metric = SquadScores()
    metric.update([""] * 208, [[]] * 112 + [["Paris"]] * 96)
    values = metric.compute()
    assert values["exact_match"] == values["f1"] == pytest.approx(0.53846, abs=1e-5)
    assert (values["has_answer/f1"], values["no_answer/exact_match"]) == (0.0, 1.0)


def test_a_group_without_rows_has_no_value() -> None:
    metric = SquadScores()
    metric.update(["Paris"], [["Paris"]])
    assert math.isnan(metric.compute()["no_answer/f1"])
    assert metric.compute()["f1"] == 1.0


def test_references_are_a_list() -> None:
    metric = SquadScores()
    with pytest.raises(MetricError) as error:
        metric.update(["Paris", "Rome"], [["Paris"], "Rome"])
    assert str(error.value) == (
        "SquadScores needs a list of right answers (empty: none) for each question, "
        "but question 2 of 2 has the string 'Rome'."
    )
    assert repr(metric.compute()) == repr(SquadScores().compute())
