"""Rows that cannot be used: never lost, never silent. ``good + bad = total``, always.

A bad row is a value like any other: it has a file, a line and a reason, so that ``sed -n 17p``
shows it. How many are allowed is decided once the whole file has been read, before
any training.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.runtime.files import write_atomic

LOG = logging.getLogger("textmill")

SHOWN = 20  # rows in an error's text: a screenful; a run keeps more in its bad_rows.jsonl
FEW = 3  # where all have one remedy
KEPT = 100_000
"""Bad rows that are kept, some 40 MB; all are counted."""


@dataclass(frozen=True)
class BadRow:
    r"""One row that cannot be used.

    Attributes:
        file: The file as it was named, ``-`` for standard input.
        line: Its number from 1, header included; in Parquet, Arrow and SQuAD that of the row.
        reason: One phrase: what was wanted and what was found.
        text_excerpt: At most 80 characters of it; bytes that are not UTF-8 as ``\xff``.
    """

    file: str
    line: int
    reason: str
    text_excerpt: str

    @override
    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class RowCount:
    """How many rows were read; ``total`` is counted by lines, apart from ``good`` and ``bad``."""

    good: int
    bad: int
    total: int

    def __post_init__(self) -> None:
        assert self.good + self.bad == self.total, f"a row was lost: {self}"

    @override
    def __str__(self) -> str:
        return f"{self.total} rows: {self.good} good, {self.bad} bad"


class BadRowsError(DataError):
    """More bad rows than allowed; ``bad_rows`` has the first ``KEPT``, the text the first 20."""

    def __init__(self, message: str, bad_rows: Sequence[BadRow], count: RowCount) -> None:
        super().__init__(message)
        self.bad_rows, self.count = tuple(bad_rows), count


def write_bad_rows(path: Path | str, rows: Iterable[BadRow]) -> None:
    """Writes one JSON object a line, atomically: the fields of `BadRow` by their names."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows]
    write_atomic(path, "".join(lines))


def tell_left_out(bad_rows: Sequence[BadRow], count: RowCount, *, setting: str, name: str) -> None:
    """Warns about rows of the data ``name`` that are left out, as ``setting`` allows."""
    if bad_rows:
        LOG.warning(
            "%d of the %d rows of %s %s bad and left out, as %s allows; the first: %s",
            *(count.bad, count.total, name, "is" if count.bad == 1 else "are"),
            *(setting, bad_rows[0]),
        )
    if count.bad > len(bad_rows):
        LOG.warning("Of the %d bad rows the first %d are kept.", count.bad, len(bad_rows))


def allowed_rows(allowed: float, total: int) -> int:
    """The number of bad rows that ``max_bad_rows`` allows: a number, or below 1 a share of all.

    Example:
        >>> allowed_rows(3, 1000), allowed_rows(0.01, 1000)
        (3, 10)
    """
    if allowed < 0:
        raise UserError(
            f"max_bad_rows: wanted a number of rows or a share below 1, found {allowed}."
        )
    return int(allowed * total + 1e-9) if allowed < 1 else int(allowed)


def check_bad_rows(
    bad_rows: Sequence[BadRow],
    count: RowCount,
    *,
    allowed: int,
    setting: str = "train_data.max_bad_rows",
    advice: str = "",
    hint: str = "",
) -> None:
    """Raises a BadRowsError if there are more bad rows than ``allowed``.

    It lists the first 20 with place and reason, and proposes to leave them out unless they are most
    rows.
    """
    bad, total = count.bad, count.total
    if bad <= allowed:
        return
    lines = [f"{bad} of {total} rows {'is' if bad == 1 else 'are'} bad, and {allowed} are allowed:"]
    most = FEW if advice else SHOWN
    lines += [f"  {row}" for row in bad_rows[:most]]
    if (shown := min(most, len(bad_rows))) < bad:
        lines.append(f"  ... and {bad - shown} more")
    if advice:
        lines.append(advice)
    elif 2 * bad > total:
        name = setting.rpartition(".")[0]
        lines.append(
            f"Most rows are bad, the first of them is {bad_rows[0].text_excerpt!r}: the file is "
            f"likely in another format than expected. Check {name}.columns, {name}.delimiter, "
            f"{name}.header and {name}.format."
        )
    else:
        lines.append(f"Correct the file, or leave such rows out with {setting}={bad}.")
    lines += [hint] if hint else []
    raise BadRowsError("\n".join(lines), bad_rows, count)
