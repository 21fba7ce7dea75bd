"""Pipelines that begin with a file of rows: TSV, CSV, JSON lines, Parquet, Arrow, CoNLL."""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.columnar import arrow_format, parquet_format
from textmill.data.formats.comma_separated import csv_format
from textmill.data.formats.conll import conll_format
from textmill.data.formats.json_lines import json_lines_format
from textmill.data.formats.lines import tsv_format
from textmill.data.formats.row_format import Row, RowFormat
from textmill.data.pipeline.builder import PipelineBuilder
from textmill.data.pipeline.node import Cursor, PipelineNode, State
from textmill.data.pipeline.sources import check_size
from textmill.errors import DataError
from textmill.text.encodings import UTF8

Columns = Sequence[str] | Mapping[str, int | str]
PAIR = ("source", "target")


class FileRowsSource(Cursor[dict[str, str]]):
    """The rows of a file, as dicts; a bad row is an error that names its place.

    The file is kept open until it is left; a resumed cursor reads past the rows that were given.
    """

    def __init__(
        self, path: Path, epoch: int, state: State | None, *, verb: str, layout: RowFormat
    ) -> None:
        self._verb, self._path, self._layout = verb, path, layout
        self._given, self._line = 0, 0
        self._size = check_size(verb, path, state)
        self._rows = self._scan()
        while state is not None and self._given < state["row"]:
            next(self)

    def _scan(self) -> Generator[tuple[int, Row | BadRow], None, None]:
        with self._path.open("rb") as stream:
            yield from self._layout.scan(stream, str(self._path))

    @override
    def __next__(self) -> dict[str, str]:
        self._line, row = next(self._rows)
        if isinstance(row, BadRow):
            raise DataError(f"{self._verb}: {row}.")
        self._given += 1
        return dict(zip(self._layout.columns, row, strict=True))

    @override
    def state(self) -> State:
        return {"row": self._given, "size": self._size}

    @override
    def place(self) -> str:
        return f"{self._path}:{self._line}"

    @override
    def close(self) -> None:
        self._rows.close()


def _begin(verb: str, path: Path | str, layout: RowFormat) -> PipelineBuilder[dict[str, str]]:
    cursor = partial(FileRowsSource, Path(path), verb=verb, layout=layout)
    return PipelineBuilder(PipelineNode(f"{verb}({', '.join(layout.columns)})", cursor))


def read_tsv(
    path: Path | str, columns: Columns = PAIR, *, header: bool = False, encoding: str = UTF8
) -> PipelineBuilder[dict[str, str]]:
    """The rows of a TSV file, as dicts.

    As of every reader here: the file is opened when the first row is asked for, and a resumed
    pipeline reads past the rows that it gave.

    Args:
        path: The file.
        columns: As for ``tsv_format``.
        header: The first line names the columns.
        encoding: What the file is in, as ``"cp1252"``.

    Raises:
        UserError: When iterated: the file cannot be read.
        DataError: When iterated: a row is bad; it names file, line, byte and reason.
    """
    return _begin("read_tsv", path, tsv_format(columns, header=header, encoding=encoding))


def read_csv(
    path: Path | str,
    columns: Columns = PAIR,
    *,
    header: bool = False,
    separator: str = ",",
    encoding: str = UTF8,
) -> PipelineBuilder[dict[str, str]]:
    """The rows of a CSV file (RFC 4180), as dicts; see ``read_tsv`` and ``csv_format``."""
    layout = csv_format(columns, header=header, separator=separator, encoding=encoding)
    return _begin("read_csv", path, layout)


def read_jsonl(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    r"""The rows of a JSON lines file, as dicts; see ``read_tsv`` and ``json_lines_format``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pairs.jsonl"
        >>> _ = path.write_text('{"en": "Hi.", "fr": "Salut."}\n')
        >>> list(read_jsonl(path, {"source": "en", "target": "fr"}).and_return())
        [{'source': 'Hi.', 'target': 'Salut.'}]
    """
    return _begin("read_jsonl", path, json_lines_format(columns))


def read_parquet(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    """The rows of a Parquet file, as dicts, read by row groups; see ``parquet_format``."""
    return _begin("read_parquet", path, parquet_format(columns))


def read_arrow(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    """The rows of an Arrow file (Feather, IPC stream), as dicts; see ``arrow_format``."""
    return _begin("read_arrow", path, arrow_format(columns))


def read_conll(
    path: Path | str,
    columns: Mapping[str, int] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
) -> PipelineBuilder[dict[str, str]]:
    """The sentences of a CoNLL file, as dicts of words with spaces between; see ``conll_format``.

    Args:
        path: The file.
        columns: Position of each column; ``{"words": 0, "tags": -1}`` by default.
        separator: Between columns; None: any white space.
        comment: How lines before a sentence begin that are no tokens; None: as there.
    """
    layout = conll_format(columns, separator=separator, comment=comment)
    return _begin("read_conll", path, layout)
