"""The rows that ``weft predict`` answers, each with its place in what they were read from."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["Asked", "answers", "column_rows", "line_rows"]


@dataclass(frozen=True)
class Asked:
    """A row, or what stands where one could not be read."""

    place: str
    """The line of a stream; file, line and byte."""
    row: Any
    """The row; the beginning of what was not read."""
    problem: str | None = None
    """Why it was not read."""


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


def line_rows(lines: Iterable[bytes], *, json_lines: bool) -> Iterator[Asked]:
    """A row of each line: its text; or an object or a string that it is as JSON."""
    for number, raw in enumerate(lines, start=1):
        place = f"line {number}"
        try:
            yield Asked(place, _parsed(raw.decode("utf-8"), json_lines=json_lines))
        except ValueError as error:
            why = (
                f"not UTF-8 (byte {error.start} of the line)"
                if isinstance(error, UnicodeDecodeError)
                else str(error)
            )
            yield Asked(place, raw.decode("utf-8", errors="replace").rstrip("\r\n"), why)


def _parsed(line: str, *, json_lines: bool) -> Any:
    line = line.rstrip("\r\n")
    if not json_lines:
        return line
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deep") from None
    if not isinstance(row, str | dict):
        raise ValueError(f"wanted a JSON object or a JSON string, found {type(row).__name__}")
    return row


def column_rows(path: Path, layout: Any, *, all_keys: bool = False) -> Iterator[Asked]:
    """The rows of a file of columns, one that cannot be read in its place.

    Args:
        path: The file.
        layout: A :class:`~weft.data.formats.row_format.RowFormat`.
        all_keys: Whether what else an object of JSON lines has is in its row, too, and a string is
            a row.
    """
    from dataclasses import replace

    from weft.data.bad_rows import BadRow
    from weft.data.formats.json_lines import JsonLinesFormat
    from weft.data.formats.row_format import CountingScan

    whole = all_keys and isinstance(layout, JsonLinesFormat)
    with path.open("rb") as stream, path.open("rb") as again:
        scan = layout.scan(stream, str(path))
        for line, row in scan:
            byte = None if isinstance(scan, CountingScan) else scan.place
            bad = row if isinstance(row, BadRow) else BadRow(str(path), line, byte, "", "")
            place = str(replace(bad, reason="")).removesuffix(": ")
            found = _json_at(again, scan.place, layout.max_line_bytes) if whole else {}
            if isinstance(found, str):
                yield Asked(place, found)
            elif isinstance(row, BadRow):
                yield Asked(place, row.text_excerpt, row.reason)
            else:
                # What is not asked for but said, as a prefix, need not be in each row.
                named = zip(layout.columns, row, strict=True)
                read = {k: v for k, v in named if v != "" or k in layout.required}
                yield Asked(place, {**found, **read})


def _json_at(stream: BinaryIO, byte: int, longest: int) -> dict[str, Any] | str:
    """What is on a line of JSON if it is an object or a string, else nothing."""
    stream.seek(byte)
    try:
        found = json.loads(stream.readline(longest + 2).decode("utf-8-sig"))
    except (ValueError, RecursionError):  # why, the row says that was read of it
        return {}
    return found if isinstance(found, dict | str) else {}
