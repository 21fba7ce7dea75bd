"""What holds for every metric: batches in any order give the same values.

A new metric is one line in CASES: how it is made, and rows of arguments to its update.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from textmill.config.component import Config
from textmill.metrics.accumulators import ExactMatch, SquadScores
from textmill.metrics.calibration import CalibrationError
from textmill.metrics.classification import Classification, MultiLabel, Spans
from textmill.metrics.frames import Frames, Trees
from textmill.metrics.label_scores import LabelScores, Ranking, Retrieval
from textmill.metrics.metric import Metric
from textmill.metrics.regression import Regression
from textmill.metrics.rouge import Rouge
from textmill.metrics.streaming import Accuracy, BitsPerByte, Mean, Perplexity
from textmill.metrics.translation import Bleu, ChrF
from textmill.recipes import registries

RANDOM = random.Random(20)
WORDS = [
    "le", "la", "un", "une", "chat", "chien", "lit", "dort", "mange", ",", ".", "!", "?", "sur",
    "sous", "l'eau",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    make: Callable[[], Metric]
    rows: list[tuple[Any, ...]]


def sentence():
    return " ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 12)))


def sums(kind):
    # Exponents far apart: a float64 accumulator depends on the order of nearly all of these.
    return [
        (kind(RANDOM.uniform(0, 9) * 10.0 ** RANDOM.randint(-9, 9)), kind(RANDOM.randint(1, 99)))
        for _ in range(60)
    ]


def texts():
    return [([sentence()], [[sentence() for _ in range(RANDOM.randint(1, 4))]]) for _ in range(60)]


def pairs(values):
    """Gold and prediction of 60 batches, some of them empty, two thirds of the rows right."""
    batches = []
    for _ in range(60):
        gold = RANDOM.choices(values, k=RANDOM.randint(0, 4))
        batches.append((gold, [RANDOM.choice([g, g, RANDOM.choice(values)]) for g in gold]))
    return batches


def tagged():
    tags = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    batches = []
    for _ in range(60):
        gold = [RANDOM.choices(tags, k=RANDOM.randint(0, 9)) for _ in range(RANDOM.randint(1, 3))]
        predicted = [[RANDOM.choice([t, t, t, RANDOM.choice(tags)]) for t in row] for row in gold]
        batches.append((gold, predicted))
    return batches


LABELS = ["a", "b", "c"]


def scores():
    return [
        ([RANDOM.choice(LABELS)], [[round(RANDOM.random(), 1) for _ in LABELS]]) for _ in range(60)
    ]


def frames():
    def frame():
        slots = [(slot, RANDOM.randint(0, 2), 3) for slot in LABELS if RANDOM.random() < 0.6]
        return RANDOM.choice(LABELS), slots

    return [([frame(), frame()], [frame(), frame()]) for _ in range(60)]


def trees():
    texts = [f"[IN:{i} x [SL:{s} [IN:{i} y ] ] z ]" for i in LABELS for s in LABELS]
    deep = "[IN:a [SL:b [IN:a [SL:b [IN:c y ] ] ] ] ]"
    return pairs(
        [*texts, "[IN:a [SL:b y ] ]", deep, "[IN:a x ]", "[IN:a [SL:b [IN:a [SL:b y ] ] ] ]"]
    )


def label_sets():
    def labels():
        return [label for label in LABELS if RANDOM.random() < 0.5]

    return [([labels(), labels()], [labels(), labels()]) for _ in range(60)]


def questions():
    rows = texts()
    return [([a], [[] if RANDOM.random() < 0.3 else b]) for [a], [b] in rows]


def numbers():
    batches = []
    for _ in range(60):
        gold = [RANDOM.randint(-9, 9) * 10.0 ** RANDOM.randint(-9, 9) for _ in range(3)]
        batches.append((gold, [g + RANDOM.gauss(0, 1) for g in gold]))
    return batches


def statements():
    """Scores near and far, each with whether its answer is right."""
    scores = [[RANDOM.random() ** RANDOM.randint(1, 9) for _ in range(3)] for _ in range(60)]
    return [(row, [RANDOM.random() < score for score in row]) for row in scores]


def compared():
    def vectors():
        return np.array([[[RANDOM.gauss(0, 1) for _ in range(4)] for _ in range(3)]], np.float32)

    return [([[sentence(), RANDOM.choice(WORDS), sentence()]], vectors()) for _ in range(60)]


def float32(value):
    return torch.tensor(value, dtype=torch.float32)


CASES = {
    "mean of float32": Case(lambda: Mean("loss"), sums(float32)),
    "perplexity": Case(Perplexity, [(t / 1e9, n) for t, n in sums(float32)]),
    "bits_per_byte": Case(BitsPerByte, [(t / 1e9, n) for t, n in sums(float32)]),
    "accuracy": Case(
        Accuracy, [(torch.tensor(k), torch.tensor(k + RANDOM.randint(0, 9))) for k in range(60)]
    ),
    "bleu": Case(lambda: Bleu.Config().build(), texts()),
    "chrf": Case(lambda: ChrF.Config().build(), texts()),
    "classification": Case(
        lambda: Classification(["a", "b", "c"], positive="b"), pairs(["a", "b", "c"])
    ),
    "spans": Case(lambda: Spans(kinds=["PER", "LOC"]), tagged()),
    "label scores": Case(lambda: LabelScores(LABELS), scores()), "frames": Case(Frames, frames()),
    "trees": Case(Trees, trees()), "multilabel": Case(lambda: MultiLabel(LABELS), label_sets()),
    "ranking": Case(Ranking, numbers()), "exact match": Case(ExactMatch.Config().build, texts()),
    "question answering": Case(SquadScores, questions()),
    "rouge": Case(Rouge.Config().build, texts()), "retrieval": Case(Retrieval, compared()),
    "regression": Case(Regression, numbers()),
    "calibration error": Case(CalibrationError, statements()),
}  # fmt: skip


UNWEIGHTED = {"bleu", "chrf", "label scores", "retrieval"}
"""Metrics of whole texts and of ranks; of a regression that is Spearman's."""


@pytest.mark.parametrize("name", sorted(CASES.keys() - UNWEIGHTED))
def test_a_row_of_some_weight_is_the_row_so_often(name):
    case = CASES[name]
    weighted, often, halves = case.make(), case.make(), case.make()
    halves.weight = Fraction(1, 2)
    for number, row in enumerate(case.rows):
        weighted.weight = number % 4
        weighted.update(*row)
        for _ in range(number % 4):
            often.update(*row)
            halves.update(*row)
            halves.update(*row)
    for part in ("compute", "errors"):
        one, *others = (getattr(each, part)() for each in (often, weighted, halves))
        for values in (one, *others):
            values.pop("spearman", None)
        assert others == [one, one]
        assert all(type(value) is float for value in others[1].values())


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def seen(case, rows):
    metric = case.make()
    for row in rows:
        metric.update(*row)
    return metric


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_the_batches_gives_the_same_bits(case, seed):
    whole = seen(case, case.rows)
    other, rows = case.make(), random.Random(seed).sample(case.rows, len(case.rows))
    for row in rows[:30]:
        other.update(*row)
    assert repr(other.compute()) == repr(other.compute())  # which changes nothing
    for row in rows[30:]:
        other.update(*row)
    assert other.compute() == whole.compute()
    assert other.details() == whole.details()
    assert other.errors() == whole.errors()


def test_values_are_floats_with_a_direction_and_nan_when_empty(case):
    empty, full = case.make().compute(), seen(case, case.rows).compute()
    assert list(empty) == list(full) == list(case.make().directions())
    assert all(math.isnan(value) for value in empty.values())
    assert all(type(value) is float and math.isfinite(value) for value in full.values())
    assert set(case.make().directions().values()) <= {"higher", "lower"}


def test_a_standard_error_is_of_a_value_and_half_as_large_for_four_times_the_rows(case):
    once, often = seen(case, case.rows), seen(case, 4 * case.rows)
    errors = once.errors()
    assert set(errors) <= set(once.compute())
    assert all(type(e) is float and math.isfinite(e) and e >= 0 for e in errors.values())
    assert often.errors() == pytest.approx({n: e / 2 for n, e in errors.items()}, rel=0.02)
    assert all(error == 0 for error in case.make().errors().values())


def test_a_metric_of_shares_has_the_error_of_its_share():
    labels = Classification(["a", "b"])
    labels.update(["a"] * 100, ["a"] * 90 + ["b"] * 10)
    assert labels.errors() == {"accuracy": 0.03, "micro_f1": 0.03}
    words = Accuracy("masked_accuracy")
    words.update(9, 10)
    assert words.errors()["masked_accuracy"] == pytest.approx(math.sqrt(0.09 / 10))


@pytest.mark.slow
def test_the_error_of_f1_is_that_of_drawn_spans():
    chance, drawn, errors = random.Random(4), [], []
    for _ in range(400):
        spans = Spans()
        for _ in range(150):  # a span that is found, one that is missed, one that is none
            kind = chance.choices(["both", "gold", "found"], [0.6, 0.3, 0.1])[0]
            gold = "O" if kind == "found" else "B-x"
            spans.update([[gold]], [["O" if kind == "gold" else "B-x"]])
        drawn.append(spans.compute()["span_f1"])
        errors.append(spans.errors()["span_f1"])
    assert np.mean(errors) == pytest.approx(np.std(drawn), rel=0.1)


def test_every_registered_metric_is_a_component_with_defaults():
    for name in registries.metrics.names():
        config = registries.metrics.get(name).Config()
        assert isinstance(config, Config)
        values = list(config.build().compute())
        assert values == [name] or all(value.startswith(name) for value in values)
