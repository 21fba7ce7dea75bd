"""A table that is posted, and its answers as they are computed: many rows in bounded memory."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Protocol, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from textmill.data.formats.cells import cell_text
from textmill.data.formats.header import free_name
from textmill.errors import DataError, UserError
from textmill.exported.row_predictor import RowPredictor, characters, row_chunks
from textmill.serving.limits import Limits, RefusedError

TABLES = {"text/csv": "csv", "text/tab-separated-values": "tsv"}
"""Types of a body that is a table, and the format that each is read by."""
HEAD = [
    (b"content-type", b"text/csv; charset=utf-8"),
    (b"content-disposition", b'attachment; filename="answers.csv"'),
]
ERROR = "error"
"""The column that says why a row has no answer."""
CELL = 16
"""Characters that a cell counts for in memory beside its own, so that many empty ones do."""


class TableRow(Protocol):
    """A row of a table, or what is wrong with it."""

    @property
    def row(self) -> Any:
        """What the model is asked."""

    @property
    def problem(self) -> str | None:
        """Why it cannot be read."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """All its cells, by the names that they have in the answers."""


class TableRows(Protocol):
    """The rows of a table, read one by one."""

    @property
    def names(self) -> Sequence[str]:
        """Those of its header; empty: it has none."""

    def __iter__(self) -> Iterator[TableRow]: ...


ReadTable = Callable[[Path, BinaryIO, str], TableRows]
"""Reads a file that is open, in the format of that name."""


class AnsweredTable(Response):
    """The rows of a posted table with their answers beside them, sent as they are computed.

    Args:
        files: A place among those that are read at once.
        body: Reads the body whole, within the limits.
        read: Opens the table.
        ask: Answers rows, each with its answer or its error; waits if others wait.
    """

    def __init__(
        self,
        request: Request,
        form: str,
        *,
        files: Callable[[], AbstractContextManager[None]],
        body: Callable[[], Any],
        read: ReadTable,
        ask: Callable[[Sequence[Any], int], Any],
        predictor: RowPredictor,
        limits: Limits,
    ) -> None:
        super().__init__()
        self.request, self.form = request, form
        self.predictor, self.limits = predictor, limits
        self._files, self._body, self._read, self._ask = files, body, read, ask
        kind = predictor.answer_type
        self.fields = [*get_type_hints(kind)] if hasattr(kind, "__annotations__") else []

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the answers; RefusedError before the first one, or where the answer breaks off."""

        async def sent(message: dict[str, Any]) -> None:
            try:
                async with asyncio.timeout(self.limits.timeout):
                    await send(message)
            except TimeoutError:
                text = f"The client took no answer in {self.limits.timeout:g} s."
                raise RefusedError(408, text, where="connection") from None

        with self._files(), TemporaryDirectory(prefix="textmill-table-") as folder:
            path, begun = Path(folder, "table"), False
            path.write_bytes(await self._body())
            with path.open("rb") as stream:
                async for part in self._parts(path, stream):
                    if not begun:
                        await sent({"type": "http.response.start", "status": 200, "headers": HEAD})
                        begun = True
                    elif await self.request.is_disconnected():
                        return
                    await sent({"type": "http.response.body", "body": part, "more_body": True})
            await sent({"type": "http.response.body", "body": b"", "more_body": False})

    async def _parts(self, path: Path, stream: BinaryIO) -> AsyncIterator[bytes]:
        """The answers as CSV, some rows at a time, the header with the first."""
        try:
            rows = await asyncio.to_thread(self._read, path, stream, self.form)
            chunks = row_chunks(rows, _size, size=self.limits.batch)
            names, called = list[str](), dict[str, str]()
            while chunk := await asyncio.to_thread(next, chunks, None):
                head = list[list[str]]()
                if not names:
                    # A row that cannot be read may have no cells.
                    kept = next((row.kept for row in chunk if row.kept), None)
                    names = [*(rows.names or kept or self.predictor.columns)]
                    called = self._called(names)
                    head = [[*names, *called.values()]]
                answers = await self._answers(chunk)
                pairs = zip(chunk, answers, strict=True)
                cells = ([*map(r.kept.get, names), *map(a.get, called)] for r, a in pairs)
                yield _csv([*head, *cells])
            if not names:
                raise RefusedError(422, "Wanted a table; found no row.", where="body")
        except (DataError, UserError) as error:
            raise RefusedError(422, str(error).replace(str(path), "table"), where="body") from None

    def _called(self, taken: Sequence[str]) -> dict[str, str]:
        """The fields of answers with the names of their columns, which the table does not have."""
        found = dict[str, str]()
        for name in (*self.fields, ERROR):
            found[name] = free_name(name, {*taken, *found.values()})
        return found

    async def _answers(self, chunk: Sequence[TableRow]) -> list[Mapping[str, Any]]:
        problems = [row.problem or self._too_long(row.row) for row in chunk]
        good = [row.row for row, problem in zip(chunk, problems, strict=True) if problem is None]
        found = iter(await self._ask(good, characters(good)) if good else ())
        return [next(found) if problem is None else {ERROR: problem} for problem in problems]

    def _too_long(self, row: Mapping[str, Any]) -> str | None:
        for name in self.predictor.columns:
            count = characters(row.get(name))
            if count > self.limits.characters:
                most = self.limits.characters
                return f"Column '{name}': wanted at most {most:,} characters; found {count:,}."
        return None


def _size(row: TableRow) -> int:
    return characters(row.kept) + CELL * len(row.kept)


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(cell_text, row) for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
