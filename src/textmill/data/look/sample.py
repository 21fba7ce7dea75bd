"""The rows of a file that nobody has described, and the settings with which training reads them."""

import itertools
import random
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textmill.data.bad_rows import BadRow
from textmill.data.data_files import data_files
from textmill.data.first_row import USUAL
from textmill.data.formats.by_suffix import DELIMITED, FileFormat, column_format, format_name
from textmill.data.formats.cells import CellError, cell_of
from textmill.data.formats.excel import sheet_names
from textmill.data.formats.header import (
    HEADER_LINES,
    KEY_WORDS,
    OTHER_NAMES,
    plain_name,
    words_of,
)
from textmill.errors import DataError
from textmill.text.encodings import HEAD_BYTES, UTF8, UTF16_MARKS, checked_encoding, likely_encoding

MOST_ROWS = 200_000
"""Rows that are looked at; of more as many, drawn from the whole file."""
HEAD_ROWS = 500
"""Rows that say what the delimiter is, and whether there is a header."""
LAST_ROWS = 3
"""Rows at the end that may be sums."""
DELIMITERS = {",": ",", ";": ";", "tab": "\t", "|": "|"}
LEAST_SHARE = 0.7
"""Share of the rows that have the same number of columns with the right delimiter."""
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)?|[.,]\d+)([eE][+-]?\d+)?")
_TOTALS = "total|sum|summe|gesamt|somme|totale|suma|итого|合计|合計|总计|総計|합계|총계"
TOTAL_WORDS = 3
"""A longer first cell, such as "Total loss of data after the update", is a text."""
TOTAL = re.compile(rf"(grand )?({_TOTALS})\b", re.IGNORECASE)
_NAMES = {*USUAL, *OTHER_NAMES, *itertools.chain.from_iterable(OTHER_NAMES.values())}


@dataclass(frozen=True)
class Sample:
    """The rows of a file, and how it is read.

    Attributes:
        names: What the columns are called: by a header, by keys, else by their positions.
        rows: The cells of each row; a short row is filled up with empty cells.
        lines: The line at which each row begins.
        settings: Of the data, those that differ from their defaults; ``path`` is not in it.
        reasons: What says so, for each of these settings.
        broken: The lines of rows that cannot be read at all.
        has_names: Whether columns have names and not only positions.
        count: All rows of the file; these are drawn from them if they are fewer.
        files: Files that there are; this is the first.
        above: What is written above the header.
        totals: The lines of sums below the rows, and of notes after them, which are no rows.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    broken: Sequence[int] = ()
    has_names: bool = True
    count: int = 0
    files: int = 1
    above: Sequence[str] = ()
    totals: Sequence[int] = ()

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return self.files == 1 and not self.is_part

    @property
    def is_part(self) -> bool:
        """Whether the file has more rows."""
        return self.count > len(self.rows) + len(self.broken) + len(self.totals)

    def place(self, column: int) -> int | str:
        """How a recipe names a column: by its name, or by its position if another has the name."""
        plain = [plain_name(name) for name in self.names]
        is_clear = self.has_names and plain.count(plain[column]) == 1
        return self.names[column] if is_clear else column


def sample_of_rows(rows: Iterable[Mapping[str, Any]]) -> Sample:
    """A sample of rows that are mappings, as those of JSON lines and Parquet.

    Example:
        >>> sample = sample_of_rows([{"text": "Hi.", "n": 1}, {"text": None}])
        >>> sample.names, sample.rows
        (['text', 'n'], [['Hi.', '1'], ['', '']])
    """
    drawn = _Drawn(MOST_ROWS)
    for number, row in enumerate(rows, 1):
        drawn.add(number, row)
    return _of_mappings(drawn)


class _Drawn:
    """At most so many items, each as likely as another, but for the first and the last few."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self._chance = random.Random(0)  # noqa: S311
        self._items = list[tuple[int, Any]]()
        self._last = deque[tuple[int, Any]](maxlen=LAST_ROWS)

    def add(self, line: int, item: Any) -> None:
        self.count += 1
        if len(self._items) < self.most:
            self._items.append((line, item))
            return
        self._last.append((line, item))
        if (at := int(self._chance.random() * self.count)) < self.most and at >= HEAD_ROWS:
            self._items[at] = line, item

    def items(self) -> list[tuple[int, Any]]:
        """The items in their order, each with its line."""
        return sorted(dict((*self._items, *self._last)).items())


def _of_mappings(drawn: _Drawn) -> Sample:
    items = drawn.items()
    flat = [dict(_flat(row)) for _, row in items]
    names = [*dict.fromkeys(name for row in flat for name in row)]
    cells = [[row.get(name, "") for name in names] for row in flat]
    return Sample(names, cells, [line for line, _ in items], count=drawn.count)


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Cells by their names; those of an object in an object by a path with dots."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is None or value != value:  # NaN
            yield f"{prefix}{name}", ""
        else:
            with suppress(CellError):
                yield f"{prefix}{name}", cell_of(value)


def look_at(path: Path, *, encoding: str | None = None) -> Sample:
    """The sample of a file, or of the first file of a folder; ``encoding`` is known, or guessed.

    Raises:
        UserError: There is no such file.
        DataError: No rows can be seen in it.
    """
    file, *others = data_files(path)
    kind = format_name(file)
    if kind in ("parquet", "arrow"):
        from textmill.data.formats.arrow_files import record_batches

        batches = record_batches(file, kind)
        sample = sample_of_rows(row for batch in batches for row in batch.to_pylist())
    elif kind == "excel":
        sample = _sheet(file)
    else:
        sample = _text_file(file, kind, encoding)
    if not any(any(map(str.strip, row)) for row in sample.rows):
        other = " If it is not UTF-8, name its encoding: --encoding NAME" if sample.broken else ""
        raise DataError(f"{path}: wanted rows, found none that can be read.{other}")
    return replace(sample, files=1 + len(others))


def _text_file(file: Path, kind: FileFormat, known: str | None) -> Sample:
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if kind == "squad" and b'"paragraphs"' in head:
        raise DataError(
            f"{file}: questions and answers as in SQuAD need no look: textmill train "
            f"question/drqa train_data.path={file} train_data.holdout=0.1"
        )
    known = checked_encoding(known) if known else None
    encoding = UTF16_MARKS.get(head[:2]) or known or likely_encoding(head) or UTF8
    settings, reasons = dict[str, Any](), dict[str, str]()
    if encoding != UTF8 and head[:2] not in UTF16_MARKS:
        reasons["encoding"] = "as named" if known else _decoded_part(head, encoding)
        settings["encoding"] = encoding
    found = kind
    if kind in ("jsonl", "squad"):  # a .json without questions may have an object in each line
        found, reason = "jsonl", "an object in each line"
    elif kind == "conll" or _is_conll(head.decode(encoding, "ignore")):
        found, reason = "conll", "a word a line, and blank lines between sentences"
    else:
        found, delimiter, reason = _delimited(file, settings)
        settings |= {"delimiter": delimiter} if reason else {}
    if found != kind:
        settings["format"] = found
    reasons |= {"format": reason, "delimiter": reason}
    sample = _read(file, found, settings, reasons)
    return _table(sample) if found in DELIMITED else sample


def _decoded_part(head: bytes, encoding: str) -> str:
    if encoding.startswith("utf-16"):
        return "every second byte is 0"
    at = next(n for n, byte in enumerate(head) if byte > 127)
    shown = head[max(at - 12, 0) : at + 12].decode(encoding, "ignore")
    return f"not UTF-8; in {encoding} it has {' '.join(shown.split())!r}"


def _read(
    file: Path,
    kind: FileFormat,
    settings: Mapping[str, Any],
    reasons: Mapping[str, str],
    most: int | None = None,
) -> Sample:
    """Rows as training reads them, at most the first ``most``; of a table not yet of one width."""
    columns: dict[str, int | str] = {"": "" if kind == "jsonl" else 0}
    if kind == "conll":
        columns = {"words": 0, "tags": -1}
    reading = {n: settings[n] for n in ("delimiter", "encoding", "sheet") if n in settings}
    layout = replace(column_format(kind, columns, **reading), required=())
    drawn, broken, stop = _Drawn(MOST_ROWS), list[int](), most or sys.maxsize
    with file.open("rb") as stream:
        scan = layout.scan(stream, str(file))
        for line, row in itertools.islice(scan, stop):
            record = row if kind == "conll" else scan.record
            is_good = not isinstance(row, BadRow) or not row.text_excerpt
            if is_good or (kind == "jsonl" and isinstance(record, Mapping)):
                drawn.add(line, record or ())
            else:
                broken.append(line)
    if kind == "jsonl" and not drawn.count:
        raise DataError(
            f"{file}: wanted a JSON object in each line, found none. Of a list of objects make "
            f"such lines: jq -c '.[]' {file} > {file.stem}.jsonl"
        )
    count = drawn.count + len(broken)
    about: Any = {"settings": settings, "reasons": reasons, "broken": broken, "count": count}
    if kind == "jsonl":
        return replace(_of_mappings(drawn), **about)
    items = drawn.items()
    rows = [[*map(str, record)] if kind != "conll" else [*record] for _, record in items]
    return Sample([*columns], rows, [line for line, _ in items], **about)


def _is_conll(text: str) -> bool:
    """Whether a text has a token in each line, and blank lines between sentences."""
    cells = [line.split() for line in text[:200_000].splitlines()[:-1]]
    blank = sum(not each for each in cells)
    widths = Counter(len(each) for each in cells if each and each[0] != "#")
    width, count = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    is_between = 0.02 * len(cells) < blank < 0.4 * len(cells)
    return is_between and 2 <= width <= 15 and count > 0.98 * (len(cells) - blank)


def _delimited(file: Path, settings: Mapping[str, Any]) -> tuple[FileFormat, str, str]:
    """The format and delimiter with which most rows have as many columns; and the reason.

    The reason is empty if there is none by which rows have several.
    """
    own = format_name(file)
    best: tuple[float, int, float] = (0.0, 1, 0.0)
    chosen: tuple[FileFormat, str, str] = (own, "tab" if own == "tsv" else ",", "")
    kinds = sorted(DELIMITED, key=lambda kind: kind != own)
    for kind, delimiter in itertools.product(kinds, DELIMITERS):
        sample = _read(file, kind, {**settings, "delimiter": delimiter}, {}, HEAD_ROWS)
        rows = [cells for cells in sample.rows if any(map(str.strip, cells))]
        count = len(rows) + len(sample.broken)
        widths = Counter(map(len, rows))
        width, most = max(widths.items(), key=lambda item: item[1] * (item[0] > 1), default=(1, 0))
        quoted = sum(any('"' in cell[:1] + cell[-1:] for cell in cells) for cells in rows)
        share = most / max(count, 1)
        share_unquoted = share - quoted / max(count, 1)  # quotes are CSV's
        score = (round(share_unquoted, 1), width, share_unquoted)
        if width > 1 and share >= LEAST_SHARE and score > best:
            said = "all" if share == 1 else f"{share:.1%} of the"
            best, chosen = score, (kind, delimiter, f"{width} columns in {said} rows")
    return chosen


def _sheet(file: Path) -> Sample:
    """The sheet that looks most like a table of texts: that with most characters in such rows."""
    names, best = sheet_names(file), Sample((), (), ())
    most, reason = -1, f"the one with most text of {', '.join(map(repr, names))}"
    for name in names:
        sample = _table(_read(file, "excel", {"sheet": name}, {"sheet": reason}))
        size = sum(sum(map(len, row)) for row in sample.rows if sum(map(bool, row)) > 1)
        if size > most:
            best, most = sample, size
    if len(names) > 1:
        return best
    return replace(best, settings={n: v for n, v in best.settings.items() if n != "sheet"})


def _table(sample: Sample) -> Sample:
    """The sample of a table, with rows of one width, and without the header if it has one."""
    widths = Counter(len(cells) for cells in sample.rows if any(cells))
    width = widths.most_common(1)[0][0] if widths else 0
    rows = [[*cells[:width], *[""] * (width - len(cells))] for cells in sample.rows]
    lines, usual = sample.lines, _usually_filled(rows)
    last = range(max(len(rows) - LAST_ROWS, 0), len(rows))
    full = [n for n in last if all(rows[n][at].strip() for at in usual)]
    last = last[full[-1] - last.start + 1 :] if full else last
    first = next((n for n in last if _is_total(rows[n])), None)
    if first is not None:
        sample = replace(sample, totals=[*lines[first:]])
        rows, lines = rows[:first], lines[:first]
    top = _header_at(rows, usual)
    if not (reason := header_reason(rows[top:])):
        names = [*map(str, range(width))]
        return replace(sample, names=names, rows=rows, lines=lines, has_names=False)
    header = [cell.strip() for cell in rows[top]]
    above = [" ".join(filter(None, map(str.strip, row))) for row in rows[:top]]
    if top:
        reason = f"line {lines[top]}; what is above it is left out; {reason}"
    return replace(
        sample,
        names=[name or str(n) for n, name in enumerate(header)],
        rows=rows[top + 1 :],
        count=sample.count - top - 1,
        lines=lines[top + 1 :],
        settings={**sample.settings, "header": True},
        reasons={**sample.reasons, "header": reason},
        above=[*filter(None, above)],
    )


def _usually_filled(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that most rows have."""
    some = rows[:HEAD_ROWS]
    return [
        n
        for n in range(len(rows[0]) if rows else 0)
        if sum(bool(row[n].strip()) for row in some) > len(some) / 2
    ]


def _header_at(rows: Sequence[Sequence[str]], usual: Sequence[int]) -> int:
    """The number of the row that a header would be: titles, notes and groups may be above it."""
    if len(usual) < 2:
        return 0
    counts = [sum(bool(row[at].strip()) for at in usual) for row in rows[:HEADER_LINES]]
    # One name may be missing, as that of the rows' numbers often is.
    least = len(usual) if len(usual) in counts else max(2, len(usual) - 1)
    full = [n for n, count in enumerate(counts) if count >= least]
    if not full or not header_reason(rows[full[0] :]):
        return 0
    top = full[0]
    names = [cell for cell in rows[top] if cell.strip()]
    if len({*names}) < len(names) and top + 1 in full and header_reason(rows[top + 1 :]):
        below = [cell for cell in rows[top + 1] if cell.strip()]
        return top + (len({*below}) == len(below))
    return top


def _is_total(row: Sequence[str]) -> bool:
    """Whether a row that lacks something that rows have says, in a few words, that it is a sum."""
    first = next((cell.strip() for cell in row if cell.strip()), "")
    return TOTAL.match(first) is not None and len(first.split()) <= TOTAL_WORDS


def header_reason(rows: Sequence[Sequence[str]]) -> str:
    """Why the first row is a header; empty if it is a row.

    Example:
        >>> header_reason([["text", "label"], ["good soup", "5"], ["bad soup", "1"]])
        "columns are often called 'text', 'label'"
        >>> header_reason([["good soup", "5"], ["bad soup", "1"]])
        ''
    """
    first, others = [cell.strip() for cell in rows[0]] if rows else [], rows[1 : 1 + HEAD_ROWS]
    usual = [cell for cell in first if _is_usual(cell)]
    evidence, reasons = 2.0 * len(usual), list[str]()
    if usual:
        reasons.append(f"columns are often called {', '.join(map(repr, usual[:3]))}")
    for n, cell in enumerate(first):
        values = [row[n].strip() for row in others if row[n].strip()]
        if not values or not cell:
            continue
        kinds = len({*values})
        if cell in values:
            evidence -= 2 if kinds < len(values) else 0
        elif kinds <= len(values) / 4:
            evidence += 1
            reasons.append(f"{cell!r} is in no other row")
        if all(any(map(str.isdecimal, value)) for value in values):
            is_like_them = any(map(str.isdecimal, cell))
            evidence += -2 if is_like_them else 2
            reasons += [f"there are numbers under {cell!r}"] * (not is_like_them)
        sizes = sorted(map(len, values))
        if sizes[len(sizes) // 2] > 20:
            is_short = len(cell.split()) <= 3 and len(cell) < sizes[0] * 1.5 + 5
            evidence += 0.5 if is_short else -1
    return reasons[0] if evidence > 0.5 and reasons else ""


def _is_usual(cell: str) -> bool:
    words = words_of(cell)
    return 0 < len(words) <= 3 and (plain_name(cell) in _NAMES or words[-1] in _NAMES | KEY_WORDS)
