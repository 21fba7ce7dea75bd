import pytest

from textmill.errors import DataError, UserError
from textmill.text.features.labels import FittedLabels, Labels

ROWS = [{"label": "b", "topics": "x, y"}, {"label": "a", "topics": ""}, {"label": "b"}]


def test_labels_are_in_the_order_of_their_first_row():
    labels = FittedLabels.Config().build(train_data=ROWS)
    assert labels.names == ("b", "a")
    assert (len(labels), labels[1], labels.has("a"), labels.has("c"), labels.has(None)) == (
        2, "a", True, False, False,
    )  # fmt: skip
    assert labels == Labels(["b", "a"])
    assert hash(labels) == hash(Labels(["b", "a"]))


def test_several_a_row():
    config = FittedLabels.Config(column="topics", multiple=True, separator=",")
    labels = config.build(train_data=ROWS[:2])
    assert (labels.names, labels.multiple, labels.separator) == (("x", "y"), True, ",")


def test_declared_labels_need_no_rows():
    labels = FittedLabels.Config(names=("yes", "no"), column="answer").build(train_data=[])
    assert (labels.names, labels.column) == (("yes", "no"), "answer")


def test_what_is_no_label_is_refused():
    with pytest.raises(DataError, match=r"Row 0, column 'label': wanted a label, found ' '"):
        FittedLabels.Config().build(train_data=[{"label": " "}])
    with pytest.raises(DataError, match=r"Row 0 of train_data has no column 'label' .* has: text"):
        FittedLabels.Config().build(train_data=[{"text": "a"}])
    with pytest.raises(DataError, match="No row of train_data has a label"):
        FittedLabels.Config(multiple=True).build(train_data=[{"label": ""}])
    with pytest.raises(DataError, match="wanted text or a list of texts, found int"):
        FittedLabels.Config(multiple=True).build(train_data=[{"label": 3}])


def test_settings_that_do_nothing_are_refused():
    with pytest.raises(UserError, match=r"set labels.multiple=true"):
        FittedLabels.Config(separator=",")
    with pytest.raises(UserError, match="must not be empty"):
        FittedLabels.Config(separator="", multiple=True)
    with pytest.raises(UserError, match="'a' is there twice"):
        Labels(["a", "b", "a"])
    with pytest.raises(UserError, match="one label at least"):
        Labels([])


def test_many_labels_are_listed_in_part():
    assert Labels(map(str, range(20))).listed.endswith("'11', ...")
