"""Rows that stay in their file are those that would be held in memory."""

import csv
import json
import logging
import os
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.data import readers, text_pairs
from textmill.data.rows import StoredRows
from textmill.data.store import tokens
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError

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
    monkeypatch.setattr(readers, "BATCH_ROWS", 11)
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
    assert isinstance(rows, StoredRows)
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
    monkeypatch.setattr(type(first._layout), "scan", None)
    again = config.build()
    assert (again.count, again.fingerprint()) == (first.count, first.fingerprint())
    assert caplog.messages == [said, left_out, left_out]


def test_a_file_that_was_changed_is_read_again(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\nc\td\n")
    rows = TextPairs.Config(path=path).build().rows()
    path.write_bytes(b"e\tb\nc\td\n")
    os.utime(path, ns=(1, 1))
    assert [row["source"] for row in TextPairs.Config(path=path).build()] == ["e", "c"]
    assert [row["source"] for row in rows] == ["a", "c"]


def test_a_file_that_is_changed_while_it_is_read_is_refused(both, cache, monkeypatch):
    _, config = both
    layout = type(config.build()._layout)
    scan = layout.scan

    def growing(self, stream, name):
        os.utime(config.path, ns=(1, 1))
        return scan(self, stream, name)

    monkeypatch.setattr(text_pairs, "first_cells", lambda path, layout: None)
    monkeypatch.setattr(layout, "scan", growing)
    with pytest.raises(DataError, match="was changed while it was read"):
        config.build().read()
    assert [*cache.glob("rows/*/rows.arrow")] == []


def test_a_damaged_cache_is_made_again(both, cache, caplog):
    held, config = both
    config.build().read()
    (path,) = cache.glob("rows/*/lines")
    path.write_bytes(path.read_bytes()[:-8])
    assert list(config.build()) == list(held)
    assert [said for said in caplog.messages if "left out" not in said] == [
        f"{path}: it is missing, or has another size. The file is read again."
    ]


def test_a_cache_that_cannot_be_written_costs_memory_only(both, failing_disk, caplog):
    held, config = both
    with failing_disk(1, lasting=True):
        data = config.build()
        assert list(data) == list(held)
    assert caplog.messages[0].startswith(f"{config.path}: the rows are held in memory: ")


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
