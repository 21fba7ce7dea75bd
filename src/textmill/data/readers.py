"""Reads files of rows: every row is a good one or a bad one with its place and reason.

How a file becomes rows is its format's: `textmill.data.formats`. The rows of a file that is larger
than memory are written once into a cache, ``rows.arrow``, and mapped from there; it is named after
the file's path, size and time, so a later run reads nothing.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from textmill.data.bad_rows import KEPT, BadRow, RowCount
from textmill.data.formats.json_lines import JsonLinesFormat
from textmill.data.formats.lines import LineFormat as LineFormat
from textmill.data.formats.lines import text_format as text_format
from textmill.data.formats.lines import tsv_format as tsv_format
from textmill.data.formats.row_format import LinesFormat, RowFormat
from textmill.data.line_blocks import FileNotes
from textmill.data.store.cache import (
    LOG,
    DamagedStoreError,
    StoreManifest,
    locked,
    made_store,
    store_folder,
)
from textmill.errors import DataError, UserError
from textmill.text.cells import ListCell

READING = 6
"""Counts the changes of what a cache of rows holds: that of an older textmill is not taken."""
BATCH_ROWS, BATCH_CHARACTERS = 4096, 8_000_000
"""A record batch of the cache ends with either."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A file that was read whole.

    Attributes:
        columns: Name to the values of the good rows, in the file's order; empty if they are cached.
        batches: Record batches of the cache that have the rows; None if ``columns`` has them.
        lines: The line number of each good row, from 1.
        bad_rows: The others; of a great many the first `KEPT`.
        count: Good, bad and total.
        notes: Oddities that cost no row.
        sha256: Of the file's bytes.
    """

    columns: dict[str, list[str]]
    batches: Sequence[Any] | None = None
    lines: Sequence[int] | NDArray[np.int64]
    bad_rows: Sequence[BadRow]
    count: RowCount
    notes: FileNotes
    sha256: str


def read_rows(
    source: Path | str | BinaryIO, layout: RowFormat
) -> Iterator[dict[str, str] | BadRow]:
    r"""The rows of a file or stream in their order, in bounded memory; a bad row takes its place.

    Args:
        source: A path, ``"-"`` for standard input, or a stream of bytes. What is typed is given
            line by line.
        layout: From `tsv_format`, `text_format`, `csv_format`, ...

    Raises:
        UserError: The file cannot be opened.
        DataError: The header does not have the columns.
    """
    names = tuple(layout.columns)
    with _opened(source) as (stream, name):
        for _, row in layout.scan(stream, name):
            yield row if isinstance(row, BadRow) else dict(zip(names, row, strict=True))


def read_table(path: Path | str | BinaryIO, layout: RowFormat) -> Table:
    """Reads a whole file in one pass; the arguments and errors are those of `read_rows`."""
    columns: list[list[str]] = [[] for _ in layout.columns]
    lines, bad, num_bad = list[int](), list[BadRow](), 0
    with _opened(path) as (stream, name):
        scan = layout.scan(stream, name)
        for line, found in scan.parts():
            if isinstance(found, BadRow):
                num_bad += 1
                bad += [found] if num_bad <= KEPT else []
            elif isinstance(found, tuple):
                lines.append(line)
                for column, value in zip(columns, found, strict=True):
                    column.append(value)
            else:
                lines.extend(range(line, line + len(found[0])))
                for column, values in zip(columns, found, strict=True):
                    column.extend(values)
        return Table(
            columns=dict(zip(layout.columns, columns, strict=True)),
            lines=lines,
            bad_rows=bad,
            count=RowCount(len(lines), num_bad, scan.total),
            notes=scan.notes,
            sha256=scan.sha256,
        )


@contextmanager
def _opened(source: Path | str | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    if not isinstance(source, Path | str):
        yield source, str(getattr(source, "name", "<stream>"))
    elif str(source) == "-":
        yield sys.stdin.buffer, "-"
    else:
        try:
            stream = Path(source).open("rb")  # noqa: SIM115  # closed below; only its opening is tried
        except OSError as error:
            raise UserError(f"{source}: cannot be read: {error.strerror}.") from error
        with stream:
            yield stream, str(source)


# -- rows in the cache


def cached_table(path: Path, layout: RowFormat) -> Table:
    """The rows of a file in the cache; made in one pass if it has none of the file as it is now."""
    import pyarrow  # takes .1 s

    status = path.stat()
    facts = {
        "path": str(path.resolve()),
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "format": type(layout).__name__,
        "reading": READING,
        "layout": layout.reading(),
    }
    folder = store_folder("rows", facts)
    try:
        kept = StoreManifest.of(folder, facts)
    except DamagedStoreError:
        kept = None
    if kept is None:
        with locked(folder):
            try:  # the process that had the lock until now may have made it
                kept = StoreManifest.of(folder, facts)
            except DamagedStoreError as error:
                LOG.warning("%s. The file is read again.", error)
            if kept is None:
                LOG.info("Reading %s, once (%s bytes).", path, f"{status.st_size:,}")
                with made_store(folder, facts) as (part, summary):
                    summary.update(_write(path, layout, part))
                    now = path.stat()
                    if (now.st_size, now.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
                        raise DataError(
                            f"{path} was changed while it was read. Start again when it is whole."
                        )
                kept = StoreManifest.of(folder, facts)
    assert kept is not None, f"{folder} was just written"
    about, lines = kept.summary, folder / "lines"
    mapped = np.memmap(lines, "<i8", "r") if lines.stat().st_size else np.zeros(0, np.int64)
    opened = pyarrow.ipc.open_file(pyarrow.memory_map(str(folder / "rows.arrow")))
    return Table(
        columns={},
        batches=[opened.get_batch(n) for n in range(opened.num_record_batches)],
        lines=np.asarray(mapped),
        bad_rows=[BadRow(str(path), *row) for row in about["bad_rows"]],
        count=RowCount(len(mapped), about["bad"], about["total"]),
        notes=FileNotes(**about["notes"]),
        sha256=about["sha256"],
    )


def _write(path: Path, layout: RowFormat, folder: Path) -> dict[str, Any]:
    """Writes the good rows of a file, and says what else is known of it."""
    import pyarrow

    fields = [(f"{at}", pyarrow.string()) for at, _ in enumerate(layout.columns)]
    has_lists = not isinstance(layout, LinesFormat) or isinstance(layout, JsonLinesFormat)
    has_lists = has_lists or bool(getattr(layout, "lists", ()))
    if has_lists:
        fields += [(f"parts {name}", pyarrow.list_(pyarrow.string())) for name, _ in fields]
    schema = pyarrow.schema(fields)
    columns, lines = [list[str]() for _ in layout.columns], list[int]()
    bad, num_bad, characters = list[BadRow](), 0, 0
    with (
        path.open("rb") as stream,
        pyarrow.ipc.new_file(folder / "rows.arrow", schema) as writer,
        (folder / "lines").open("wb") as numbers,
    ):

        def flush() -> None:
            arrays = [pyarrow.array(column, pyarrow.string()) for column in columns]
            for column in columns if has_lists else ():
                parts = [list(v.parts) if isinstance(v, ListCell) else None for v in column]
                arrays.append(pyarrow.array(parts, pyarrow.list_(pyarrow.string())))
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
            numbers.write(np.array(lines, "<i8").tobytes())
            lines.clear()
            for column in columns:
                column.clear()

        scan = layout.scan(stream, str(path))
        for line, found in scan.parts():
            if isinstance(found, BadRow):
                num_bad += 1
                bad += [found] if num_bad <= KEPT else []
                continue
            many = found if isinstance(found, list) else [[value] for value in found]
            lines.extend(range(line, line + len(many[0])))
            for column, values in zip(columns, many, strict=True):
                column.extend(values)
                characters += sum(map(len, values))
            if len(lines) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
                flush()
                characters = 0
        if lines:
            flush()
    return {
        "bad_rows": [[*asdict(row).values()][1:] for row in bad],
        "bad": num_bad,
        "total": scan.total,
        "notes": asdict(scan.notes),
        "sha256": scan.sha256,
    }
