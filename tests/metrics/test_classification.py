import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from sklearn import metrics as oracle

from textmill.metrics.classification import Classification
from textmill.metrics.metric import MetricError

LABELS = ["a", "b", "c", "d", "never"]


def scored(
    gold: Sequence[str | None], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, float]:
    metric = Classification(labels)
    metric.update(gold, predicted)
    return metric.compute()


def test_the_table_of_pytext() -> None:
    # pytext/metrics/tests/basic_metrics_test.py, PREDICTIONS1 and PREDICTIONS2.
    names = ["label1", "label2", "label3"]
    values = scored([names[i] for i in (0, 0, 1, 1)], [names[i] for i in (0, 1, 1, 2)], names)
    found = [values[f"label/{n}/{of}"] for n in names for of in ("precision", "recall", "f1")]
    assert found == pytest.approx([1, 0.5, 2 / 3, 0.5, 0.5, 0.5, 0, 0, 0])
    assert values["accuracy"] == 0.5
    assert values["macro_precision"] == 0.5
    assert values["macro_recall"] == pytest.approx(1 / 3)
    assert values["macro_f1"] == pytest.approx(7 / 18)
    two = scored([names[i] for i in (0, 0, 1, 1, 0)], [names[i] for i in (1, 0, 1, 0, 0)], names)
    assert two["mcc"] == pytest.approx(1 / 6)


@pytest.mark.filterwarnings("ignore:A single label")  # for its matrix of confusions
@pytest.mark.parametrize("seed", range(20))
def test_as_scikit_learn(seed: int) -> None:
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


def test_a_gold_label_outside_of_the_set_is_a_wrong_row() -> None:
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


def test_only_gold_labels_from_outside() -> None:
    values = scored([None], ["a"], ["a", "b"])
    assert (values["accuracy"], values["macro_f1"], values["mcc"]) == (0, 0, 0)


def test_the_confusion_is_that_of_scikit_learn() -> None:
    chance = random.Random(7)
    gold, predicted = chance.choices(LABELS, k=100), chance.choices(LABELS, k=100)
    metric = Classification(LABELS)
    metric.update(gold, predicted)
    matrix = oracle.confusion_matrix(gold, predicted, labels=LABELS)
    assert np.array_equal(metric.confusion()[:-1], matrix)
    assert not metric.confusion()[-1].any()


def test_labels_may_be_any_text() -> None:
    odd = ["", "other", "0", "a b/c", "\n"]
    values = scored(list(odd), list(odd), odd)
    assert values["accuracy"] == values["macro_f1"] == values["mcc"] == 1.0


def test_a_prediction_outside_of_the_set_adds_nothing() -> None:
    metric = Classification(["a", "b"])
    with pytest.raises(MetricError) as error:
        metric.update(["a", "a"], ["a", "x"])
    assert str(error.value) == (
        "The label predicted for row 2 of 2 must be one of the 2 labels of the metric, but is 'x'."
    )
    assert math.isnan(metric.compute()["accuracy"])


def test_the_positive_label_is_one_of_the_labels() -> None:
    with pytest.raises(MetricError, match="must be one of a, b, but is 'c'"):
        Classification(["a", "b"], positive="c")
