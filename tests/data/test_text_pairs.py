"""The row source of the main job: what it gives, what it refuses and how it says so."""

import csv
import json

import pyarrow
import pyarrow.parquet
import pytest

from textmill.data import BadRowsError, Rows, TextPairs, text_pairs
from textmill.data.bad_rows import RowCount
from textmill.errors import DataError


@pytest.fixture
def file(tmp_path):
    def write(data):
        path = tmp_path / "pairs.tsv"
        path.write_bytes(data)
        return path

    return write


def pairs(path, **settings):
    return TextPairs.Config(path=path, **settings).build()


def test_rows_are_the_files(file):
    data = pairs(file("Hi.\tSalut.\tCC-BY\nÀ ?\tTo?\n".encode()))
    rows = [{"source": "Hi.", "target": "Salut."}, {"source": "À ?", "target": "To?"}]
    assert list(data) == list(data.rows()) == rows
    assert (len(data), data.rows().names, list(data.lines)) == (2, ("source", "target"), [1, 2])
    assert data.rows().column("target") == ["Salut.", "To?"]
    assert (data.count, list(data.bad_rows)) == (RowCount(2, 0, 2), [])
    assert list(reversed(data.rows())) == rows[::-1]


def test_columns_can_be_placed(file):
    path = file(b"fr\tid\ten\nb\t1\ta\n")
    by_name = pairs(path, columns={"source": "en", "target": "fr"}, header=True)
    by_position = pairs(path, columns={"source": 2, "target": 0}, header=True)
    assert list(by_name) == list(by_position) == [{"source": "a", "target": "b"}]


BAD = b"a\tb\nbad\nc\td\n\xff\n"


def test_allowed_bad_rows_are_left_out_and_counted(file):
    data = pairs(file(BAD), max_bad_rows=2).read()
    assert data.rows().column("source") == ["a", "c"]
    assert (str(data.count), list(data.lines)) == ("4 rows: 2 good, 2 bad", [1, 3])
    assert [row.line for row in data.bad_rows] == [2, 4]


def test_the_error_names_the_ingredient(file):
    with pytest.raises(BadRowsError, match=r"with valid_data\.max_bad_rows=2\.$"):
        pairs(file(BAD)).read(ingredient="valid_data")


def test_the_text_shows_twenty_bad_rows(file):
    path = file(b"a\tb\n" + b"bad\n" * 33)
    with pytest.raises(BadRowsError) as error:
        pairs(path).read()
    lines = str(error.value).splitlines()
    assert lines[0] == "33 of 34 rows are bad, and 0 are allowed:"
    assert lines[20:] == [
        f"  {path}:21: wanted 2 columns, found 1",
        "  ... and 13 more",
        "Most rows are bad, the first of them is 'bad': the file is likely in another format than "
        "expected. Check train_data.columns, train_data.delimiter, train_data.header and "
        "train_data.format.",
    ]


def test_a_row_cannot_be_lost():
    with pytest.raises(AssertionError, match="a row was lost"):
        RowCount(good=1, bad=1, total=3)
    assert len(Rows({"a": []})) == 0


PAIRS = [{"source": "Hi, you.", "target": "Salut."}, {"source": "Run!", "target": "Cours !"}]


def written(path, rows):
    """The rows in the format that the file's name says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(row.values() for row in rows)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet", "a.arrow", "a.feather"])
def test_a_files_name_says_its_format(tmp_path, name):
    data = pairs(written(tmp_path / name, PAIRS))
    assert (list(data), data.count) == (PAIRS, RowCount(2, 0, 2))
    other = written(tmp_path / f"b{name}", PAIRS)
    assert pairs(other, max_bad_rows=1).fingerprint() == data.fingerprint()
    swapped = (
        {"source": 1, "target": 0} if name == "a.csv" else {"source": "target", "target": "source"}
    )
    turned = pairs(other, columns=swapped)
    assert turned.rows()[1] == {"source": "Cours !", "target": "Run!"}
    assert turned.fingerprint() != data.fingerprint()


def test_the_format_can_be_said_and_its_bad_rows_count(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text('{"source": "a", "target": "b"}\n{"source": "a"}\n', encoding="utf-8")
    with pytest.raises(BadRowsError, match="no key 'target'; the keys are 'source'"):
        pairs(path, format="jsonl").read()


@pytest.mark.parametrize(("name", "between"), [("a.tsv", "\t"), ("a.csv", ",")])
@pytest.mark.parametrize("held", [True, False])
def test_a_header_in_another_order_is_used_by_its_names(tmp_path, monkeypatch, name, between, held):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    if not held:
        monkeypatch.setattr(text_pairs, "HELD_BYTES", 1)
    path = tmp_path / name
    path.write_text("id|Target| source\n1|Salut.|Hi.\n2|Cours !|Run!\n".replace("|", between))
    data = TextPairs.Config(path=path, header=True).build()
    assert list(data) == [
        {"source": "Hi.", "target": "Salut."},
        {"source": "Run!", "target": "Cours !"},
    ]
    assert data.rows()[1]["target"] == "Cours !"
    with pytest.raises(DataError, match="found names of columns, 'id', 'Target', ' source'"):
        TextPairs.Config(path=path).build().read()


def test_rows_that_are_left_out_are_told_once(file, caplog):
    path = file(b"Hi.\tSalut.\nno second column\nRun!\tCours !\n")
    data = TextPairs.Config(path=path, max_bad_rows=2).build()
    assert len(data.read(ingredient="valid_data").rows()) == 2
    data.read(ingredient="valid_data")
    assert caplog.messages == [
        f"1 of the 3 rows of {path} is bad and left out, as valid_data.max_bad_rows allows; the "
        f"first: {path}:2: wanted 2 columns, found 1"
    ]


def test_the_fingerprint_is_of_bytes_and_layout(file, tmp_path):
    path = file(b"a\tb\n")
    one = pairs(path).fingerprint()
    assert len(one) == 64
    other = tmp_path / "moved.tsv"
    other.write_bytes(path.read_bytes())
    assert pairs(other, shuffle=False, max_tokens=9, max_bad_rows=3).fingerprint() == one
    assert pairs(path, extra_columns="error").fingerprint() != one
    other.write_bytes(b"a\tc\n")
    assert pairs(other).fingerprint() != one
