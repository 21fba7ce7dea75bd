"""Files that are not UTF-8: read in their encoding; else told, with the byte and the encoding."""

import io
import json

import pytest

from textmill.data import text_pairs
from textmill.data.bad_rows import BadRowsError
from textmill.data.formats.by_suffix import column_format
from textmill.data.input_files import input_layout
from textmill.data.readers import read_table
from textmill.data.text_lines import TextLines
from textmill.data.text_rows import TextRows
from textmill.errors import DataError

ROWS = [("Größe", "Die Tür „klemmt“."), ("size", "It is fine."), ("prix", "C'est 5 €, déjà.")]
FILES = {
    "a.tsv": "".join("\t".join(row) + "\n" for row in ROWS),
    "a.csv": "".join(f'{label},"{text}"\n' for label, text in ROWS),
    "a.jsonl": "".join(
        json.dumps(dict(zip(("label", "text"), row, strict=True)), ensure_ascii=False) + "\n"
        for row in ROWS
    ),
}


@pytest.fixture
def rows(tmp_path):
    """Rows of a file of that name and content."""

    def made(name, content, encoding="cp1252", **settings):
        path = tmp_path / name
        path.write_bytes(content.encode(encoding))
        return TextRows.Config(path=path, **settings).build()

    return made


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_in_its_encoding(rows, monkeypatch, name, held):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    read = rows(name, FILES[name])
    with pytest.raises(BadRowsError):
        read.read()
    path = read.config.path
    found = TextRows.Config(path=path, encoding="windows-1252").build()
    assert [(row["label"], row["text"]) for row in found] == ROWS
    assert TextRows.Config(path=path, encoding="cp1252").build().fingerprint() == (
        found.fingerprint()
    )


def test_sentences_of_words_are_read_in_their_encoding(tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes("Tür\tB\nzu\tO\n\nGröße\tB\n".encode("latin-1"))
    columns = {"words": 0, "tags": 1}
    found = [*TextRows.Config(path=path, columns=columns, encoding="latin-1").build()]
    assert [row["words"] for row in found] == ["Tür zu", "Größe"]


def test_lines_of_text_are_read_in_their_encoding(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("Tür\n\nGröße\n".encode("latin-1"))
    with pytest.raises(BadRowsError, match=r"data\.encoding=cp1252"):
        TextLines.Config(path=path).build().read()
    found = [*TextLines.Config(path=path, encoding="latin-1").build()]
    assert [row["text"] for row in found] == ["Tür", "", "Größe"]


def test_an_error_names_the_byte_and_the_encoding_and_shows_the_text(rows, tmp_path):
    many = FILES["a.csv"] * 40
    with pytest.raises(BadRowsError) as caught:
        rows("a.csv", many).read()
    text = str(caught.value)
    byte = many.encode("cp1252").index("ö".encode("cp1252"))
    assert f"a.csv is not UTF-8: 0xf6 is at byte {byte}. In cp1252, which it seems" in text
    assert "line 1 has 'Größe,\"Die Tür „klemmt“.\"'" in text
    assert text.endswith("If that is right: train_data.encoding=cp1252")
    assert "max_bad_rows" not in text
    assert text.count("bad UTF-8") == 3  # all have one cause: a few of them say it
    with pytest.raises(DataError, match=r"header cannot be read: .*valid_data\.encoding=cp1252"):
        rows("b.csv", "Größe,text\nham,Hi.\n", header=True).read(ingredient="valid_data")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_that_is_read_as_another_encoding_is_told_once(tmp_path, caplog, mark):
    path = tmp_path / "a.tsv"
    path.write_bytes(mark + FILES["a.tsv"].encode().replace("à".encode(), b"a"))
    data = TextRows.Config(path=path, encoding="latin-1").build()
    assert data.read(ingredient="valid_data").rows()[0]["label"] == "GrÃ¶Ã\x9fe"
    data.read(ingredient="valid_data")
    assert caplog.messages == [
        f"{path} is read in iso8859-1, but seems to be UTF-8. If it is: valid_data.encoding=utf-8"
    ]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_delimiter_that_is_a_part_of_characters_parts_no_character(kind):
    layout = column_format(kind, ("label", "text"), encoding="shift_jis", delimiter="|")
    table = read_table(io.BytesIO("a|ポ\n".encode("shift_jis")), layout)
    assert b"|" in "ポ".encode("shift_jis")
    assert table.columns == {"label": ["a"], "text": ["ポ"]}


def test_a_record_that_is_not_text_has_all_its_fields(tmp_path):
    for name, content in (("a.csv", b'7,"M\xfcll",x\n'), ("a.tsv", b"7\tM\xfcll\tx\n")):
        path = tmp_path / name
        path.write_bytes(content)
        layout = column_format(name[2:], ("label", "text"))
        assert read_table(path, layout).count.bad == 1
        with path.open("rb") as stream:
            scan = layout.scan(stream, name)
            assert [*scan]
        assert scan.record == ["7", "M\\xfcll", "x"]


def test_rows_to_predict_are_read_as_the_training_data_or_as_the_utf8_that_they_are(tmp_path):
    config = TextRows.Config(path=tmp_path / "train.csv", encoding="cp1252")
    for encoding in ("cp1252", "utf-8"):
        content = FILES["a.csv"].encode(encoding)
        path = tmp_path / "new.csv"
        path.write_bytes(content)
        found = read_table(path, input_layout(path, config, ["text"])).columns["text"]
        assert found == [text for _, text in ROWS]
