"""Sessions: the rows of a file that have one value in a column, such as a conversation's turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.row_format import Found, Row, RowFormat, Scan
from textmill.errors import UserError
from textmill.text.cells import ListCell, unlisted

SHOWN = 80  # characters of a bad row


@dataclass(frozen=True)
class SessionsFormat(RowFormat):
    """Another format, whose neighbouring rows of one session are a row; see `sessions_format`."""

    inner: RowFormat
    session: str

    @property
    @override
    def has_header(self) -> bool:
        return self.inner.has_header

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        at = [*self.columns].index(self.session)
        seen, turns, bad = set[str](), list[tuple[int, Row]](), list[tuple[int, BadRow]]()
        for line, row in self.inner.rows(scan, whole=False):
            assert not isinstance(row, list)
            if isinstance(row, BadRow) and turns:
                bad.append((line, row))  # after its session, whose line is before
                continue
            if isinstance(row, BadRow):
                yield line, row
                continue
            if turns and turns[0][1][at] != row[at]:
                yield self._joined(scan, turns, seen)
                yield from bad
                turns, bad = [], []
            turns.append((line, row))
        if turns:
            yield self._joined(scan, turns, seen)
        yield from bad

    def _joined(
        self, scan: Scan, turns: Sequence[tuple[int, Row]], seen: set[str]
    ) -> tuple[int, Row | BadRow]:
        line, rows = turns[0][0], [row for _, row in turns]
        columns = dict(zip(self.columns, zip(*rows, strict=True), strict=True))
        name = columns[self.session][0]
        row = tuple(
            name if column == self.session else ListCell(map(str, cells))
            for column, cells in columns.items()
        )
        scan.record = {c: unlisted(cell) for c, cell in zip(columns, row, strict=True)}
        problem = self.problem(row)
        if name in seen:
            problem = (
                f"{self.session} {name!r:.40} was there before, and others since: wanted all rows "
                f"of a session one after the other; sort the file by {self.session!r}"
            )
        seen.add(name)
        if problem is None:
            return line, row
        return line, BadRow(scan.name, line, problem, "\t".join(row)[:SHOWN])


def sessions_format(inner: RowFormat, session: str) -> SessionsFormat:
    """A format in which neighbouring rows with one value in the column ``session`` are one row.

    That column has the value, all others the list of the rows' cells. A row's line is that of its
    first one. A bad row is left out of its session.
    """
    if session not in inner.columns:
        raise UserError(
            f"group_by: wanted one of the columns ({', '.join(inner.columns)}), found {session!r}."
        )
    required = tuple(dict.fromkeys((*inner.required, session)))
    alone = replace(inner, required=required, check=None)
    return SessionsFormat(inner.columns, inner.required, alone, session, check=inner.check)
