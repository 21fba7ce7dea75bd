"""How lines are read: in blocks, streamed, and as a plain reader would read them."""

import hashlib
import io
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from textmill.data.bad_rows import BadRow
from textmill.data.formats.comma_separated import csv_format
from textmill.data.line_blocks import BEGINNINGS
from textmill.data.readers import read_rows, read_table, text_format, tsv_format
from textmill.errors import DataError

PAIRS = tsv_format(max_line_bytes=1000)


def test_a_lone_carriage_return_is_data():
    table = read_table(io.BytesIO(b"a\rb\tc\r\r\nd\te\r"), PAIRS)
    assert table.columns == {"source": ["a\rb", "d"], "target": ["c\r", "e"]}


def test_a_byte_order_mark_is_stripped_and_offsets_stay_true():
    data = b"\xef\xbb\xbfa\tb\nbad\n\xef\xbb\xbfc\td"
    table = read_table(io.BytesIO(data), PAIRS)
    assert table.columns["source"] == [
        "a",
        "\ufeffc",
    ]  # further in it is a character like any other
    assert table.bad_rows[0].line == 2
    assert read_table(io.BytesIO(b"\xef\xbb\xbf"), PAIRS).count.total == 0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_by_its_mark_or_as_it_is_set(encoding):
    text = "ä\t\U0001f600\nb\tਊ\r\n"  # of which bytes are LF, and a pair of surrogates
    marked = text.encode(encoding) if encoding == "utf-16" else f"\ufeff{text}".encode(encoding)
    for data, said in ((marked, "utf-8"), (text.encode(encoding), encoding)):
        table = read_table(OneByOne(data), tsv_format(encoding=said))
        assert table.columns == {"source": ["ä", "b"], "target": ["\U0001f600", "ਊ"]}
        assert table.sha256 == hashlib.sha256(data).hexdigest()


def test_half_a_character_of_utf16_is_a_bad_row():
    data = "a\tb\nc\t".encode("utf-16-le") + b"\x00\xd8\n\x00d\x00\te"
    table = read_table(io.BytesIO(b"\xff\xfe" + data), PAIRS)
    assert table.columns["source"] == ["a"]
    assert [row.line for row in table.bad_rows] == [2, 3]


class OneByOne(io.BytesIO):
    """A stream that gives each byte by itself, as a slow pipe may."""

    def read1(self, size=-1, /):
        return super().read1(1)


def test_unicode_line_separators_do_not_end_a_line():
    text = "a\u2028b\x0b\x0c\x1c\x1d\x85\tc\u2029"
    table = read_table(io.BytesIO(text.encode()), PAIRS)
    assert table.columns == {"source": ["a\u2028b\x0b\x0c\x1c\x1d\x85"], "target": ["c\u2029"]}


def test_a_line_of_10_megabytes_is_skipped_in_little_memory(tmp_path):
    path = tmp_path / "long.tsv"
    for at in range(3):
        lines = [b"a\tb"] * 3
        lines[at] = b"x" * 10_000_000
        path.write_bytes(b"\n".join(lines))
        del lines
        tracemalloc.start()
        table = read_table(path, tsv_format())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8_000_000  # a tenth of the promise, which is 64 MB
        (row,) = table.bad_rows
        assert row == BadRow(
            str(path),
            at + 1,
            "the line has 10000000 bytes, and max_line_bytes is 1000000",
            "x" * 80,
        )
        assert table.count.total == 3


def test_prediction_needs_no_targets():
    layout = tsv_format(required=("source",))
    table = read_table(io.BytesIO(b"a\nb\tc\n\td\nb\t"), layout)
    assert table.columns == {"source": ["a", "b", "b"], "target": ["", "c", ""]}
    assert [row.reason for row in table.bad_rows] == ["column 'source' is empty"]
    swapped = tsv_format({"source": 1, "target": 0}, required=("source",))
    assert [row.reason for row in read_table(io.BytesIO(b"a\n"), swapped).bad_rows] == [
        "wanted 2 columns, found 1"
    ]


def test_columns_by_header_name():
    layout = tsv_format({"source": "en", "target": "fr"}, header=True)
    table = read_table(io.BytesIO(b"id\tfr\ten\r\n1\tb\ta\nx\n"), layout)
    assert table.columns == {"source": ["a"], "target": ["b"]}
    assert [str(row) for row in table.bad_rows] == ["<stream>:3: wanted 3 columns, found 1"]
    assert (table.count.total, table.lines) == (2, [2])
    optional = tsv_format({"source": "en", "target": "de"}, header=True, required=("source",))
    assert read_table(io.BytesIO(b"en\na\n"), optional).columns["target"] == [""]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a\tb\nc\n")))
    good, bad = read_rows("-", PAIRS)
    assert good == {"source": "a", "target": "b"}
    assert str(bad) == "-:2: wanted 2 columns, found 1"


def test_a_typed_line_is_given_before_the_next_is_read():
    typed = iter([b"hello\n", b"hello\n", b""])
    rows = read_rows(SimpleNamespace(read1=lambda size: next(typed)), text_format("source"))
    assert next(rows) == {"source": "hello"}
    assert next(typed) == b"hello\n", "the second line is not read yet"
    assert list(rows) == []


class Dripping:
    """A stream that delivers a few bytes at a time."""

    def __init__(self, data, size):
        self._file, self._size = io.BytesIO(data), size

    def read1(self, size):
        return self._file.read(min(size, self._size))


PIECES = [
    b"a", b"bc", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xc3\xa9", b"\xc3", b" ", b'"',
    b"a\tb\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"x" * 30, b"head\tother\n",
    b"%PDF-",
]  # fmt: skip
bytes_of_all_kinds = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(
    b"".join
)
layouts = st.sampled_from(
    [
        tsv_format(max_line_bytes=20),
        tsv_format(extra_columns="error", max_line_bytes=40),
        tsv_format(required=("source",)),
        tsv_format({"target": 2, "source": 0}, required=(), max_line_bytes=10),
        tsv_format(("one",), header=True, max_line_bytes=20),
        text_format(max_line_bytes=20),
    ]
)


@given(bytes_of_all_kinds, layouts, st.integers(1, 40))
def test_fast_slow_streamed_and_dripping_reading_agree(data, layout, size):
    def read(stream):
        try:
            return read_table(stream, layout)
        except DataError as error:
            return str(error)

    wanted = read(io.BytesIO(data))
    assert read(Dripping(data, size)) == wanted
    if not isinstance(wanted, str):
        rows = list(read_rows(Dripping(data, size), layout))
        assert [row for row in rows if isinstance(row, BadRow)] == wanted.bad_rows
        names = list(layout.columns)
        assert [[row[name] for name in names] for row in rows if isinstance(row, dict)] == [
            list(row) for row in zip(*wanted.columns.values(), strict=True)
        ]


@given(bytes_of_all_kinds)
def test_rows_are_those_of_a_plain_reader(data):
    """The oracle: the rules of the module's docstring in the shortest Python there is."""
    assume(not data.startswith(tuple(BEGINNINGS)))
    limit, body, good, bad = 25, data.removeprefix(b"\xef\xbb\xbf"), [], []
    for number, ended in enumerate(_split(body), 1):
        raw = ended.removesuffix(b"\n").removesuffix(b"\r")
        try:
            parts = raw.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            parts = []
        fine = len(raw) <= limit and b"\0" not in raw and len(parts) >= 2
        if fine and parts[0].strip() and parts[1].strip():
            good.append((number, *parts[:2]))
        else:
            bad.append(number)
    table = read_table(io.BytesIO(data), tsv_format(max_line_bytes=limit))
    assert list(zip(table.lines, *table.columns.values(), strict=True)) == good
    assert [row.line for row in table.bad_rows] == bad
    assert table.count.total == len(good) + len(bad)


def _split(data):
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + [parts[-1]] * bool(parts[-1])


def test_reading_needs_no_torch():
    code = "import sys, textmill.data; [textmill.data.__getattr__(n) for n in sys.argv[1:]]; "
    names = ["conll", "csv", "json_lines", "parquet", "arrow", "tsv", "text"]
    named = [*(f"{name}_format" for name in names), "TextPairs", "TextRows"]
    code += "assert not {'torch', 'datasets'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code, *named], check=True, timeout=60)


def test_a_fault_in_a_later_line_of_a_csv_row_has_its_line():
    found = read_table(io.BytesIO(b'a,b\n"c\nd\0",e\n'), csv_format())
    assert [str(row) for row in found.bad_rows] == ["<stream>:2: line 3: NUL at byte 1 of the line"]
