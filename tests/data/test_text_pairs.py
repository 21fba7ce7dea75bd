"""The row source of the main job: what it gives, what it refuses and how it says so."""

import csv
import json
import os
from dataclasses import asdict
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from textmill.data import (
    BadRow,
    BadRowsError,
    Batching,
    Rows,
    TextPairs,
    text_pairs,
    write_bad_rows,
)
from textmill.data.bad_rows import RowCount
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.recipes import registries


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
    assert [data.rows()[0], data.rows()[-1], *data.rows()[1:]] == [rows[0], rows[1], rows[1]]
    assert (len(data), data.rows().names, list(data.lines)) == (2, ("source", "target"), [1, 2])
    assert data.rows().column("target") == ["Salut.", "To?"]
    assert (data.count, list(data.bad_rows), data.notes.sentences()) == (RowCount(2, 0, 2), [], [])
    with pytest.raises(IndexError):
        data.rows()[2]
    assert list(reversed(data.rows())) == rows[::-1]


def test_columns_can_be_placed(file):
    path = file(b"fr\tid\ten\nb\t1\ta\n")
    by_name = pairs(path, columns={"source": "en", "target": "fr"}, header=True)
    by_position = pairs(path, columns={"source": 2, "target": 0}, header=True)
    assert list(by_name) == list(by_position) == [{"source": "a", "target": "b"}]


def test_is_filed_under_its_name_and_has_its_batching(file):
    assert registries.datasets.get("text_pairs") is TextPairs
    data = pairs(file(b"a\tb\n"), max_tokens=512, shuffle=False)
    assert data.batching == Batching(max_tokens=512, shuffle=False)
    with pytest.raises(UserError, match=r"^Batches need a size"):
        pairs(file(b"a\tb\n"), max_tokens=None)


BAD = b"a\tb\nbad\nc\td\n\xff\n"
BAD_TEXT = """2 of 4 rows are bad, and 0 are allowed:
  {0}:2: wanted 2 columns, found 1
  {0}:4: bad UTF-8: 0xff at byte 0 of the line (invalid start byte)
Correct the file, or leave such rows out with train_data.max_bad_rows=2."""


def test_bad_rows_are_decided_before_any_row_is_given(file):
    path = file(BAD)
    for use in (len, list, TextPairs.rows, TextPairs.fingerprint, TextPairs.read):
        with pytest.raises(BadRowsError) as error:
            use(pairs(path))
        assert str(error.value) == BAD_TEXT.format(path)
        assert [row.line for row in error.value.bad_rows] == [2, 4]
    with pytest.raises(BadRowsError) as error:
        pairs(path, max_bad_rows=1).read()
    assert str(error.value) == BAD_TEXT.format(path).replace("0 are", "1 are")
    assert [asdict(row) for row in error.value.bad_rows] == [
        {
            "file": str(path),
            "line": 2,
            "reason": "wanted 2 columns, found 1",
            "text_excerpt": "bad",
        },
        {
            "file": str(path),
            "line": 4,
            "reason": "bad UTF-8: 0xff at byte 0 of the line (invalid start byte)",
            "text_excerpt": "\\xff",
        },
    ]


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


@pytest.mark.parametrize(
    ("data", "found"),
    [(b"", "an empty file"), (b"\xef\xbb\xbf", "an empty file"), (b"x\n", "1 bad rows")],
)
def test_no_good_row_is_an_error(file, data, found):
    path = file(data)
    with pytest.raises(DataError) as error:
        pairs(path, max_bad_rows=9).read()
    wanted = f"{path}: wanted rows of source, target, found {found}."
    assert str(error.value) == wanted.replace("1 bad rows", "1 bad row and no other")


def test_a_missing_file_is_an_error_at_once(tmp_path, monkeypatch):
    (tmp_path / "train.tsv").touch()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)

    def message(path):
        with pytest.raises(UserError) as error:
            pairs(Path(path))
        return str(error.value)

    assert message("trian.tsv") == (
        f"path: there is no file trian.tsv (the working folder is {tmp_path}). "
        "Did you mean 'train.tsv'?"
    )
    assert message("dta/x/train.tsv") == (
        f"path: there is no file dta/x/train.tsv (the working folder is {tmp_path}). "
        "The folder dta does not exist. Did you mean 'data'?"
    )
    assert message(tmp_path / "data" / "zz.tsv") == (
        f"path: there is no file {tmp_path}/data/zz.tsv. The folder {tmp_path}/data is empty."
    )
    assert message("data") == "path: the folder data has no files; folders in it are not read."


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


def test_writing_bad_rows_makes_the_folder_and_keeps_what_it_says(tmp_path):
    path = tmp_path / "deep" / "bad_rows.jsonl"
    row = BadRow("a.tsv", 7, "NUL at byte 3 of the line", 'é "\0"\n')
    write_bad_rows(path, [row, row])
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [BadRow(**json.loads(line)) for line in lines[:-1]] == [row, row]


def test_a_row_cannot_be_lost():
    with pytest.raises(AssertionError, match="a row was lost"):
        RowCount(good=1, bad=1, total=3)
    assert len(Rows({"a": []})) == 0


def test_python_may_give_a_path_as_text_and_columns_as_a_list(file):
    data = pairs(str(file(b"a\tb\n")), columns=["x", "y"])
    assert list(data) == [{"x": "a", "y": "b"}]


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
    with pytest.raises(BadRowsError) as error:
        pairs(path, format="jsonl").read()
    assert str(error.value) == (
        "1 of 2 rows is bad, and 0 are allowed:\n"
        f"  {path}:2: no key 'target'; the keys are 'source'\n"
        "Correct the file, or leave such rows out with train_data.max_bad_rows=1."
    )


@pytest.mark.parametrize(
    ("name", "settings", "text"),
    [
        (
            "a.jsonl",
            {"header": True},
            "header: a jsonl file names its columns itself; leave header out, or undo what is "
            "inherited by header=false.",
        ),
        ("a.parquet", {"extra_columns": "error"}, "extra_columns: in a parquet file columns are "),
        ("a.arrow", {"max_line_bytes": 9}, "max_line_bytes: arrow files are not read by lines; "),
    ],
)
def test_a_setting_that_does_nothing_is_refused(tmp_path, name, settings, text):
    path = written(tmp_path / name, PAIRS)
    with pytest.raises(UserError) as error:
        pairs(path, **settings)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize(("name", "between"), [("pairs.tsv", "\t"), ("pairs.csv", ",")])
def test_a_header_that_nobody_spoke_of_is_no_row(tmp_path, name, between):
    path = tmp_path / name
    path.write_text(f"Source{between} target\nHi.{between}Salut.\n")
    pairs = TextPairs.Config(path=path).build()
    for ask in (pairs.read, lambda: pairs.read(ingredient="train_data"), pairs.rows):
        with pytest.raises(DataError) as caught:
            ask()
        assert str(caught.value) == (
            f"{path}:1: wanted a row, found names of columns, 'Source', ' target'. If that is a "
            "header: train_data.header=true. If it is a row, let another one be the first."
        )
    told = TextPairs.Config(path=path, header=True).build()
    assert list(told) == [{"source": "Hi.", "target": "Salut."}]
    assert told.header == ("Source", " target")
    by_name = {"source": "Source", "target": " target"}
    assert TextPairs.Config(path=path, columns=by_name, header=True).build().header is None


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
    assert data.header == (" source", "Target")
    with pytest.raises(DataError, match="found names of columns, 'id', 'Target', ' source'"):
        TextPairs.Config(path=path).build().read()


@pytest.mark.parametrize(("name", "between"), [("a.tsv", "\t"), ("a.csv", ",")])
@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"source": 1, "target": 0},
            "wanted 'source' at position 1 (from 0), found 'target' there, and 'source' at 0. Say "
            "where each column is by its name in the header, as 'train_data.columns={source: "
            "source, target: target}'",
        ),
        (
            {"source": 0, "target": 9},
            "wanted 'target' at position 9 (from 0), found nothing there, and 'target' at 1. Say "
            "where each column is by its name in the header, as 'train_data.columns={source: "
            "source, target: target}'",
        ),
        (
            ("fr", "source"),
            "wanted 'source' at position 1 (from 0), found 'target' there, and 'source' at 0. Say "
            "where each column is by its name in the header, as 'train_data.columns={fr: target, "
            "source: source}'",
        ),
    ],
)
def test_a_header_that_says_otherwise_than_the_columns_is_an_error(
    tmp_path, name, between, columns, problem
):
    path = tmp_path / name
    path.write_text(f"source{between}target\nHi.{between}Salut.\n")
    data = TextPairs.Config(path=path, columns=columns, header=True).build()
    for ask in (data.read, lambda: data.header):
        with pytest.raises(DataError) as caught:
            ask()
        assert str(caught.value).startswith(f"{path}:1: {problem.partition(' Say')[0]}")
    with pytest.raises(DataError) as caught:
        data.read()
    assert str(caught.value) == f"{path}:1: {problem}"


def test_a_header_of_other_names_is_refused_until_it_is_said_which_is_which(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("en,fr\nHi.,Salut.\n")
    with pytest.raises(DataError) as caught:
        TextPairs.Config(path=path, header=True).build().read(ingredient="valid_data")
    assert str(caught.value) == (
        f"{path}:1: wanted a header with 'source', 'target', found 'en', 'fr'. If that is a row: "
        "valid_data.header=false. If it is a header of other names: "
        "'valid_data.columns={source: en, target: fr}'"
    )
    said = {"source": "en", "target": "fr"}
    data = TextPairs.Config(path=path, header=True, columns=said).build()
    assert data.rows()[0] == {"source": "Hi.", "target": "Salut."}
    swapped = TextPairs.Config(path=path, header=True, columns={"source": 1, "target": 0}).build()
    assert swapped.rows()[0] == {"source": "Salut.", "target": "Hi."}


@pytest.mark.parametrize("header", ["category,message", "v1,v2", "Label,Sentence,id"])
def test_a_header_of_usual_names_is_no_row(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\nham,Hi.,1\nspam,Win!,2\n")
    cells = header.split(",")
    columns = {"label": cells[0], "text": cells[1]}
    with pytest.raises(DataError) as caught:
        TextRows.Config(path=path).build().read()
    assert str(caught.value) == (
        f"{path}:1: wanted a row, found names of columns, {', '.join(map(repr, cells))}. If that "
        f"is a header: train_data.header=true 'train_data.columns={{label: {cells[0]}, text: "
        f"{cells[1]}}}'. If it is a row, let another one be the first."
    )
    told = TextRows.Config(path=path, columns=columns, header=True).build()
    assert [row["label"] for row in told] == ["ham", "spam"]


def test_a_header_with_a_column_twice_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("label\ttext\tText\nham\tHi.\tHo.\n")
    with pytest.raises(DataError, match="wanted one column 'text', found 2, at the positions 1, 2"):
        TextRows.Config(path=path, header=True).build().read()
    named = {"label": "label", "text": "Text"}
    data = TextRows.Config(path=path, header=True, columns=named).build()
    assert list(data) == [{"label": "ham", "text": "Ho."}]
    path.write_text("label\ttext\ttext\nham\tHi.\tHo.\n")
    problem = (
        f"{path}:1: wanted one column 'text', found 2, at the positions 1, 2 (from 0). Say by "
        "positions which it is, as 'train_data.columns={label: 0, text: 1}'"
    )
    for columns in (("label", "text"), {"label": "label", "text": "text"}):
        with pytest.raises(DataError) as caught:
            TextRows.Config(path=path, header=True, columns=columns).build().read()
        assert str(caught.value) == problem
    told = TextRows.Config(path=path, header=True, columns={"label": 0, "text": 1}).build()
    assert list(told) == [{"label": "ham", "text": "Hi."}]


def test_rows_that_are_left_out_are_told_once(file, caplog):
    path = file(b"Hi.\tSalut.\nno second column\nRun!\tCours !\n")
    data = TextPairs.Config(path=path, max_bad_rows=2).build()
    assert len(data.read(ingredient="valid_data").rows()) == 2
    data.read(ingredient="valid_data")
    assert caplog.messages == [
        f"1 of the 3 rows of {path} are bad and left out, as valid_data.max_bad_rows allows; the "
        f"first: {path}:2: wanted 2 columns, found 1"
    ]


def test_where_most_rows_are_bad_it_is_not_proposed_to_leave_them_out(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"stars": 1, "review": "x"}\n{"stars": 5, "review": "y"}\n')
    with pytest.raises(DataError) as caught:
        TextRows.Config(path=path).build().read()
    assert str(caught.value).splitlines()[3:] == [
        'Most rows are bad, the first of them is \'{"stars": 1, "review": "x"}\': the file is '
        "likely in another format than expected. Check train_data.columns, train_data.delimiter, "
        "train_data.header and train_data.format.",
        "If they have them by other keys: 'train_data.columns={label: stars, text: review}'",
    ]
    assert "max_bad_rows" not in str(caught.value)
    columns = {"label": "stars", "text": "review"}
    assert len(TextRows.Config(path=path, columns=columns).build()) == 2


def test_a_delimiter_is_one_character_of_tsv_and_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ham;Hi.\n")
    for wrong in ("", ";;", "é", '"'):
        with pytest.raises(UserError) as caught:
            TextRows.Config(path=path, delimiter=wrong).build()
        assert str(caught.value) == (
            f"delimiter: wanted one ASCII character, no quote or line end, or tab; found {wrong!r}."
        )
    with pytest.raises(UserError, match="delimiter: only tsv and csv files have it, and this is"):
        TextRows.Config(path=path, delimiter=";", format="jsonl").build()


def test_a_conll_file_of_another_suffix_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a B\n")
    columns = {"words": 0, "tags": -1}
    with pytest.raises(UserError) as caught:
        TextRows.Config(path=path, columns=columns).build()
    assert str(caught.value) == (
        "columns: wanted a position from 0 for 'tags', found -1. Positions from the end are those "
        "of CoNLL files, a token in a line: if it is one, say so by train_data.format=conll, which "
        "valid_data follows."
    )
    assert len(TextRows.Config(path=path, columns=columns, format="conll").build()) == 1


def test_bad_rows_of_another_format_than_the_files_name_say_so(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Hi.\tSalut.\n")
    with pytest.raises(DataError) as caught:
        TextPairs.Config(path=path, format="csv").build().read(ingredient="valid_data")
    assert str(caught.value).endswith(
        f"\n{path} is read as csv, as valid_data.format says; by its name it is tsv: "
        "valid_data.format=auto"
    )
    assert TextPairs.Config(path=path.rename(tmp_path / "x.txt"), format="tsv").build().rows()


@pytest.mark.parametrize(
    ("kind", "message"), [("pipe", "the pipe or device"), ("link", "the broken link")]
)
def test_what_has_the_name_of_a_file_and_is_none_is_called_what_it_is(tmp_path, kind, message):
    path = tmp_path / "train.tsv"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("gone.tsv")
    with pytest.raises(UserError) as caught:
        list(TextPairs.Config(path=path).build())
    assert str(caught.value) == f"path: wanted a file, found {message} {path}."
