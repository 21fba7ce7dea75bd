"""Lines of a text: all of them, as they are written."""

import pytest

from weft.data.bad_rows import BadRowsError
from weft.data.batching import Batching
from weft.data.text_lines import TextLines
from weft.data.text_rows import TextRows
from weft.errors import DataError, UserError


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


def test_a_file_that_stays_on_disk_has_the_same_lines(tmp_path, monkeypatch):
    path = tmp_path / "play.txt"
    path.write_text("a\n\n b\n" * 50)
    held = texts(lines(path))
    monkeypatch.setattr("weft.data.text_pairs.HELD_BYTES", 10)
    kept = lines(path).rows()
    assert [row["text"] for row in kept] == held == ["a", "", " b"] * 50
    assert kept[4]["text"] == ""


def test_a_line_that_cannot_be_read_is_a_bad_row(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"a\n\xff\n\nb\n")
    with pytest.raises(BadRowsError, match=r"play.txt:2 .*bad UTF-8"):
        lines(path).read()
    data = lines(path, max_bad_rows=1)
    assert texts(data) == ["a", "", "b"]
    assert [row.line for row in data.bad_rows] == [2]


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "play.txt").write_bytes(b"")
    with pytest.raises(DataError, match="wanted rows of text, found an empty file"):
        lines(tmp_path / "play.txt").read()


def test_a_missing_file_and_a_size_that_is_none_are_refused(tmp_path):
    with pytest.raises(UserError, match="there is no file"):
        lines(tmp_path / "play.txt")
    (tmp_path / "play.txt").write_bytes(b"a\n")
    with pytest.raises(UserError, match="batch_size must be 1 or more, but is 0"):
        lines(tmp_path / "play.txt", batch_size=0)


def test_batching_and_fingerprint_are_its_own(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"a\nb\n")
    data = lines(path, batch_size=3, shuffle=False)
    assert data.batching == Batching(max_tokens=None, batch_size=3, shuffle=False)
    rows = TextRows.Config(path=path, columns=("text",)).build()
    assert texts(data) == texts(rows)
    assert data.fingerprint() == lines(path).fingerprint() != rows.fingerprint()


def test_a_first_line_that_is_the_name_of_the_column_is_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text\nof two lines\n")
    assert [row["text"] for row in TextLines.Config(path=path).build()] == ["text", "of two lines"]
