import math

from textmill.metrics.classification import ConfusionCounts, macro, micro, tally_table


def test_what_never_occurs_has_no_value_and_what_occurs_has_zeros() -> None:
    assert all(
        math.isnan(v) for v in (ConfusionCounts(0, 0, 0).precision, ConfusionCounts(0, 0, 0).f1)
    )
    assert ConfusionCounts(0, 2, 0).values() == {"precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert ConfusionCounts(0, 0, 2).values() == {"precision": 0, "recall": 0, "f1": 0, "support": 2}


def test_means_of_nothing() -> None:
    assert micro([]) == ConfusionCounts(0, 0, 0)
    assert all(math.isnan(value) for value in macro([ConfusionCounts(0, 0, 0)]).values())


def test_a_table_of_no_label_is_its_header() -> None:
    assert tally_table({}).split() == ["label", "precision", "recall", "f1", "support"]
