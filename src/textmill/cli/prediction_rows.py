"""The rows that ``textmill predict`` answers, each with its place in what they were read from."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

HEAD_LINES, HEAD_BYTES = 20, 1 << 20
"""The part of a stream that is read ahead: its first row may be a header of several lines."""
OTHER_WIDTH = re.compile(r"wanted .*\bcolumns?, found \d+$")
"""The problem of a row with another number of columns."""
LONGEST = 100_000_000
"""Bytes of the longest line of text that is read; a text to summarize may be a book."""


@dataclass(frozen=True)
class Asked:
    """A row to answer, or one that could not be read."""

    place: str
    """The line of a stream; file and line."""
    row: Any
    """The row; the beginning of one that could not be read."""
    problem: str | None = None
    """Why it could not be read."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """All its columns, if they are written, by their names in the output."""
    done: int = 0
    """How much was read before it: bytes, or rows of Parquet and Arrow."""


class Peeked:
    """A stream of bytes whose first lines can be looked at before it is read."""

    def __init__(self, stream: Any) -> None:
        self._stream, lines, left = stream, list[bytes](), HEAD_BYTES
        while len(lines) < HEAD_LINES and left > 0 and (line := stream.readline(left)):
            lines.append(line)
            left -= len(line)
        self._next = self.lines = b"".join(lines)

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def read(self, size: int) -> bytes:
        given, self._next = self._next[:size], self._next[size:]
        return given or self._stream.read1(size)


def reading_hint(rows: "ColumnRows | LineRows", problems: Iterable[str]) -> str:
    """How to read rows that are not UTF-8 or have another number of columns; else empty."""
    from textmill.data.formats.header import columns_setting
    from textmill.data.look.guess import seen_words
    from textmill.text.encodings import UTF8, WINDOWS, is_undecodable

    reasons = [problem.partition(": ")[2] for problem in problems]
    if rows.encoding == UTF8 and any(map(is_undecodable, reasons)):
        return (
            f"Rows that are not UTF-8 are read by encoding={WINDOWS}, if Windows or Excel wrote "
            "them."
        )
    if isinstance(rows, ColumnRows) and any(map(OTHER_WIDTH.match, reasons)):
        seen = seen_words(Path(rows.name), rows.layout.columns)
        where = seen or columns_setting(rows.layout.columns)
        return f"Say {'how the file is read' if seen else 'where the columns are'}, as {where}"
    return ""


def answers(
    predictor: Any, rows: Iterable[Asked]
) -> Iterator[list[tuple[Asked, Mapping[str, Any]]]]:
    """Rows with their answers, in order, in chunks that are answered together.

    An answer is plain data, or has ``error``, which names the row's place. The chunks depend only
    on the rows, so answers are the same each time.
    """
    from textmill.exported.row_predictor import characters, row_chunks

    for chunk in row_chunks(rows, lambda asked: characters(asked.kept or asked.row)):
        found = iter(predictor.answered([one.row for one in chunk if one.problem is None]))
        yield [_answered(predictor, asked, found) for asked in chunk]


def _answered(predictor: Any, asked: Asked, found: Iterator[Any]) -> tuple[Asked, dict[str, Any]]:
    if asked.problem is not None:
        name = predictor.columns[0] if len(predictor.columns) == 1 else "text_excerpt"
        shown = replace(asked, row={name: asked.row})
        return shown, {"error": f"{asked.place}: {asked.problem}"}
    row, answer = next(found)
    if "error" in answer:
        answer = {"error": f"{asked.place}: {answer['error']}"}
    return replace(asked, row=row), answer


class LineRows:
    """Rows of one text each, the lines of a stream.

    A line that training could not read has a problem: bad UTF-8, NUL, or an empty line. ``name`` is
    the stream's in errors, ``column`` that of the lines in an output.
    """

    def __init__(self, stream: Any, name: str, *, column: str, encoding: str = "utf-8") -> None:
        self.stream, self.name, self._column = stream, name, column
        self.names, self.batches, self.encoding = (column,), None, encoding

    def size(self) -> int | None:
        """Number of bytes; None if it is not known."""
        return _bytes_of(self.stream)

    def __iter__(self) -> Iterator[Asked]:
        from textmill.data.bad_rows import BadRow
        from textmill.data.formats.lines import bare_lines

        scan = bare_lines(longest=LONGEST, encoding=self.encoding).scan(self.stream, self.name)
        for number, found in scan:
            problem = None
            if isinstance(found, BadRow):
                text, problem = found.text_excerpt, found.reason
            elif not (text := found[0]).strip():
                problem = "the line is empty"
            yield Asked(f"line {number}", text, problem, {self._column: text}, scan.place)


class ColumnRows:
    """The rows of a file of columns; a row that cannot be read keeps its place.

    ``layout`` is a :class:`~textmill.data.formats.row_format.RowFormat`. With ``whole`` a row has
    all entries of its JSON object; with ``keep`` all columns are kept, of which those of Parquet
    and Arrow are read by ``batches``.
    """

    def __init__(
        self, stream: Any, name: str, layout: Any, *, whole: bool = False, keep: bool = False
    ) -> None:
        from textmill.data.formats.json_lines import ColumnarFormat, JsonLinesFormat

        self.layout, self.name, self.stream = layout, name, stream
        self.scan = layout.scan(stream, name)
        self.batches, self.encoding = None, getattr(layout, "encoding", "")
        if isinstance(layout, ColumnarFormat):
            from textmill.data.formats.arrow_files import record_batches

            self.batches = partial(record_batches, stream.name, layout.kind)
        self._names = list[str]()
        self._is_json = isinstance(layout, JsonLinesFormat)
        self._whole, self._keep = whole, keep

    @property
    def names(self) -> Sequence[str]:
        header = self.scan.names
        return kept_names(self.layout, header, len(header)) if header else ()

    def size(self) -> int | None:
        """Number of bytes, or of rows of Parquet and Arrow; None if it is not known."""
        if self.batches is not None:
            from textmill.data.formats.arrow_files import num_rows

            return num_rows(self.stream.name, self.layout.kind)
        return _bytes_of(self.stream) if self.encoding else None

    def __iter__(self) -> Iterator[Asked]:
        from textmill.data.bad_rows import BadRow

        scan, layout = self.scan, self.layout
        for line, row in scan:
            place = f"{self.name}:{line}"
            kept = self._kept() if self._keep else {}
            found = scan.record if self._is_json else None
            if isinstance(found, str):
                yield Asked(place, found, None, kept, scan.place)
            elif isinstance(row, BadRow):
                yield Asked(place, row.text_excerpt, row.reason, kept, scan.place)
            else:
                # Optional columns, such as a prefix, need not be in each row.
                named = zip(layout.columns, row, strict=True)
                read = {k: v for k, v in named if v != "" or k in layout.required}
                more = found if self._whole and found else {}
                yield Asked(place, {**more, **read}, None, kept, scan.place)

    def _kept(self) -> Mapping[str, Any]:
        found = self.scan.record
        if isinstance(found, str):
            return {next(iter(self.layout.columns)): found}
        if found is None or isinstance(found, Mapping):
            return found or {}
        if len(self._names) != len(found):
            self._names = kept_names(self.layout, self.scan.names, len(found))
        return dict(zip(self._names, found, strict=True))


def kept_names(layout: Any, header: Sequence[str], count: int) -> list[str]:
    """Names for all columns of a row, each once: those of the header, else as they are read."""
    places = {at: name for name, at in layout.columns.items() if isinstance(at, int)}
    read = {at % count if at < 0 else at: name for at, name in {**layout.others, **places}.items()}
    named = [name.strip() for name in header] or [read.get(at, "") for at in range(count)]
    names = dict[str, int]()  # with the last number of each: a header may have one name often
    for at in range(count):
        name = called = (named[at] if at < len(named) else "") or f"column_{at}"
        while called in names:
            names[name] += 1
            called = f"{name}_{names[name]}"
        names[called] = 1
    return [*names]


def _bytes_of(stream: Any) -> int | None:
    with contextlib.suppress(OSError, AttributeError):
        about = os.fstat(stream.fileno())
        return about.st_size if stat.S_ISREG(about.st_mode) else None
    return None
