"""An error of a row of a file names the file and the line, wherever the row is read."""

import pytest

from textmill.data import Rows, text_pairs
from textmill.data.store import tokens
from textmill.data.store.tokens import encoded_rows, kept_fingerprint
from textmill.data.text_rows import TextRows
from textmill.errors import DataError
from textmill.text.cells import placed_errors
from textmill.text.columns.labels import LabelColumn
from textmill.text.columns.numbers import FittedNumbers
from textmill.text.features.labels import FittedLabels, Labels
from textmill.text.features.slots import FittedSlots
from textmill.text.processors.column_processor import PlainColumns

LINES = "ham\ta\n\tbad\nspam\tb\neggs\tc\n"
PATH = PlainColumns({}, {"label": LabelColumn(Labels(["ham", "spam"]))})
WRONG = "column 'label': 'eggs' is no label. The 2 labels are 'ham', 'spam'."


def written(tmp_path, lines=LINES, **settings):
    path = tmp_path / "a.tsv"
    path.write_text(lines)
    return TextRows.Config(path=path, max_bad_rows=1, **settings).build()


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_row_that_cannot_be_encoded_is_named_by_its_line(tmp_path, monkeypatch, held, kept):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    if not held:
        monkeypatch.setattr(text_pairs, "HELD_BYTES", 1)
    if kept:  # in chunks, whose rows are counted anew
        monkeypatch.setattr(tokens, "LEAST_CHARACTERS", 0)
        monkeypatch.setattr(tokens, "CHUNK_ROWS", 1)
    data = written(tmp_path)
    with pytest.raises(DataError) as caught:
        encoded_rows(PATH, data.rows(), kept_fingerprint(data, PATH))
    assert str(caught.value) == f"{tmp_path / 'a.tsv'}:4: {WRONG}"


def test_rows_of_no_file_keep_their_number():
    for rows in ([{"label": "eggs"}], Rows({"label": ["eggs"]})):
        with pytest.raises(DataError) as caught:
            encoded_rows(PATH, rows, None)
        assert str(caught.value) == f"Row 0, {WRONG}"
    with pytest.raises(DataError, match=r"^Else$"), placed_errors(written):
        raise DataError("Else")


@pytest.mark.parametrize(
    ("fitted", "lines", "problem"),
    [
        (FittedNumbers.Config(column="text"), "x\t1 2\nx\t1\n", "column 'text': wanted 2 numbers"),
        (FittedNumbers.Config(column="text"), "x\t1 2\nx\t1 y\n", "column 'text': wanted a number"),
        (
            FittedSlots.Config(column="label", text="text"),
            "O O\ta b\nO\ta b\n",
            "column 'label': has 1 tags, but the text has 2 words",
        ),
        (
            FittedLabels.Config(),
            '{"label": "a", "text": "x"}\n{"label": ["a", "b"], "text": "y"}\n',
            "column 'label': wanted one label, found a list of 2. Several labels a row need "
            "labels.multiple=true.",
        ),
    ],
)
def test_a_row_that_cannot_be_fitted_on_is_named_by_its_line(tmp_path, fitted, lines, problem):
    data = written(tmp_path, lines, format="jsonl" if lines.startswith("{") else "auto")
    with pytest.raises(DataError) as caught:
        fitted.build(train_data=data)
    assert str(caught.value).startswith(f"{tmp_path / 'a.tsv'}:2: {problem}")
