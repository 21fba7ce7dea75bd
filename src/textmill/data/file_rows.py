"""Rows of a file that is larger than memory: they stay in it, and an index knows where each begins.

The index (8 bytes a row for its place, 8 for its line) is made in one pass, kept in the store and
mapped into memory. It is named after the file's path, size and time, so a later run reads nothing.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.data.bad_rows import KEPT, BadRow, RowCount
from textmill.data.formats.lines import TableScan
from textmill.data.formats.row_format import RowFormat, Scan
from textmill.data.line_blocks import FileNotes
from textmill.data.readers import ReadFile
from textmill.data.rows import Rows, StoredRows
from textmill.data.store.arrays import (
    ArrayWriter,
    DamagedStoreError,
    locked,
    open_arrays,
    store_root,
)
from textmill.errors import DataError

LOG = logging.getLogger("textmill")

CHUNK_ROWS = 1 << 20
NONE = np.zeros(0, np.int64)
READING = 4
"""Counts the changes of what an index holds: that of an older textmill is not taken."""


@dataclass(frozen=True, kw_only=True)
class RowIndex(ReadFile):
    """Where the good rows of a file begin, and what is known of the whole file."""

    places: NDArray[np.int64]
    """Of each good row: its byte from 0; of Parquet and Arrow its number from 0."""
    head: int
    """Where the first row begins, good or bad, after a header; 0 where there is none."""
    stamp: tuple[int, int]
    """The file's size in bytes and its time in nanoseconds, from before it was indexed."""


class FileRows(StoredRows):
    """The good rows of an indexed file.

    Args:
        path: The file.
        layout: How it is read.
        index: From `index_file`.
    """

    def __init__(self, path: Path, layout: RowFormat, index: RowIndex) -> None:
        super().__init__(tuple(layout.columns), index.stamp[0])
        self.path, self.layout, self.known = path, layout, index

    @override
    def __len__(self) -> int:
        return len(self.known.places)

    @override
    def place_of(self, row: int) -> str:
        return f"{self.path}:{self.known.lines[row]}"

    @override
    def read(self, start: int, stop: int) -> Rows:
        if start == stop:
            return self.rows_of([])
        places = self.known.places
        after = int(places[stop]) if stop < len(self) else None
        found: list[list[Any]] = [[] for _ in self.names]
        for part in self.layout.between(self.path, int(places[start]), after, head=self.known.head):
            for column, values in zip(found, part, strict=True):
                column.extend(values if isinstance(part, list) else (values,))
            if len(found[0]) > stop - start:
                break
        if len(found[0]) != stop - start or _stamp(self.path) != self.known.stamp:
            raise DataError(
                f"{self.path} was changed since it was read: rows {start + 1} to {stop} are not "
                "where they were. Start again."
            )
        return Rows(dict(zip(self.names, found, strict=True)))


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def index_file(path: Path, layout: RowFormat) -> RowIndex:
    """The index of a file; made in one pass where there is none of the file as it is now.

    Raises:
        StorageError: The index cannot be written.
        DataError: The header does not have the columns, or the file was changed while it was read.
    """
    stamp = _stamp(path)
    facts = {
        "path": str(path.resolve()),
        "size": stamp[0],
        "mtime_ns": stamp[1],
        "format": type(layout).__name__,
        "reading": READING,
        "layout": layout.reading(),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    folder = store_root() / "rows" / key
    try:
        kept = open_arrays(folder, facts)
    except DamagedStoreError:
        kept = None
    if kept is None:
        with locked(folder):
            kept = _make(folder, facts, path, layout)
    manifest, arrays = kept
    about = dict(manifest.summary)
    bad = [BadRow(str(path), *row) for row in about["bad_rows"]]
    good = len(arrays["places"])
    return RowIndex(
        places=arrays["places"],
        lines=arrays["lines"],
        head=about["head"],
        bad_rows=bad,
        count=RowCount(good, about["bad"], about["total"]),
        notes=FileNotes(**about["notes"]),
        sha256=about["sha256"],
        stamp=stamp,
    )


def _make(folder: Path, facts: Mapping[str, Any], path: Path, layout: RowFormat) -> Any:
    try:
        kept = open_arrays(folder, facts)  # by the process that had the lock until now
        if kept is not None:
            return kept
    except DamagedStoreError as error:
        LOG.warning("%s. The file is read again.", error)
    LOG.info("Reading %s, once (%s bytes).", path, f"{facts['size']:,}")
    writer = ArrayWriter(folder, facts, {"places": "<i8", "lines": "<i8"}, resume=False)
    bad, num_bad = list[BadRow](), 0
    head: int | None = None
    try:
        with path.open("rb") as stream:
            scan = layout.scan(stream, str(path))
            for arrays, wrong in _chunks(scan):
                num_bad += len(wrong)
                bad += wrong[: KEPT - len(bad)]
                if head is None:
                    starts = [*arrays["places"][:1].tolist()]
                    starts += [row.byte_offset or 0 for row in wrong[:1]]
                    head = min(starts, default=None)
                writer.append(arrays, None)
        if _stamp(path) != (facts["size"], facts["mtime_ns"]):
            raise DataError(
                f"{path} was changed while it was read, so the places of its rows are "
                "unknown. Start again when it is whole."
            )
        summary = {
            "head": head or 0 if layout.has_header else 0,
            "bad_rows": [[*asdict(row).values()][1:] for row in bad],
            "bad": num_bad,
            "total": scan.total,
            "notes": asdict(scan.notes),
            "sha256": scan.sha256,
        }
        writer.finish(summary)
    finally:
        writer.close()
    return open_arrays(folder, facts)


def _chunks(scan: Scan[Any]) -> Iterator[tuple[dict[str, NDArray[np.int64]], list[BadRow]]]:
    """Places and lines of good rows, and bad rows, in chunks of about ``CHUNK_ROWS`` rows."""
    rest = scan.parts()
    while True:
        places, lines, bad, size = [NONE], [NONE], list[BadRow](), 0
        for line, found in rest:
            if isinstance(found, BadRow):
                bad.append(found)
            else:
                if isinstance(scan, TableScan) and isinstance(found, list):
                    places.append(scan.places)
                else:
                    places.append(np.array([scan.place]))
                lines.append(line + np.arange(len(places[-1])))
            size += 1 if isinstance(found, BadRow) else len(places[-1])
            if size >= CHUNK_ROWS:
                break
        yield {"places": np.concatenate(places), "lines": np.concatenate(lines)}, bad
        if size < CHUNK_ROWS:
            return
