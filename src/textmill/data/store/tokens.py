"""The token store: rows are encoded once, and every later run maps the ids into memory.

A store is named after what it was made of: the text processor (its saved files, so vocabulary,
languages and limits), the data (its fingerprint) and the versions of the tokenizer libraries. The
batches gathered from it are bit for bit those of rows that were just encoded.
"""

import hashlib
import importlib.metadata
import itertools
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.data.batching import Batched
from textmill.data.rows import StoredRows
from textmill.data.store.arrays import (
    ArrayWriter,
    DamagedStoreError,
    StoreManifest,
    check_room,
    locked,
    store_root,
)
from textmill.data.store.encoding import column_of, encode_chunks, workers_for
from textmill.data.store.reuse import KeptRows, kept_elsewhere, open_ids, part_of
from textmill.errors import DataError, StorageError
from textmill.runtime.files import make_folder, sha256
from textmill.text.cells import Fingerprinted, placed_errors
from textmill.text.processors.text_processor import Encoded, TextProcessor
from textmill.text.ragged import Ragged, offsets_of

LOG = logging.getLogger("textmill")

LEAST_CHARACTERS = 4_000_000
"""Less text is encoded anew in each run: 0.4 s with SentencePiece (11 million characters a second),
about one with a slower tokenizer."""
ENCODING = 2
"""To be raised with each change of textmill's own code that gives some text other ids."""
CHUNK_ROWS = 65_536
CHUNK_CHARACTERS = 8_000_000
"""A chunk ends with either: what is lost at most when the writing is killed, 0.8 s of work."""
PLACES = 8
"""Rows are looked at in so many places of the data; more cost too much where a row group of Parquet
is read for each."""
COMPARED_ROWS = 8  # in each place, whenever a store is opened
MEASURED_ROWS = 128  # in each place, for the room a store will take

Row = Mapping[str, str]


def encoded_rows(text: TextProcessor, rows: Sequence[Row], fingerprint: str | None) -> Encoded:
    """Encodes rows with their targets, or finds them encoded.

    Little text (``LEAST_CHARACTERS``) and rows without a fingerprint are encoded now, and held in
    memory. So is text whose store cannot be written, which is said. Much text is encoded by several
    processes, whether it is kept or not.

    Args:
        text: Encodes.
        rows: All rows.
        fingerprint: What tells these rows from others; None where nothing does.

    Raises:
        DataError: A row cannot be encoded; it names the row's place, where it is of a file.
    """
    with placed_errors(rows):
        if fingerprint is not None and characters_of(rows, text.columns) >= LEAST_CHARACTERS:
            try:
                return TokenStore.of(text, fingerprint).get(text, rows)
            except StorageError as error:
                LOG.warning("Tokens are not kept, and are made in memory: %s", error)
            except DataError as error:  # its row is counted from the beginning of a chunk
                LOG.debug("A row cannot be encoded: %s", error)
        return _encoded_now(text, rows)


def _encoded_now(text: TextProcessor, rows: Sequence[Row]) -> Encoded:
    """The ids of all rows in memory, made by several processes where that pays."""
    workers = workers_for(characters_of(rows, text.columns)) if _is_ours(text) else 0
    if not workers:
        return text.encode(rows, with_targets=True)
    try:
        parts = [*encode_chunks(text, chunks_of(rows, text.columns), workers=workers)]
    except DataError as error:  # its row is counted from the beginning of a chunk
        LOG.debug("A row cannot be encoded: %s", error)
        return text.encode(rows, with_targets=True)
    starts = np.cumsum([0, *(part.num_rows for part in parts)])
    over = [part.over_length + start for part, start in zip(parts, starts, strict=False)]
    columns = {name: [part[name] for part in parts] for name in parts[0].columns}
    joined = {
        name: Ragged(
            np.concatenate([one.values for one in each]),
            offsets_of(np.concatenate([one.lengths for one in each])),
        )
        for name, each in columns.items()
    }
    return Encoded(joined, np.concatenate(over))


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
    """The type of each array in it."""

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
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
        dtypes = {"over_length": "<i8"}
        for name, dtype in text.arrays.items():
            dtypes[f"{name}.values"] = dtype
            dtypes[f"{name}.offsets"] = "<i8"
        return cls(store_root() / "tokens" / key, facts, dtypes)

    def open(self, *, whole: bool = False) -> tuple[StoreManifest, Encoded] | None:
        """The manifest and the mapped ids; None where there are none yet.

        Args:
            whole: Verify every byte, not sizes and times only.

        Raises:
            DamagedStoreError: They are not what was written.
        """
        return open_ids(self.folder, self.facts, whole=whole)

    def get(
        self,
        text: TextProcessor,
        rows: Sequence[Row],
        *,
        workers: int | None = None,
        whole: bool = False,
        say: Callable[[str], None] = LOG.info,
    ) -> Encoded:
        """Opens the store; makes it where it is missing, damaged or of other rows.

        Args:
            text: What it was named after, as are the rows.
            rows: All rows.
            workers: Processes that encode; None is as many as pay.
            whole: Verify every byte.
            say: Called with lines about what is done.

        Raises:
            StorageError: It cannot be written.
        """
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
                self._make(text, rows, workers, say)
        opened = self.open()
        assert opened is not None, f"{self.folder} was just written"
        return opened[1]

    def _compared(self, text: TextProcessor, rows: Sequence[Row], whole: bool) -> Encoded | None:
        """The mapped ids where there are any, of which some are compared with ids made now."""
        opened = self.open(whole=whole)
        if opened is None:
            return None
        manifest, kept = opened
        if manifest.summary["rows"] != len(rows):
            raise DamagedStoreError(
                f"{self.folder} has {manifest.summary['rows']:,} rows, and the data {len(rows):,}"
            )
        numbers, some = spread_rows(rows, COMPARED_ROWS)
        made = text.encode(some, with_targets=True)
        over = np.flatnonzero(np.isin(numbers, kept.over_length))
        if not np.array_equal(over, made.over_length) or any(
            kept[name].take(numbers) != made[name] for name in text.arrays
        ):
            raise DamagedStoreError(f"{self.folder} has other ids than these rows get now")
        return kept

    def _make(
        self,
        text: TextProcessor,
        rows: Sequence[Row],
        workers: int | None,
        say: Callable[[str], None],
    ) -> None:
        characters = characters_of(rows, text.columns)
        needed = self._room(text, rows)
        make_folder(self.folder.parent)
        check_room(self.folder.parent, needed)
        writer = ArrayWriter(self.folder, self.facts, self.dtypes)
        try:
            done = writer.place or 0
            again = f", going on at row {done:,}" if done else ""
            say(
                f"Tokenizing {len(rows):,} rows, once, into {self.folder} "
                f"(about {needed / 1e6:,.0f} MB){again}."
            )
            start = time.perf_counter()
            wanted = workers_for(characters) if workers is None else workers
            kept = kept_elsewhere(self.folder, self.facts, rows)
            if kept:
                count = sum(stop - max(first, done) for first, stop, _ in kept if stop > done)
                say(f"Of files that did not change the ids are there: of {count:,} rows.")
            _write(writer, text, rows, workers=wanted, kept=kept)
            seconds = time.perf_counter() - start
            pieces = rows.pieces if isinstance(rows, StoredRows) else ()
            writer.finish({"rows": len(rows), **({"pieces": [*pieces]} if pieces else {})})
        finally:
            writer.close()
        fresh = len(rows) - done
        say(f"Tokenized {fresh:,} rows in {seconds:.1f} s ({fresh / seconds:,.0f} rows/s).")

    def _room(self, text: TextProcessor, rows: Sequence[Row]) -> int:
        """Bytes the store will take, about: as many ids a row as rows all over the data have."""
        _, some = spread_rows(rows, MEASURED_ROWS)
        made = text.encode(some, with_targets=True)
        size = 8 * len(made.over_length)
        for name in text.arrays:
            size += np.dtype(self.dtypes[f"{name}.values"]).itemsize * len(made[name].values)
        return size * len(rows) // max(1, len(some)) + 8 * len(text.arrays) * (len(rows) + 1)


def _encoded_from(
    text: TextProcessor,
    rows: Sequence[Row],
    done: int,
    *,
    workers: int,
    kept: Sequence[KeptRows],
) -> Iterator[Encoded]:
    """The ids of all rows from number ``done`` on, encoded or as they are ``kept``."""
    for first, stop, encoded in [*kept, (len(rows), len(rows), None)]:
        if done < first:
            chunks = chunks_of(rows, text.columns, done, first)
            yield from encode_chunks(text, chunks, workers=workers)
            done = first
        while encoded is not None and done < stop:
            end = min(done + CHUNK_ROWS, stop)
            yield part_of(encoded, done - first, end - first)
            done = end


def _write(
    writer: ArrayWriter,
    text: TextProcessor,
    rows: Sequence[Row],
    *,
    workers: int,
    kept: Sequence[KeptRows],
) -> None:
    """Appends what is not in the store yet."""
    if writer.place is None:
        writer.append({f"{name}.offsets": np.zeros(1, np.int64) for name in text.arrays}, 0)
    done: int = writer.place
    for encoded in _encoded_from(text, rows, done, workers=workers, kept=kept):
        arrays: dict[str, NDArray[Any]] = {"over_length": encoded.over_length + done}
        for name, column in encoded.columns.items():
            dtype = np.dtype(writer.dtypes[f"{name}.values"])
            wide = np.issubdtype(dtype, np.floating)
            assert wide or column.values.max(initial=0) <= np.iinfo(dtype).max, "an id is too large"
            before = writer.sizes[f"{name}.values"] // dtype.itemsize
            arrays[f"{name}.values"] = column.values
            arrays[f"{name}.offsets"] = column.offsets[1:] + before
        done += encoded.num_rows
        writer.append(arrays, done)


def chunks_of(
    rows: Sequence[Row], columns: Sequence[str], start: int = 0, stop: int | None = None
) -> Iterator[Sequence[Row]]:
    """Parts of the rows from number ``start`` on, each of a bounded number of rows and characters.

    >>> [len(part) for part in chunks_of([{"a": "x"}] * 3, ["a"], 1)]
    [2]
    """
    size = CHUNK_ROWS
    if isinstance(rows, StoredRows):  # few of them at once where they are long
        average = rows.num_bytes // max(1, len(rows))
        size = max(1, min(size, CHUNK_CHARACTERS // max(1, average)))
    stop = len(rows) if stop is None else stop
    for first in range(start, stop, size):
        part = rows[first : min(first + size, stop)]
        ends = np.cumsum(sum(_lengths(part, name) for name in columns))
        cuts = np.flatnonzero(np.diff(ends // CHUNK_CHARACTERS)) + 1
        for a, b in itertools.pairwise([0, *cuts.tolist(), len(part)]):
            yield part[a:b]


def spread_rows(rows: Sequence[Row], length: int) -> tuple[NDArray[np.int64], list[Row]]:
    """Numbers and rows of runs in ``PLACES`` places, the first and the last rows among them.

    Args:
        rows: All rows.
        length: Rows of a run; fewer where they are long and not in memory.

    >>> spread_rows([{"a": "x"}] * 15, 1)[0].tolist()
    [0, 2, 4, 6, 8, 10, 12, 14]
    """
    count = len(rows)
    if isinstance(rows, StoredRows):
        average = max(1, rows.num_bytes // max(1, count))
        length = max(1, min(length, CHUNK_CHARACTERS // (PLACES * average)))
    if count <= PLACES * length:
        return np.arange(count), list(rows)
    starts = np.linspace(0, count - length, PLACES).astype(np.int64).tolist()
    some = [row for first in starts for row in rows[first : first + length]]
    return np.concatenate([np.arange(first, first + length) for first in starts]), some


def characters_of(rows: Sequence[Row], columns: Sequence[str]) -> int:
    """Characters of the columns; 0 where a row lacks one, which the encoder will say."""
    if isinstance(rows, StoredRows):  # not read for that: at most as many as it has bytes
        return rows.num_bytes
    try:
        return sum(int(_lengths(rows, name).sum()) for name in columns)
    except (KeyError, TypeError):
        return 0


def text_fingerprint(text: TextProcessor) -> str:
    """64 hexadecimal digits of the files that the processor saves: of all that decides its ids."""
    with tempfile.TemporaryDirectory(prefix="textmill-text-") as place:
        text.save(Path(place))
        files = sorted(path for path in Path(place).rglob("*") if path.is_file())
        listed = [[path.relative_to(place).as_posix(), sha256(path)] for path in files]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _lengths(rows: Sequence[Row], name: str) -> NDArray[np.int64]:
    return np.fromiter(map(len, column_of(rows, name)), np.int64, len(rows))
