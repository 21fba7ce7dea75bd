"""Rows that stay in their file are those that would be held in memory."""

import csv
import json
import logging
import os
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.data import file_rows, first_row, text_pairs
from textmill.data.file_rows import FileRows
from textmill.data.formats import json_lines
from textmill.data.formats.cells import CellError
from textmill.data.store import tokens
from textmill.data.store.arrays import locked
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, StorageError

ROWS = [(f"s{n} " * (n % 7 + 1), f"é{n}\ufeff" if n % 5 else "\ufeffz") for n in range(60)]
BAD = (3, 4, 30, 59)


def write_tsv(path, *, header=b"", mark=b"", end=b"\n"):
    lines = [b"bad" if n in BAD else "\t".join(row).encode() for n, row in enumerate(ROWS)]
    path.write_bytes(mark + header + end.join(lines) + end)


def write_csv(path, header=""):
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(header)
        for n, row in enumerate(ROWS):
            if n in BAD:
                file.write('"bad\n')
            else:
                csv.writer(file).writerow([f'{row[0]}"\n', row[1]])


def write_jsonl(path):
    rows = [json.dumps(dict(zip(("source", "target"), row, strict=True))) for row in ROWS]
    path.write_text("".join("[]\n" if n in BAD else f"{row}\n" for n, row in enumerate(rows)))


def table():
    columns = list(zip(*ROWS, strict=True))
    sources = [None if n in BAD else text for n, text in enumerate(columns[0])]
    return pa.table({"source": sources, "target": list(columns[1])})


def write_arrow(path):
    with pa.ipc.new_file(path, table().schema) as writer:
        writer.write_table(table(), max_chunksize=13)


NAMED = {"columns": {"source": "en", "target": "fr"}, "header": True}
FILES = {
    "tsv": ("a.tsv", write_tsv, {}),
    "tsv crlf": ("a.tsv", lambda path: write_tsv(path, end=b"\r\n"), {}),
    "tsv mark": ("a.tsv", lambda path: write_tsv(path, mark=b"\xef\xbb\xbf"), {}),
    "tsv header": ("a.tsv", lambda path: write_tsv(path, header=b"en\tfr\n"), NAMED),
    "csv": ("a.csv", write_csv, {}),
    "csv header": ("a.csv", lambda path: write_csv(path, '"en",fr\r\n'), NAMED),
    "jsonl": ("a.jsonl", write_jsonl, {}),
    "parquet": ("a.parquet", lambda path: pq.write_table(table(), path, row_group_size=17), {}),
    "arrow": ("a.arrow", write_arrow, {}),
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("textmill.data.rows.NEAR", 8)
    return tmp_path / "cache"


@pytest.fixture(params=FILES)
def both(request, cache, tmp_path, monkeypatch):
    """The same file held in memory and left where it is."""
    name, write, settings = FILES[request.param]
    write(tmp_path / name)
    config = TextPairs.Config(path=tmp_path / name, max_bad_rows=9, **settings)
    held = config.build()
    assert len(held) == len(ROWS) - len(BAD)
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    return held, config


def test_all_rows_are_the_same_however_they_are_asked_for(both, monkeypatch):
    held, config = both
    wanted, data = list(held), config.build()
    rows = data.rows()
    assert isinstance(rows, FileRows)
    assert (len(rows), list(rows), list(data)) == (len(wanted), wanted, wanted)
    assert [rows[i] for i in range(len(rows))] == wanted
    for i in (30, 0, 7, 31, -1, 8, 9, 55):
        assert rows[i] == wanted[i]
    for part in (slice(5, 25), slice(0, 0), slice(50, None), slice(-3, None), slice(1, 40, 9)):
        assert list(rows[part]) == wanted[part]
    with pytest.raises(IndexError):
        rows[len(wanted)]
    assert (data.count, list(data.lines)) == (held.count, list(held.lines))
    assert list(data.bad_rows) == list(held.bad_rows)
    assert data.notes == held.notes
    assert data.fingerprint() == held.fingerprint()


def test_a_later_run_reads_nothing(both, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "textmill")
    _, config = both
    first = config.build().read()
    said, left_out = caplog.messages
    assert said.startswith(f"Reading {config.path}, once (")
    assert f" rows of {config.path} are bad and left out" in left_out
    monkeypatch.setattr(text_pairs, "first_cells", lambda path, layout: None)
    monkeypatch.setattr(first_row, "first_rows", lambda *_: [])
    monkeypatch.setattr(type(first._layout), "scan", None)
    again = config.build()
    assert (again.count, again.fingerprint()) == (first.count, first.fingerprint())
    assert caplog.messages == [said, left_out, left_out]


def test_a_file_that_was_changed_is_read_again_or_refused(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\nc\td\n")
    data = TextPairs.Config(path=path).build()
    rows = data.rows()
    path.write_bytes(b"aa\tb\nc\td\n")
    os.utime(path, ns=(1, 1))
    assert [row["source"] for row in TextPairs.Config(path=path).build()] == ["aa", "c"]
    with pytest.raises(DataError) as error:
        list(rows)
    assert str(error.value) == (
        f"{path} was changed since it was read: rows 1 to 2 are not where they were. Start again."
    )


def test_a_file_that_is_changed_between_index_and_rows_is_refused(cache, tmp_path, monkeypatch):
    """Also where each row begins where another did."""
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\nc\td\n")
    data = TextPairs.Config(path=path).build().read()
    path.write_bytes(b"e\tf\ng\th\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"a\.tsv was changed since it was read: rows 1 to 2 are"):
        list(data.rows())


def test_a_file_that_is_changed_while_it_is_indexed_is_refused(both, cache, monkeypatch):
    _, config = both
    scan = type(config.build()._layout).scan

    def growing(self, stream, name):
        found = scan(self, stream, name)
        os.utime(config.path, ns=(1, 1))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(text_pairs, "first_cells", lambda path, layout: None)
        patch.setattr(first_row, "first_rows", lambda *_: [])
        patch.setattr(type(config.build()._layout), "scan", growing)
        with pytest.raises(DataError) as error:
            config.build().read()
    assert str(error.value) == (
        f"{config.path} was changed while it was read, so the places of its rows are "
        "unknown. Start again when it is whole."
    )
    assert [path for path in cache.glob("rows/*/places") if path.parent.suffix != ".part"] == []


def test_an_index_that_cannot_be_kept_costs_memory_only(both, failing_disk, caplog):
    held, config = both
    with failing_disk(1, lasting=True):
        data = config.build()
        assert list(data) == list(held)
    assert caplog.messages[0].startswith(f"{config.path} is read into memory: ")


def test_a_damaged_index_is_made_again(both, cache, caplog):
    held, config = both
    config.build().read()
    (path,) = cache.glob("rows/*/places")
    path.write_bytes(path.read_bytes()[:-8])
    assert list(config.build()) == list(held)
    assert [said for said in caplog.messages if "left out" not in said] == [
        f"{path}: {len(held) * 8 - 8:,} bytes instead of {len(held) * 8:,}. The file is read again."
    ]


def test_an_index_of_other_reading_rules_is_not_taken(cache, tmp_path, monkeypatch):
    """Numbers of JSON lines were bad rows once."""
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    path = tmp_path / "a.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{"source": "c", "target": 7}\n')
    config = TextPairs.Config(path=path, max_bad_rows=1)

    def strict(value):
        if isinstance(value, str):
            return value
        raise CellError("wanted text, found a number")

    with monkeypatch.context() as older:
        older.setattr(file_rows, "READING", 1)
        older.setattr(json_lines, "cell_of", strict)
        assert [row["target"] for row in config.build()] == ["b"]
    assert [row["target"] for row in config.build()] == ["b", "7"]


def test_neither_text_nor_tokens_are_held(cache, tmp_path, monkeypatch):
    """Read, indexed and gone through in a fraction of the file's size."""
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 1 << 20)
    monkeypatch.setattr("textmill.data.rows.NEAR", 64)
    monkeypatch.setattr(tokens, "CHUNK_CHARACTERS", 1_000_000)
    path = tmp_path / "large.tsv"
    line = ("x" * 4999 + "\t" + "y" * 4999 + "\n").encode()
    with path.open("wb") as file:
        file.writelines([line * 100] * 24)
    tracemalloc.start()
    data = TextPairs.Config(path=path).build()
    assert sum(len(row["source"]) for row in data) == 2_400 * 4_999
    parts = [len(part) for part in tokens.chunks_of(data.rows(), ["source", "target"])]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(parts) == 2_400
    assert max(parts) <= 100
    assert peak < path.stat().st_size / 2  # 8 MB, most of it a block of 1 MB in columns


def test_a_cache_that_is_no_folder_is_said(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "rows" / "key"
    with pytest.raises(StorageError) as caught, locked(folder):
        pass
    assert str(caught.value) == (
        f"{tmp_path / 'cache'} cannot be written: File exists. {tmp_path / 'cache'} is no folder. "
        "What was saved before is intact. Move it away, or name another folder, then start again. "
        "The environment variable TEXTMILL_CACHE names the folder that stores are in; now it is "
        f"{tmp_path / 'cache'}."
    )
