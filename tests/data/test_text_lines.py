"""Lines of a text: all of them, as they are written."""

import pytest

from textmill.data.bad_rows import BadRowsError
from textmill.data.batching import Batching
from textmill.data.text_lines import TextLines
from textmill.data.text_rows import TextRows


def lines(path, **settings):
    return TextLines.Config(path=path, **settings).build()


def texts(data) -> list[str]:
    return [row["text"] for row in data.rows()]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"\n", [""]),
        (b" a\tb \n \n\n", [" a\tb ", " ", ""]),
        (b"a\r\n\r\nb", ["a", "", "b"]),
        ("\ufeffété\n".encode(), ["été"]),
    ],
)
def test_every_line_is_a_row_blank_ones_too(raw, found, tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(raw)
    data = lines(path)
    assert texts(data) == found == [row["text"] for row in data]
    assert (data.count.good, data.count.total, len(data)) == (len(found),) * 3


def test_a_line_that_cannot_be_read_is_a_bad_row(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"a\n\xff\n\nb\n")
    with pytest.raises(BadRowsError, match=r"play.txt:2: bad UTF-8"):
        lines(path).read()
    data = lines(path, max_bad_rows=1)
    assert texts(data) == ["a", "", "b"]
    assert [row.line for row in data.bad_rows] == [2]


def test_batching_and_fingerprint_are_its_own(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"a\nb\n")
    data = lines(path, batch_size=3, shuffle=False)
    assert data.batching == Batching(max_tokens=None, batch_size=3, shuffle=False)
    rows = TextRows.Config(path=path, columns=("text",)).build()
    assert texts(data) == texts(rows)
    assert data.fingerprint() == lines(path).fingerprint() != rows.fingerprint()
