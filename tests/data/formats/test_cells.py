"""Numbers, booleans and lists of JSON lines, Parquet and Arrow are the text that a TSV has."""

import copy
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.data import text_pairs
from textmill.data.formats.json_lines import (
    arrow_format,
    json_lines_format,
    parquet_format,
    pick_row,
)
from textmill.data.readers import read_table
from textmill.data.rows import StoredRows
from textmill.data.text_rows import TextRows
from textmill.text.cells import ListCell, unlisted

NO_NULL = "wanted text, a number or a list of them, found null"
VALUES = {
    "text": (["a b", "c"], ["a b", "c"]),
    "int": ([1, -20], ["1", "-20"]),
    "float": ([3.5, 1e-07], ["3.5", "1e-07"]),
    "bool": ([True, False], ["true", "false"]),
    "texts": ([["a b", "c"], ["d"]], [["a b", "c"], ["d"]]),
    "ints": ([[29, 0], [7]], [["29", "0"], ["7"]]),
    "floats": ([[0.1, 2.0], [1e30]], [["0.1", "2.0"], ["1e+30"]]),
}
"""What is in a file, and what cells or their parts are then."""


@pytest.fixture(params=["jsonl", "parquet", "arrow"])
def written(request, tmp_path):
    """Writes columns in each format and gives its data."""

    def write(columns, **settings):
        path = tmp_path / f"a.{request.param}"
        values = zip(*columns.values(), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in values]
        if request.param == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        elif request.param == "parquet":
            pq.write_table(pa.table(columns), path)
        else:
            table = pa.table(columns)
            with pa.ipc.new_file(str(path), table.schema) as out:
                out.write_table(table)
        return TextRows.Config(path=path, columns=tuple(columns), **settings).build()

    return write


@pytest.mark.parametrize("held", [True, False])
def test_values_are_their_exact_text_and_lists_keep_their_parts(
    written, held, tmp_path, monkeypatch
):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    if not held:
        monkeypatch.setattr(text_pairs, "HELD_BYTES", 1)
    rows = written({name: found for name, (found, _) in VALUES.items()}).rows()
    assert isinstance(rows, StoredRows) is not held
    for name, (_, wanted) in VALUES.items():
        assert [unlisted(row[name]) for row in rows] == wanted
    assert [row["texts"] for row in rows] == ["a b c", "d"]


def test_a_text_may_be_a_list_of_one(written):
    columns = {"text": ["x", "y"], "references": ["a b", None]}
    data = written(columns, lists=("references",), optional=("references",))
    assert [unlisted(row["references"]) for row in data] == [["a b"], ""]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.5, float("nan")], "wanted a finite number, found nan"),
        ([1.5, float("inf")], "wanted a finite number, found inf"),
        ([[1.5], [2.5, float("nan")]], "wanted a finite number, found nan at 1"),
        ([["a"], ["b", None]], "wanted a list of texts or numbers, found null at 1"),
        ([["a"], ["b", "c\0"]], "NUL at character 1, in the text at 1 of the list"),
        ([["a"], []], "column 'label' is empty"),
    ],
)
def test_what_no_cell_can_be_is_a_bad_row(written, values, problem):
    data = written({"label": values, "text": ["x", "y"]}, max_bad_rows=1)
    assert [row["text"] for row in data] == ["x"]
    (bad,) = data.bad_rows
    assert bad.line == 2
    assert bad.reason.endswith(problem)
    assert "'label'" in bad.reason


def test_a_null_is_a_bad_row_and_empty_where_it_may_be(written):
    columns = {"label": [1, None], "text": ["x", "y"]}
    (bad,) = written(columns, max_bad_rows=1).bad_rows
    assert bad.reason in ("column 'label' is null", f"'label': {NO_NULL}")
    assert [row["label"] for row in written(columns, optional=("label",))] == ["1", ""]


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([0.1, 1e30], pa.float32()), ["0.1", "1e+30"]),
        (pa.array(np.array([0.5, 2], np.float16)), ["0.5", "2.0"]),
        (pa.array([[0.1, 3], None], pa.list_(pa.float32())), [["0.1", "3.0"], ""]),
        (pa.array([[0.1, 3], [1, 2]], pa.list_(pa.float32(), 2)), [["0.1", "3.0"], ["1.0", "2.0"]]),
        (pa.array([[0.1], [2]], pa.large_list(pa.float32())), [["0.1"], ["2.0"]]),
        (
            pa.array([[np.float16(0.5)], [np.float16(2)]], pa.list_(pa.float16())),
            [["0.5"], ["2.0"]],
        ),
        (pa.array([2**63, 1], pa.uint64()), ["9223372036854775808", "1"]),
        (pa.array([3, 4]).dictionary_encode(), ["3", "4"]),
        (pa.array([["a", "b"], ["c"]], pa.list_(pa.string_view())), [["a", "b"], ["c"]]),
        (
            pa.array([["a", "b"], ["c"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
            [["a", "b"], ["c"]],
        ),
    ],
    ids=str,
)
def test_types_of_arrow_are_read_as_they_are_written(array, wanted):
    table = pa.table({"label": array})
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as file:
        file.write_table(table)
    found = read_table(io.BytesIO(out.getvalue()), arrow_format(("label",), required=()))
    assert [unlisted(cell) for cell in found.columns["label"]] == wanted


def test_bytes_that_are_no_text_in_a_list_are_a_bad_row():
    raw = pa.array([[b"caf\xe9"], [b"b"]], pa.list_(pa.binary())).cast(pa.list_(pa.binary()))
    strings = pa.ListArray.from_arrays(raw.offsets, raw.values.view(pa.string()))
    out = io.BytesIO()
    pq.write_table(pa.table({"label": strings}), out)
    table = read_table(io.BytesIO(out.getvalue()), parquet_format(("label",)))
    assert [row.reason for row in table.bad_rows] == ["column 'label': bad UTF-8"]
    assert table.columns["label"] == ["b"]


def test_a_list_cell_survives_a_copy_and_the_way_to_a_worker():
    cell = ListCell(["a b", "c"])
    for made in (copy.copy(cell), copy.deepcopy(cell)):
        assert made.parts == cell.parts


@pytest.mark.parametrize(
    ("found", "row"),
    [
        ({"fr": {"text": "Salut."}}, ("Salut.",)),
        ({"fr.text": "Salut."}, ("Salut.",)),
        ({"fr": [{"text": 3}]}, "no key 'fr.text'; the keys are 'fr'"),
        ({"fr": {"text": None}}, "'fr.text': " + NO_NULL),
        ({"fr": None}, "'fr.text': " + NO_NULL),
        ({"fr.text": None}, "'fr.text': " + NO_NULL),
        ({"fr": {}}, "no key 'fr.text'; the keys are 'fr'"),
        ({"fr": "text"}, "no key 'fr.text'; the keys are 'fr'"),
        ({"en": "Hi."}, "no key 'fr.text'; the keys are 'en'"),
        ({}, "no key 'fr.text'; the keys are none"),
    ],
)
def test_null_is_a_value_and_no_missing_key(found, row):
    assert pick_row(found, json_lines_format({"target": "fr.text"})) == row


FOUND = [{"tokenIdx": 1, "features": {"drink": 0.8}}]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (FOUND, '[{"tokenIdx": 1, "features": {"drink": 0.8}}]'),
        (
            {"tokenFeatList": FOUND},
            '{"tokenFeatList": [{"tokenIdx": 1, "features": {"drink": 0.8}}]}',
        ),
        ([[0.5, 2], [1, 0]], "[[0.5, 2], [1, 0]]"),
        ([[0.5], ["a"]], "'found': wanted a list of texts or numbers, found a list at 0"),
        ([{}], "'found': wanted a list of texts or numbers, found an object at 0"),
        ({"a": [True]}, "'found': wanted text, a number or a list of them, found an object"),
    ],
)
def test_what_has_only_numbers_inside_is_text_as_json(value, cell):
    row = pick_row({"found": value}, json_lines_format(["found"]))
    assert row in (cell, (cell,))
