"""Lines of a text: all of them, as they are written."""

import pytest

from textmill.data.bad_rows import BadRowsError
from textmill.data.batching import Batching
from textmill.data.text_lines import TextLines
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError


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
    monkeypatch.setattr("textmill.data.text_pairs.HELD_BYTES", 10)
    kept = lines(path).rows()
    assert [row["text"] for row in kept] == held == ["a", "", " b"] * 50
    assert kept[4]["text"] == ""


def test_a_line_that_cannot_be_read_is_a_bad_row(tmp_path):
    path = tmp_path / "play.txt"
    path.write_bytes(b"a\n\xff\n\nb\n")
    with pytest.raises(BadRowsError, match=r"play.txt:2: bad UTF-8"):
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


@pytest.mark.parametrize(
    ("name", "kind", "columns"),
    [
        ("a.tsv", "tsv", "[label,text]' (the names of its columns in their order)"),
        ("a.CSV", "csv", "[label,text]' (the names of its columns in their order)"),
        ("a.jsonl", "jsonl", "[text]' (the key of its text)"),
        ("a.json", "squad", "{text: context}' (the key of its text)"),
        ("a.conll", "conll", "{text: 0}' (the place of its words, from 0)"),
    ],
)
def test_a_file_that_has_columns_is_read_as_text_with_one_warning(
    name, kind, columns, tmp_path, caplog
):
    path = tmp_path / name
    path.write_text("ham\tsee you\n")
    data = lines(path)
    assert texts(data.read(ingredient="valid_data")) == ["ham\tsee you"]
    assert caplog.messages == [
        f"{path}: each line is read as text, whole, though by its name the file is {kind}: labels, "
        "keys and separators are learned too. To read its text alone: valid_data.type=text_rows "
        f"'valid_data.columns={columns}."
    ]


def test_a_file_of_text_is_read_without_a_word(tmp_path, caplog):
    for name in ("a.txt", "a", "a.text"):
        (tmp_path / name).write_text("a\tb\n")
        assert texts(lines(tmp_path / name)) == ["a\tb"]
    assert not caplog.messages


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("a.tsv", "ham\tsee you\n", {"columns": ("label", "text")}),
        ("a.csv", "ham,see you\n", {"columns": ("label", "text")}),
        ("a.jsonl", '{"text": "see you", "label": "ham"}\n', {"columns": ("text",)}),
        ("a.conll", "see V\nyou P\n\n", {"columns": {"text": 0}}),
        (
            "a.json",
            '{"data": [{"paragraphs": [{"context": "see you", "qas": '
            '[{"id": "1", "question": "?", "answers": []}]}]}]}',
            {"columns": {"text": "context"}},
        ),
    ],
)
def test_what_the_warning_says_reads_the_text_alone(name, content, settings, tmp_path):
    (tmp_path / name).write_text(content)
    assert texts(TextRows.Config(path=tmp_path / name, **settings).build()) == ["see you"]
