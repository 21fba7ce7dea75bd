import math
import random

import numpy as np
import pytest
from sklearn import metrics as oracle
from sklearn.preprocessing import MultiLabelBinarizer

from textmill.metrics.classification import Classification, ConfusionCounts, MultiLabel
from textmill.metrics.metric import MetricError, aligned, distinct_labels

LABELS = ["a", "b", "c", "d", "never"]


def scored(gold, predicted, labels):
    metric = Classification(labels)
    metric.update(gold, predicted)
    return metric.compute()


@pytest.mark.filterwarnings("ignore:A single label")  # for its matrix of confusions
@pytest.mark.parametrize("seed", range(6))
def test_as_scikit_learn(seed):
    """Gold labels that the metric does not know included: of each is one more class."""
    chance = random.Random(seed)
    known = LABELS[: chance.randint(2, 4)]
    outside = ["elsewhere", "nowhere"][: seed % 3]
    rows = chance.randint(1, 30)
    gold = [chance.choice(known + outside) for _ in range(rows)]
    predicted = [chance.choice(known) for _ in range(rows)]
    values = scored(gold, predicted, LABELS)
    assert values["accuracy"] == oracle.accuracy_score(gold, predicted)
    assert values["mcc"] == pytest.approx(oracle.matthews_corrcoef(gold, predicted), abs=1e-12)
    every = oracle.precision_recall_fscore_support(
        gold, predicted, labels=LABELS, average=None, zero_division=0
    )
    occurs = set(gold) | set(predicted)
    for i, label in enumerate(LABELS):
        for j, name in enumerate(("precision", "recall", "f1", "support")):
            ours = values[f"label/{label}/{name}"]
            if label in occurs or name == "support":
                assert ours == pytest.approx(every[j][i], abs=1e-12)
            else:
                assert math.isnan(ours)
    means = [f"macro_{name}" for name in ("precision", "recall", "f1")]
    expected = oracle.precision_recall_fscore_support(
        gold, predicted, average="macro", zero_division=0
    )
    assert [values[name] for name in means] == pytest.approx(expected[:3], abs=1e-12)
    expected = oracle.f1_score(gold, predicted, average="micro", zero_division=0)
    assert values["micro_f1"] == values["accuracy"] == pytest.approx(expected, abs=1e-12)


def test_a_gold_label_outside_of_the_set_is_a_wrong_row():
    metric = Classification(["a", "b"], positive="b")
    metric.update(["a", "b", None, "unseen"], ["a", "b", "b", "b"])
    values = metric.compute()
    assert values["accuracy"] == values["micro_f1"] == 0.5
    assert (values["precision"], values["recall"], values["f1"]) == (1 / 3, 1.0, 0.5)
    assert metric.confusion().tolist() == [[1, 0], [0, 1], [0, 2]]
    # By hand: a has 1, 1, 1; b has 1/3, 1, 1/2; unseen has 0, 0, 0; None is no label.
    assert values["macro_precision"] == pytest.approx(4 / 9)
    assert values["macro_recall"] == pytest.approx(2 / 3)
    assert values["macro_f1"] == 0.5
    # By hand (Gorodkin): 2*4 - (1*1 + 3*1) = 4; 16 - (1 + 9) = 6; 16 - 1 - 1 - 1 - 1 = 12.
    assert values["mcc"] == pytest.approx(4 / math.sqrt(6 * 12))
    of_unseen = [values[f"label/unseen/{of}"] for of in ("precision", "recall", "f1", "support")]
    assert of_unseen == [0, 0, 0, 1]


def test_the_confusion_is_that_of_scikit_learn():
    chance = random.Random(7)
    gold, predicted = chance.choices(LABELS, k=100), chance.choices(LABELS, k=100)
    metric = Classification(LABELS)
    metric.update(gold, predicted)
    matrix = oracle.confusion_matrix(gold, predicted, labels=LABELS)
    assert np.array_equal(metric.confusion()[:-1], matrix)
    assert not metric.confusion()[-1].any()


def test_labels_may_be_any_text():
    odd = ["", "other", "0", "a b/c", "\n"]
    values = scored(list(odd), list(odd), odd)
    assert values["accuracy"] == values["macro_f1"] == values["mcc"] == 1.0


def test_a_prediction_outside_of_the_set_adds_nothing():
    metric = Classification(["a", "b"])
    with pytest.raises(MetricError, match=r"row 2 of 2.*'x'"):
        metric.update(["a", "a"], ["a", "x"])
    assert math.isnan(metric.compute()["accuracy"])


SET_LABELS = ["a", "b", "c", "never"]


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_scored_as_by_scikit_learn(seed):
    chance = random.Random(seed)

    def sets(rows):
        return [[label for label in "abc" if chance.random() < 0.4] for _ in range(rows)]

    rows = chance.randint(5, 30)
    gold, predicted = sets(rows), sets(rows)
    metric = MultiLabel(SET_LABELS)
    metric.update(gold, predicted)
    values = metric.compute()
    coder = MultiLabelBinarizer(classes=SET_LABELS).fit([])
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
        found = [values[f"label/{SET_LABELS[i]}/{name}"] for name in names]
        assert found == pytest.approx([column[i] for column in each])
    assert math.isnan(values["label/never/f1"])
    assert values["label/never/support"] == 0


def test_a_label_of_a_set_outside_of_all_is_one_not_found():
    metric = MultiLabel(["a", "b"])
    metric.update([["a", "unseen"], ["b"]], [["a"], ["b"]])
    values = metric.compute()
    assert values["accuracy"] == 0.5
    assert (values["micro_precision"], values["micro_recall"]) == (1.0, 2 / 3)
    assert (values["macro_precision"], values["macro_recall"], values["macro_f1"]) == (2 / 3,) * 3
    assert (values["label/unseen/recall"], values["label/unseen/support"]) == (0, 1)


def test_a_label_given_twice_counts_once():
    metric = MultiLabel(["a"])
    metric.update([["a", "a"]], [["a", "a"]])
    assert metric.tallies()["a"] == (1, 1, 1)


@pytest.mark.parametrize(
    ("predicted", "text"),
    [([["a"], ["x"]], "row 2 of 2.*'x'"), ([["a"], "b"], "row 2 of 2.*the string 'b'")],
)
def test_what_is_no_set_of_labels_adds_nothing(predicted, text):
    metric = MultiLabel(["a", "b"])
    with pytest.raises(MetricError, match=text):
        metric.update([["a"], ["b"]], predicted)
    assert repr(metric.compute()) == repr(MultiLabel(["a", "b"]).compute())


def test_what_never_occurs_has_no_value_and_what_occurs_has_zeros():
    assert all(
        math.isnan(v) for v in (ConfusionCounts(0, 0, 0).precision, ConfusionCounts(0, 0, 0).f1)
    )
    assert ConfusionCounts(0, 2, 0).values() == {"precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert ConfusionCounts(0, 0, 2).values() == {"precision": 0, "recall": 0, "f1": 0, "support": 2}


METRIC = Classification(["ham", "spam"])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: aligned(METRIC, ["ham", "ham"], ["ham"]), "2 and 1"),
        (lambda: METRIC.update("ham", ["ham"] * 3), "an entry per row, but was given the string"),
        (lambda: distinct_labels(METRIC, ["a", "b", "a"]), r"once, but has twice: \['a'\]"),
        (lambda: distinct_labels(METRIC, []), "a list of the labels, but was given none"),
        (lambda: distinct_labels(METRIC, "ab"), "but was given the string 'ab'"),
    ],
)
def test_rows_and_labels_that_cannot_be_are_refused(use, message):
    with pytest.raises(MetricError, match=message):
        use()
