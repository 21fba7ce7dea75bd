"""Encoding in worker processes: the same ids in the same order, whatever becomes of a worker."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from textmill.data.rows import Rows
from textmill.data.store import encoding
from textmill.data.store.encoding import encode_chunks, receive_rows, send_rows, workers_for
from textmill.errors import DataError

CHUNKS = [slice(0, 200), slice(200, 201), slice(201, 201), slice(201, 450), slice(450, 500)]


def columns(found):
    return [(name, [row.tolist() for row in part[name]]) for part in found for name in part]


def test_workers_give_what_one_process_gives(text, rows):
    chunks = [rows[part] for part in CHUNKS]
    alone = list(encode_chunks(text, chunks))
    together = list(encode_chunks(text, chunks, workers=2))
    assert columns(together) == columns(alone)
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a.over_length, b.over_length)


def test_a_worker_that_dies_or_never_starts_costs_time_only(text, rows, monkeypatch):
    wanted = columns([text.encode(rows[:50], with_targets=True)])
    with encoding._Workers(text, 1) as pool:
        assert columns([pool.encode(rows[:50]).result()]) == wanted
        (process,) = pool._processes
        process.kill()
        process.wait()
        assert columns([pool.encode(rows[:50]).result()]) == wanted
    assert process.returncode != 0
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert columns(encode_chunks(text, [rows[:50]], workers=2)) == wanted
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert columns(encode_chunks(text, [rows[:50]], workers=1)) == wanted


def test_a_row_that_cannot_be_encoded_is_the_same_error(text):
    rows = Rows({"source": ["le", "\ud800"], "target": ["a", "b"]})
    for workers in (0, 2):
        with pytest.raises(
            DataError, match=r"^Row 1, column 'source': is not text, or holds half of a surrogate"
        ):
            list(encode_chunks(text, [rows], workers=workers))


def test_leaving_early_ends_the_workers(text, rows, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        encoding.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1]
    )
    found = encode_chunks(text, (rows[:100] for _ in range(9)), workers=2)
    next(found)
    found.close()
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_rows_come_back_from_their_bytes():
    rows = Rows({"source": ["", "é\0", "🙂\n\t"], "target": ["a", "", "b"]})
    for given in (rows, list(rows)):
        pipe = io.BytesIO()
        send_rows(pipe, given, ("source", "target"))
        pipe.seek(0)
        assert list(receive_rows(pipe)) == list(rows)
        assert receive_rows(pipe) is None
    pipe = io.BytesIO(pipe.getvalue()[:-1])
    with pytest.raises(EOFError):
        receive_rows(pipe)


def test_workers_are_used_where_they_pay(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert [workers_for(n * 1_000_000) for n in (0, 31, 32, 64, 9_999)] == [0, 0, 2, 4, 8]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert workers_for(10**12) == 0
