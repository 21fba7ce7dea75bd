"""Encodes many rows, in this process or in several that import no torch; the order is kept.

SentencePiece holds Python's lock while it makes lists of ids, so threads gain 4 %; processes gain
what there are processors. Each worker loads the saved text processor (data, no code), and gets
texts and gives ids as plain bytes over its pipes. Whatever goes wrong with a worker, its chunk is
encoded here, so an error of a row is the same as without workers.
"""

import itertools
import json
import logging
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from textmill.data.rows import Rows
from textmill.runtime.devices import usable_cores
from textmill.text.cells import ListCell
from textmill.text.processors.text_processor import Encoded, TextProcessor
from textmill.text.ragged import Ragged

LOG = logging.getLogger("textmill")

MOST_WORKERS = 8  # this process reads and writes for them: it feeds about ten
WORKER_CHARACTERS = 16_000_000  # a worker starts in 0.3 s, in which it would encode three million


def workers_for(characters: int) -> int:
    """How many worker processes pay for so much text; 0: encode here.

    >>> workers_for(1_000_000)
    0
    """
    useful = min(usable_cores(), MOST_WORKERS, characters // WORKER_CHARACTERS)
    return useful if useful > 1 else 0


def encode_chunks(
    text: TextProcessor, chunks: Iterable[Sequence[Mapping[str, str]]], *, workers: int = 0
) -> Iterator[Encoded]:
    """Encodes chunk after chunk, with targets; at most two chunks a worker are held.

    Args:
        text: Encodes.
        chunks: Rows.
        workers: Processes; 0 encodes here.
    """
    if not workers:
        for chunk in chunks:
            yield text.encode(chunk, with_targets=True)
        return
    with _Workers(text, workers) as pool:
        waiting: deque[Future[Encoded]] = deque()
        for chunk in chunks:
            waiting.append(pool.encode(chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Workers:
    """Processes that encode; a thread each waits for its answers."""

    def __init__(self, text: TextProcessor, count: int) -> None:
        self._text, self._count = text, count
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="textmill-encode")
        self._here, self._own = threading.Lock(), threading.local()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closing = False
        self._folder = tempfile.TemporaryDirectory(prefix="textmill-text-")
        text.save(Path(self._folder.name))

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.kill()  # it holds nothing but its pipes; a thread that waits for it goes on
            process.wait()
        self._threads.shutdown()
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    assert pipe is not None
                    pipe.close()
        self._folder.cleanup()

    def encode(self, rows: Sequence[Mapping[str, str]]) -> Future[Encoded]:
        return self._threads.submit(self._encode, rows)

    def _encode(self, rows: Sequence[Mapping[str, str]]) -> Encoded:
        process = self._process()
        if process is not None:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                send_rows(process.stdin, rows, self._text.columns)
                return receive_encoded(process.stdout)
            except (OSError, TypeError, ValueError, KeyError, EOFError) as error:
                LOG.debug("An encoding worker failed (%r); its rows are encoded here.", error)
                process.kill()
                self._own.process = None
        if self._closing:
            raise EOFError  # nobody waits for it
        with self._here:
            return self._text.encode(rows, with_targets=True)

    def _process(self) -> subprocess.Popen[bytes] | None:
        """The worker of this thread; started with its first chunk."""
        if not hasattr(self._own, "process") and not self._closing:
            self._own.process = None
            with suppress(OSError):
                self._own.process = subprocess.Popen(  # noqa: S603  # this Python, a module of ours
                    [sys.executable, "-P", "-m", "textmill.data.store.worker", self._folder.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                self._processes.append(self._own.process)
        process: subprocess.Popen[bytes] | None = getattr(self._own, "process", None)
        return process


# -- messages: a line of JSON, then the bytes it announces


def send_rows(pipe: IO[bytes], rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> None:
    """Writes the named columns: all text with a line end between two, and what are lists.

    Where a text has a line end of its own, the characters of each are written, and all text.
    """
    parts = list[bytes]()
    for name in names:
        column = column_of(rows, name)
        text, lengths, listed = "\n".join(column), b"", list[tuple[int, Sequence[str]]]()
        if text.count("\n") != len(column) - 1:
            lengths = np.fromiter(map(len, column), np.int64, len(column)).tobytes()
            text = "".join(column)
        if {*map(type, column)} != {str}:
            found = enumerate(column)
            listed = [(n, cell.parts) for n, cell in found if isinstance(cell, ListCell)]
        parts += [lengths, text.encode(), json.dumps(listed).encode()]
    _send(pipe, {"names": list(names), "rows": len(rows)}, parts)


def receive_rows(pipe: IO[bytes]) -> Rows | None:
    """Reads what ``send_rows`` wrote; None at the end."""
    found = _receive(pipe)
    if found is None:
        return None
    head, parts = found
    columns = {}
    each = zip(head["names"], parts[::3], parts[1::3], parts[2::3], strict=True)
    for name, lengths, raw, lists in each:
        text, ends = raw.decode(), np.cumsum(np.frombuffer(lengths, np.int64)).tolist()
        by_length = bool(lengths) or not head["rows"]
        cuts = itertools.pairwise([0, *ends])
        columns[name] = [text[a:b] for a, b in cuts] if by_length else text.split("\n")
        for row, listed in json.loads(lists):
            columns[name][row] = ListCell(listed)
    return Rows(columns)


def send_encoded(pipe: IO[bytes], encoded: Encoded) -> None:
    """Writes encoded columns."""
    names = list(encoded.columns)
    columns = [encoded[name] for name in names]
    arrays = [array for column in columns for array in (column.values, column.offsets)]
    parts = [np.ascontiguousarray(array).tobytes() for array in (*arrays, encoded.over_length)]
    dtypes = [column.values.dtype.str for column in columns]
    _send(pipe, {"names": names, "dtypes": dtypes}, parts)


def receive_encoded(pipe: IO[bytes]) -> Encoded:
    """Reads what ``send_encoded`` wrote."""
    found = _receive(pipe)
    if found is None:
        raise EOFError
    head, (*parts, over) = found
    each = zip(head["names"], head["dtypes"], parts[::2], parts[1::2], strict=True)
    columns = {
        name: Ragged(np.frombuffer(values, dtype), np.frombuffer(offsets, np.int64))
        for name, dtype, values, offsets in each
    }
    return Encoded(columns, np.frombuffer(over, np.int64))


def column_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    """One column; not copied where the rows are kept by column."""
    return rows.column(name) if isinstance(rows, Rows) else [row[name] for row in rows]


def _send(pipe: IO[bytes], head: Mapping[str, Any], parts: Sequence[bytes]) -> None:
    pipe.write(json.dumps({**head, "sizes": [*map(len, parts)]}).encode() + b"\n")
    for part in parts:
        pipe.write(part)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    line = pipe.readline(1 << 16)
    if not line:
        return None
    head = json.loads(line)
    parts = [pipe.read(size) for size in head["sizes"]]
    if [*map(len, parts)] != head["sizes"]:
        raise EOFError
    return head, parts
