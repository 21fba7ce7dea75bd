import math
import random

import numpy as np
import pytest
from sklearn import metrics as oracle

from textmill.metrics.label_scores import LabelScores
from textmill.metrics.metric import MetricError

PRECISIONS = (0.2, 0.4, 0.6, 0.8, 0.9)


def of_each(labels):
    metric = LabelScores(labels)
    metric.per_label = tuple(labels)  # as of two
    return metric


def test_the_soft_metrics_of_pytext():
    # pytext/metrics/tests/basic_metrics_test.py, PREDICTIONS2: ties, and scores that are no shares.
    gold = ["label1", "label1", "label2", "label2", "label1"]
    scores = [[-0.6, -0.4], [-0.7, -0.8], [-0.6, -0.2], [-0.5, -0.8], [-0.6, -0.8]]
    metric = LabelScores(["label1", "label2"])
    metric.update(gold, scores)
    values = metric.compute()
    assert values["label/label1/average_precision"] == pytest.approx(8 / 15)
    assert values["label/label2/average_precision"] == pytest.approx(0.7)
    assert values["label/label1/roc_auc"] == pytest.approx(1 / 6)
    assert values["label/label2/roc_auc"] == pytest.approx(4 / 6)
    recalls = {
        label: [values[f"label/{label}/recall_at_precision/{p}"] for p in PRECISIONS]
        for label in metric.labels
    }
    assert recalls == {"label1": [1, 1, 1, 0, 0], "label2": [1, 1, 0.5, 0.5, 0.5]}


@pytest.mark.parametrize("seed", range(4))
def test_as_scikit_learn_ties_and_all(seed):
    chance = random.Random(seed)
    digits = 1 if seed % 2 else 6  # one digit: many ties
    labels, rows = ["a", "b", "c"], chance.randint(8, 60)
    gold = ["a", "b", "c", *chance.choices(labels, k=rows - 3)]
    scores = np.array([[round(chance.random(), digits) for _ in labels] for _ in range(rows)])
    metric = of_each(labels)
    metric.update(gold, scores)
    values = metric.compute()
    aucs, means = [], []
    for j, label in enumerate(labels):
        right = [g == label for g in gold]
        aucs.append(oracle.roc_auc_score(right, scores[:, j]))
        means.append(oracle.average_precision_score(right, scores[:, j]))
        assert values[f"label/{label}/roc_auc"] == pytest.approx(aucs[-1])
        assert values[f"label/{label}/average_precision"] == pytest.approx(means[-1])
        precision, recall, _ = oracle.precision_recall_curve(right, scores[:, j])
        for wanted in PRECISIONS:
            expected = recall[precision >= wanted].max()
            assert values[f"label/{label}/recall_at_precision/{wanted}"] == expected
    assert values["roc_auc"] == pytest.approx(np.mean(aucs))
    assert values["average_precision"] == pytest.approx(np.mean(means))


def test_labels_that_no_or_every_row_has_are_not_averaged():
    metric = of_each(["a", "b", "c"])
    metric.update([["a", "c"], {"c"}, ("c",)], np.array([[2, 0, 1], [3, 0, 0], [1, 1, 1]]))
    values = metric.compute()
    assert values["roc_auc"] == values["average_precision"] == 0.5
    assert math.isnan(values["label/b/average_precision"])
    assert math.isnan(values["label/b/recall_at_precision/0.2"])
    assert math.isnan(values["label/c/roc_auc"])


def test_beyond_the_limit_nothing_is_kept_and_it_says_so():
    metric = LabelScores(["a", "b"], limit=4)
    metric.update(["a", "b"], [[0.9, 0.1], [0.2, 0.8]])
    assert metric.compute()["roc_auc"] == 1.0
    metric.update(["a"], [[0.9, 0.1]])
    assert all(math.isnan(value) for value in metric.compute().values())
    assert metric.details()["roc_auc"] == "over 4 scores: not measured"
    assert not any(one for kept in metric._kept.values() for one in kept)
    metric.update(["a"], [[0.9, 0.1]])
    assert math.isnan(metric.compute()["roc_auc"])


def test_a_score_that_is_no_number_makes_no_value():
    metric = LabelScores(["a", "b"])
    metric.update(["a", "b"], [[0.9, math.nan], [0.2, 0.8]])
    assert all(math.isnan(value) for value in metric.compute().values())
    text = metric.details()["average_precision"]
    assert text == "1 of 2 rows have a score that is not a number"


def test_infinite_scores_have_their_rank():
    metric = LabelScores(["a", "b"])
    metric.update(["a", "b"], [[math.inf, -math.inf], [0.2, 0.8]])
    assert metric.compute()["roc_auc"] == 1.0


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ([[0.1], [0.2]], r"an array of the shape \[2, 1\]"),
        ([0.1, 0.2], r"an array of the shape \[2\]"),
        ([[0.1, 0.2], [0.1]], "rows of different lengths"),
    ],
)
def test_a_score_for_each_label(scores, found):
    metric = LabelScores(["a", "b"])
    with pytest.raises(MetricError, match=rf"each of its 2 labels, \[rows, 2\], but.*{found}\."):
        metric.update(["a", "b"], scores)
