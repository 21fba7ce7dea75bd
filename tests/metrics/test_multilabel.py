import math
import random

import pytest
from sklearn import metrics as oracle
from sklearn.preprocessing import MultiLabelBinarizer

from textmill.metrics.classification import MultiLabel
from textmill.metrics.metric import MetricError

LABELS = ["a", "b", "c", "never"]


@pytest.mark.parametrize("seed", range(10))
def test_as_scikit_learn(seed: int) -> None:
    chance = random.Random(seed)

    def sets(rows: int) -> list[list[str]]:
        return [[label for label in "abc" if chance.random() < 0.4] for _ in range(rows)]

    rows = chance.randint(5, 30)
    gold, predicted = sets(rows), sets(rows)
    metric = MultiLabel(LABELS)
    metric.update(gold, predicted)
    values = metric.compute()
    coder = MultiLabelBinarizer(classes=LABELS).fit([])
    theirs = coder.transform(gold), coder.transform(predicted)
    assert values["accuracy"] == oracle.accuracy_score(*theirs)
    occurs = [i for i, column in enumerate((theirs[0] + theirs[1]).any(axis=0)) if column]
    for average in ("micro", "macro"):
        scores = oracle.precision_recall_fscore_support(
            *theirs, labels=occurs, average=average, zero_division=0
        )
        found = [values[f"{average}_{name}"] for name in ("precision", "recall", "f1")]
        assert found == pytest.approx(scores[:3])
    each = oracle.precision_recall_fscore_support(*theirs, average=None, zero_division=0)
    for i in occurs:
        names = ("precision", "recall", "f1", "support")
        found = [values[f"label/{LABELS[i]}/{name}"] for name in names]
        assert found == pytest.approx([column[i] for column in each])
    assert math.isnan(values["label/never/f1"])
    assert values["label/never/support"] == 0


def test_a_gold_label_outside_of_the_set_is_one_not_found() -> None:
    metric = MultiLabel(["a", "b"])
    metric.update([["a", "unseen"], ["b"]], [["a"], ["b"]])
    values = metric.compute()
    assert values["accuracy"] == 0.5
    assert (values["micro_precision"], values["micro_recall"]) == (1.0, 2 / 3)
    assert (values["macro_precision"], values["macro_recall"], values["macro_f1"]) == (2 / 3,) * 3
    assert (values["label/unseen/recall"], values["label/unseen/support"]) == (0, 1)


def test_rows_without_any_label() -> None:
    metric = MultiLabel(["a"])
    metric.update([[], []], [[], []])
    values = metric.compute()
    assert values["accuracy"] == 1.0
    assert math.isnan(values["micro_f1"])


def test_a_label_given_twice_counts_once() -> None:
    metric = MultiLabel(["a"])
    metric.update([["a", "a"]], [["a", "a"]])
    assert metric.tallies()["a"] == (1, 1, 1)
    assert metric.table().splitlines()[1] == "a        100.0 %  100.0 %  100.0 %        1"


@pytest.mark.parametrize(
    ("predicted", "text"),
    [
        (
            [["a"], ["x"]],
            "The labels predicted for row 2 of 2 must be among the 2 labels of the metric, "
            "but there is 'x'.",
        ),
        (
            [["a"], "b"],
            "MultiLabel needs the labels of row 2 of 2 as a collection, "
            "but was given the string 'b'.",
        ),
    ],
)
def test_what_is_no_set_of_labels_adds_nothing(predicted: list[list[str]], text: str) -> None:
    metric = MultiLabel(["a", "b"])
    with pytest.raises(MetricError) as error:
        metric.update([["a"], ["b"]], predicted)
    assert str(error.value) == text
    assert repr(metric.compute()) == repr(MultiLabel(["a", "b"]).compute())
