"""The token store: rows are encoded once, and every later run maps the ids into memory.

A store is named after what it was made of: the text processor (its saved files, so vocabulary,
languages and limits), the data (its fingerprint) and the versions of the tokenizer libraries. The
batches gathered from it are bit for bit those of rows that were just encoded.

SentencePiece holds Python's lock while it makes lists of ids, so threads gain 4 %; processes, which
import no torch, gain what there are processors.
"""

import hashlib
import importlib.metadata
import itertools
import json
import logging
import multiprocessing
import signal
import sys
import tempfile
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.data.batching import Batched
from textmill.data.rows import Rows, StoredRows
from textmill.data.store.cache import (
    DamagedStoreError,
    StoreManifest,
    locked,
    made_store,
    store_folder,
)
from textmill.errors import DataError, StorageError
from textmill.runtime.devices import usable_cores
from textmill.runtime.files import make_folder, sha256
from textmill.text import cells
from textmill.text.cells import Fingerprinted, placed_errors
from textmill.text.processors.text_processor import Encoded, TextProcessor, load_text_processor
from textmill.text.ragged import Ragged

LOG = logging.getLogger("textmill")

LEAST_CHARACTERS = 4_000_000
"""Less text is encoded anew in each run: 0.4 s with SentencePiece (11 million characters a second),
about one with a slower tokenizer."""
ENCODING = 2
"""To be raised with each change of textmill's own code that gives some text other ids."""
CHUNK_ROWS = 65_536
CHUNK_CHARACTERS = 8_000_000
"""A chunk, which is encoded at once, ends with either."""
COMPARED_ROWS = 64
"""Rows from all over the data whose ids are compared with those kept whenever a store is opened."""
MOST_WORKERS = 8  # this process reads and writes for them
WORKER_CHARACTERS = 16_000_000  # a worker starts in 0.5 s, in which it would encode five million


def encoded_rows(text: TextProcessor, rows: cells.Rows, fingerprint: str | None) -> Encoded:
    """Encodes rows with their targets, or finds them encoded.

    Little text (``LEAST_CHARACTERS``) and rows without a fingerprint are encoded now, and held in
    memory. So is text whose store cannot be written, which is said. Much text is encoded by several
    processes, whether it is kept or not.
    An error names the place of a row in its file.
    """
    with placed_errors(rows):
        characters = characters_of(rows, text.columns)
        try:
            if fingerprint is not None and characters >= LEAST_CHARACTERS:
                try:
                    return TokenStore.of(text, fingerprint).get(text, rows)
                except StorageError as error:
                    LOG.warning("Tokens are not kept, and are made in memory: %s", error)
            workers = workers_for(characters) if _is_ours(text) else 0
            if workers:
                chunks = chunks_of(rows, text.columns)
                return _joined([*encode_chunks(text, chunks, workers=workers)])
        except DataError as error:  # its row is counted from the beginning of a chunk
            LOG.debug("A row cannot be encoded: %s", error)
        return text.encode(rows, with_targets=True)


def _joined(parts: Sequence[Encoded]) -> Encoded:
    starts = np.cumsum([0, *(part.num_rows for part in parts)])
    over = [part.over_length + start for part, start in zip(parts, starts, strict=False)]
    columns = {name: Ragged.concatenate(part[name] for part in parts) for name in parts[0]}
    return Encoded(columns, np.concatenate(over))


def _is_ours(*parts: object) -> bool:
    """Whether text processors, with all that is in them, and data are textmill's own classes."""
    held = [
        i for part in parts if isinstance(part, TextProcessor) for i in part.ingredients.values()
    ]
    return all(type(part).__module__.startswith("textmill.") for part in (*parts, *held))


def kept_fingerprint(data: object, text: TextProcessor) -> str | None:
    """The data's fingerprint; None where it has none, or where nothing can tell a store's age.

    Code of a user's own may give other rows or ids after any change of it, so tokens are kept
    only of textmill's own data, text processors and tokenizers. Data may say that none are to be
    kept.
    """
    if not isinstance(data, Fingerprinted) or not _is_ours(data, text):
        return None
    return data.fingerprint() if not isinstance(data, Batched) or data.keeps_tokens else None


@dataclass(frozen=True)
class TokenStore:
    """Where the ids of some rows under some text processor are kept."""

    folder: Path
    """Its folder, whether it is there yet or not."""
    facts: Mapping[str, Any]
    """What it is, or is to be, made of."""
    dtypes: Mapping[str, str]
    """The type that the ids of each column are kept in."""

    @classmethod
    def of(cls, text: TextProcessor, fingerprint: str) -> "TokenStore":
        """The store of the data of that fingerprint, encoded by that text processor."""
        packages = ("sentencepiece", "tokenizers")
        facts = {
            "text": text_fingerprint(text),
            "data": fingerprint,
            "columns": list(text.arrays),
            "encoding": ENCODING,
            "versions": {name: importlib.metadata.version(name) for name in packages},
        }
        return cls(store_folder("tokens", facts), facts, text.arrays)

    def open(self, *, whole: bool = False) -> tuple[StoreManifest, Encoded] | None:
        """The manifest and the mapped ids; None where there are none yet.

        With ``whole`` every byte is verified, and not the sizes alone.
        """
        manifest = StoreManifest.of(self.folder, self.facts, whole=whole)
        if manifest is None:
            return None

        def mapped(name: str, dtype: str) -> NDArray[Any]:
            path = self.folder / name
            # A plain view: each operation on a memmap object costs some microseconds more.
            return np.asarray(np.memmap(path, dtype, "r") if path.stat().st_size else [], dtype)

        columns = {
            name: Ragged(mapped(f"{name}.values", dtype), mapped(f"{name}.offsets", "<i8"))
            for name, dtype in self.dtypes.items()
        }
        return manifest, Encoded(columns, mapped("over_length", "<i8"))

    def get(
        self,
        text: TextProcessor,
        rows: cells.Rows,
        *,
        workers: int | None = None,
        whole: bool = False,
        say: Callable[[str], None] = LOG.info,
    ) -> Encoded:
        """Opens the store; makes it where it is missing, damaged or of other rows."""
        with suppress(DamagedStoreError):
            if (kept := self._compared(text, rows, whole)) is not None:
                return kept
        with locked(self.folder):
            try:  # the process that had the lock until now may have made it
                kept = self._compared(text, rows, whole)
            except DamagedStoreError as error:
                LOG.warning("%s. The tokens are made again.", error)
                kept = None
            if kept is None:
                say(f"Tokenizing {len(rows):,} rows, once, into {self.folder}.")
                start = time.perf_counter()
                self._make(text, rows, workers)
                seconds = time.perf_counter() - start
                speed = f"{len(rows) / seconds:,.0f} rows/s"
                say(f"Tokenized {len(rows):,} rows in {seconds:.1f} s ({speed}).")
        opened = self.open()
        assert opened is not None, f"{self.folder} was just written"
        return opened[1]

    def _compared(self, text: TextProcessor, rows: cells.Rows, whole: bool) -> Encoded | None:
        """The mapped ids where there are any, of which some are compared with ids made now."""
        opened = self.open(whole=whole)
        if opened is None:
            return None
        manifest, kept = opened
        if manifest.summary["rows"] != len(rows):
            raise DamagedStoreError(
                f"{self.folder} has {manifest.summary['rows']:,} rows, and the data {len(rows):,}"
            )
        numbers = np.unique(np.linspace(0, len(rows) - 1, COMPARED_ROWS).astype(np.int64))
        made = text.encode([rows[n] for n in numbers.tolist()], with_targets=True)
        over = np.flatnonzero(np.isin(numbers, kept.over_length))
        if not np.array_equal(over, made.over_length) or any(
            kept[name].take(numbers) != made[name] for name in text.arrays
        ):
            raise DamagedStoreError(f"{self.folder} has other ids than these rows get now")
        return kept

    def _make(self, text: TextProcessor, rows: cells.Rows, workers: int | None) -> None:
        if workers is None:
            workers = workers_for(characters_of(rows, text.columns))
        make_folder(self.folder.parent)
        with made_store(self.folder, self.facts) as (part, summary), ExitStack() as stack:
            summary["rows"], done, sizes = len(rows), 0, dict.fromkeys(self.dtypes, 0)
            names = ["over_length", *(f"{n}.{k}" for n in sizes for k in ("values", "offsets"))]
            files = {name: stack.enter_context((part / name).open("wb")) for name in names}
            for name in sizes:
                files[f"{name}.offsets"].write(bytes(8))
            chunks = chunks_of(rows, text.columns)
            for encoded in encode_chunks(text, chunks, workers=workers):
                files["over_length"].write((encoded.over_length + done).astype("<i8").tobytes())
                for name, column in encoded.columns.items():
                    dtype = np.dtype(self.dtypes[name])
                    wide = np.issubdtype(dtype, np.floating)
                    assert wide or column.values.max(initial=0) <= np.iinfo(dtype).max, "too large"
                    files[f"{name}.values"].write(column.values.astype(dtype).tobytes())
                    ends = column.offsets[1:] + sizes[name]
                    files[f"{name}.offsets"].write(ends.astype("<i8").tobytes())
                    sizes[name] += len(column.values)
                done += encoded.num_rows


def chunks_of(rows: cells.Rows, columns: Sequence[str]) -> Iterator[cells.Rows]:
    """Parts of the rows, each of a bounded number of rows and characters."""
    size = CHUNK_ROWS
    if isinstance(rows, StoredRows):  # few of them at once where they are long
        average = rows.num_bytes // max(1, len(rows))
        size = max(1, min(size, CHUNK_CHARACTERS // max(1, average)))
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        ends = np.cumsum(sum(_lengths(part, name) for name in columns))
        cuts = np.flatnonzero(np.diff(ends // CHUNK_CHARACTERS)) + 1
        for a, b in itertools.pairwise([0, *cuts.tolist(), len(part)]):
            yield part[a:b]


def characters_of(rows: cells.Rows, columns: Sequence[str]) -> int:
    """Characters of the columns; 0 where a row lacks one, which the encoder will say."""
    if isinstance(rows, StoredRows):  # not read for that: at most as many as it has bytes
        return rows.num_bytes
    try:
        return sum(int(_lengths(rows, name).sum()) for name in columns)
    except (KeyError, TypeError):
        return 0


def _lengths(rows: cells.Rows, name: str) -> NDArray[np.int64]:
    column = rows.column(name) if isinstance(rows, Rows) else [row[name] for row in rows]
    return np.fromiter(map(len, column), np.int64, len(rows))


def text_fingerprint(text: TextProcessor) -> str:
    """64 hexadecimal digits of the files that the processor saves: of all that decides its ids."""
    with tempfile.TemporaryDirectory(prefix="textmill-text-") as place:
        text.save(Path(place))
        files = sorted(path for path in Path(place).rglob("*") if path.is_file())
        listed = [[path.relative_to(place).as_posix(), sha256(path)] for path in files]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


# -- in several processes


def workers_for(characters: int) -> int:
    """How many processes pay for so much text; 0: encode here."""
    useful = min(usable_cores(), MOST_WORKERS, characters // WORKER_CHARACTERS)
    return useful if useful > 1 else 0


def encode_chunks(
    text: TextProcessor, chunks: Iterable[cells.Rows], *, workers: int = 0
) -> Iterator[Encoded]:
    """Encodes chunk after chunk, with targets, in their order; at most two a worker are held.

    Where the workers cannot start, or one dies, what is left is encoded here.
    """
    if not workers:
        for chunk in chunks:
            yield text.encode(chunk, with_targets=True)
        return
    waiting, left = deque[tuple[cells.Rows, Future[Encoded] | None]](), iter(chunks)
    with tempfile.TemporaryDirectory(prefix="textmill-text-") as folder:
        text.save(Path(folder))
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, spawn, _start_worker, (folder,))
        try:
            while True:
                for chunk in itertools.islice(left, 2 * workers - len(waiting)):
                    try:
                        with _without_script():
                            waiting.append((chunk, pool.submit(_encode, chunk)))
                    except (BrokenExecutor, OSError):
                        waiting.append((chunk, None))
                if not waiting:
                    return
                chunk, future = waiting.popleft()
                try:
                    found = None if future is None else future.result()
                except BrokenExecutor as error:
                    LOG.debug("An encoding process failed (%r); its rows are encoded here.", error)
                    found = None
                yield text.encode(chunk, with_targets=True) if found is None else found
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _without_script() -> Iterator[None]:
    """A process that starts meanwhile does not import the script that runs here: it would train."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


_WORKERS_OWN = dict[str, TextProcessor]()


def _start_worker(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    _WORKERS_OWN["text"] = load_text_processor(Path(folder))


def _encode(rows: cells.Rows) -> Encoded:
    return _WORKERS_OWN["text"].encode(rows, with_targets=True)
