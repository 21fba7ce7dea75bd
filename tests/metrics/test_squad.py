import collections
import math
import random
import re
import string

import pytest

from textmill.metrics.accumulators import ExactMatch, SquadScores
from textmill.metrics.label_scores import Ranking
from textmill.metrics.metric import MetricError

# What the paper and the script of SQuAD 2.0 describe, step by step, for the tests alone.


def normalized(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    text = re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text)
    return " ".join(text.split())


def f1(right, given):
    gold, words = normalized(right).split(), normalized(given).split()
    same = sum((collections.Counter(gold) & collections.Counter(words)).values())
    if not gold or not words:
        return float(gold == words)
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(gold)
    return 2 * precision * recall / (precision + recall)


WORDS = ["the", "The", "a", "an", "U.S.", "1066", "Normans,", "of", "is-land", "été", "¿", "-", ""]


def text(chance):
    return " ".join(chance.choices(WORDS, k=chance.randint(0, 5)))


@pytest.mark.parametrize("seed", range(4))
def test_as_the_script_of_squad(seed):
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


def test_predicting_nothing_is_right_where_there_is_no_answer():
    # squad_tiny.json of PyText: 112 of 208 questions have none, so EM = F1 = 53.846 %.
    metric = SquadScores()
    metric.update([""] * 208, [[]] * 112 + [["Paris"]] * 96)
    values = metric.compute()
    assert values["exact_match"] == values["f1"] == pytest.approx(0.53846, abs=1e-5)
    assert (values["has_answer/f1"], values["no_answer/exact_match"]) == (0.0, 1.0)


def test_references_are_a_list():
    metric = SquadScores()
    with pytest.raises(MetricError, match="question 2 of 2 has the string 'Rome'"):
        metric.update(["Paris", "Rome"], [["Paris"], "Rome"])
    assert repr(metric.compute()) == repr(SquadScores().compute())


def test_white_space_alone_is_ignored():
    metric = ExactMatch.Config().build()
    metric.update([" a\tb\n", "ab", "A b", "a b."], [["a b"]] * 4)
    assert metric.compute() == {"exact_match": 0.25}


def test_any_reference_will_do_and_an_empty_one_too():
    metric = ExactMatch.Config().build()
    metric.update(["b", ""], [["a", "b"], ["a", " "]])
    assert metric.compute() == {"exact_match": 1.0}


def test_a_tie_is_wrong():
    metric = Ranking()
    metric.update([0.5, 0.5, 1.0, 0.0], [0.5, 0.25, 0.0, 1.0])
    assert metric.compute() == {
        "ranking_accuracy": 0.5,
        "avg_score_difference": 0.0625,
        "num_examples": 4.0,
    }


def test_a_score_that_is_no_number_is_wrong_and_shows():
    metric = Ranking()
    metric.update([math.nan, 1.0], [0.0, 0.0])
    assert metric.compute()["ranking_accuracy"] == 0.5
    assert math.isnan(metric.compute()["avg_score_difference"])


def test_the_difference_is_exact():
    metric = Ranking()
    metric.update([1e16, 1.0, -1e16], [0.0, 0.0, 0.0])
    assert metric.compute()["avg_score_difference"] == 1 / 3


def test_one_of_each_a_row():
    with pytest.raises(MetricError, match=r"Ranking needs .* given 1 and 2 of them"):
        Ranking().update([1.0], [1.0, 2.0])
