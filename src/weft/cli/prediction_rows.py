"""The rows that ``weft predict`` answers, each with its place in what they were read from."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Asked", "answers", "column_rows", "line_rows"]

HEAD_LINES, HEAD_BYTES = 100, 1 << 20
"""What is looked at of a stream: as many rows as of a file, of which some may be long."""
LONGEST = 100_000_000
"""Bytes of a line of text that is not held in memory; a text to summarize may be a book."""


@dataclass(frozen=True)
class Asked:
    """A row, or what stands where one could not be read."""

    place: str
    """The line of a stream; file, line and byte."""
    row: Any
    """The row; the beginning of what was not read."""
    problem: str | None = None
    """Why it was not read."""


class Peeked:
    r"""A stream of which the first lines are known before it is read.

    Args:
        stream: Open for reading bytes.

    Example:
        >>> import io
        >>> peeked = Peeked(io.BytesIO(b"a\nb\n"))
        >>> peeked.lines, peeked.read(9), peeked.read(9)
        (b'a\nb\n', b'a\nb\n', b'')
    """

    def __init__(self, stream: Any) -> None:
        self._stream, lines, left = stream, list[bytes](), HEAD_BYTES
        while len(lines) < HEAD_LINES and left > 0 and (line := stream.readline(left)):
            lines.append(line)
            left -= len(line)
        self._next = self.lines = b"".join(lines)

    def read(self, size: int) -> bytes:
        """The next bytes, no more than there are at once."""
        given, self._next = self._next[:size], self._next[size:]
        return given or self._stream.read1(size)


def answers(predictor: Any, rows: Iterable[Asked]) -> Iterator[dict[str, Any]]:
    """An answer to each row, in order; an error names its place."""
    waiting = deque[Asked]()

    def given() -> Iterator[Any]:
        for asked in rows:
            waiting.append(asked)
            yield asked.row if asked.problem is None else {}  # an empty row is refused

    for result in predictor.stream(given()):
        asked = waiting.popleft()
        if asked.problem is not None:
            name = predictor.columns[0] if len(predictor.columns) == 1 else "text_excerpt"
            yield {name: asked.row, "error": f"{asked.place}: {asked.problem}"}
        elif "error" in result:
            yield {**result, "error": f"{asked.place}: {result['error']}"}
        else:
            yield result


def line_rows(stream: Any, name: str, *, json_lines: bool) -> Iterator[Asked]:
    """A row of each line: its text; or an object or a string that it is as JSON.

    A line that training could not read has its problem: bad UTF-8, NUL, or nothing on it.

    Raises:
        DataError: The stream, which errors call ``name``, is no text.
    """
    from weft.data.bad_rows import BadRow
    from weft.data.formats.lines import LineFormat

    whole = LineFormat({"text": 0}, (), separator=None, max_line_bytes=LONGEST)
    for number, found in whole.scan(stream, name):
        place = f"line {number}"
        if isinstance(found, BadRow):
            yield Asked(place, found.text_excerpt, found.reason)
            continue
        (text,) = found
        row, problem = _parsed(text) if json_lines else (text, None)
        if problem is None and not text.strip():
            problem = "the line is empty"
        yield Asked(place, row if problem is None else text, problem)


def _parsed(line: str) -> tuple[Any, str | None]:
    """A row that is JSON, and what is wrong with it."""
    from weft.data.formats.cells import json_of, text_problem

    try:
        row = json_of(line)
    except ValueError as error:
        return None, str(error)
    if not isinstance(row, str | dict):
        return None, f"wanted a JSON object or a JSON string, found {type(row).__name__}"
    for key, value in row.items() if isinstance(row, dict) else [("text", row)]:
        if isinstance(value, str) and (problem := text_problem(value)):
            return None, f"{key!r}: {problem}"
    return row, None


def column_rows(stream: Any, name: str, layout: Any, again: Any = None) -> Iterator[Asked]:
    """The rows of a file of columns, one that cannot be read in its place.

    Args:
        stream: The file.
        name: What errors call it.
        layout: A :class:`~weft.data.formats.row_format.RowFormat`.
        again: The file once more where all is wanted that an object of JSON lines has.
    """
    from dataclasses import replace

    from weft.data.bad_rows import BadRow
    from weft.data.formats.json_lines import JsonLinesFormat

    whole = again if isinstance(layout, JsonLinesFormat) else None
    scan = layout.scan(stream, name)
    for line, row in scan:
        bad = row if isinstance(row, BadRow) else BadRow(name, line, scan.byte, "", "")
        place = str(replace(bad, reason="")).removesuffix(": ")
        found = _json_at(whole, scan.place, layout.max_line_bytes) if whole else {}
        if isinstance(found, str):
            yield Asked(place, found)
        elif isinstance(row, BadRow):
            yield Asked(place, row.text_excerpt, row.reason)
        else:
            # What is not asked for but said, as a prefix, need not be in each row.
            named = zip(layout.columns, row, strict=True)
            read = {k: v for k, v in named if v != "" or k in layout.required}
            yield Asked(place, {**found, **read})


def _json_at(stream: Any, byte: int, longest: int) -> dict[str, Any] | str:
    """What is on a line of JSON if it is an object or a string, else nothing."""
    stream.seek(byte)
    try:
        found = json.loads(stream.readline(longest + 2).decode("utf-8-sig"))
    except (ValueError, RecursionError):  # why, the row says that was read of it
        return {}
    return found if isinstance(found, dict | str) else {}
