"""Files that are no text are refused, whatever they begin with; text with odd lines is read."""

import io
import random
import struct
import zlib

import pytest

from textmill.data.formats.comma_separated import csv_format
from textmill.data.readers import read_table, text_format, tsv_format
from textmill.errors import DataError

RANDOM = random.Random(5).randbytes(300)
CYRILLIC = "\u043f\u0440\u0438\u0432\u0435\u0442 "


@pytest.mark.parametrize(
    ("data", "share"),
    [
        (RANDOM, "9%"),
        (zlib.compress(RANDOM), "9%"),
        (struct.pack("60d", *range(60)), "74%"),
        (b"name\0" * 99, "20%"),
    ],
)
@pytest.mark.parametrize("layout", [tsv_format(), text_format(), csv_format()])
def test_what_is_no_text_is_refused_though_nobody_knows_its_first_bytes(layout, data, share):
    with pytest.raises(DataError, match=f"<stream>: wanted text, found a binary file: {share} of"):
        read_table(io.BytesIO(data), layout)


@pytest.mark.parametrize(
    "data",
    [
        ("\u65e5\u672c\u8a9e \ufffd\n" * 99).encode(),
        (CYRILLIC.encode() + b"\n") * 99,
        (CYRILLIC.encode("cp1251") + b"\n") * 99,
        ("\u65e5\u672c\u8a9e\n" * 99).encode("shift_jis"),
        ("d\u00e9j\u00e0 vu, \u00e9t\u00e9\n" * 9).encode("latin-1"),
        b"a line of text\n" * 50 + RANDOM[:40] + b"\n",
        RANDOM[:200],
        b"\n" * 9999,
    ],
)
def test_text_in_another_encoding_or_with_odd_lines_has_bad_rows(data):
    table = read_table(io.BytesIO(data), text_format())
    assert table.count.total == data.count(b"\n") + (not data.endswith(b"\n"))
