"""Where pipelines begin: a sequence in memory, or a file of lines or rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from textmill.config.validators import refuse_read_once
from textmill.data.bad_rows import BadRow
from textmill.data.formats.comma_separated import csv_format
from textmill.data.formats.conll import conll_format
from textmill.data.formats.json_lines import arrow_format, json_lines_format, parquet_format
from textmill.data.formats.lines import bare_lines, tsv_format
from textmill.data.formats.row_format import PAIR, Columns, Row, RowFormat
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.data.pipeline.builder import PipelineBuilder, check_count
from textmill.data.pipeline.cursors import Cursor, PipelineNode
from textmill.errors import DataError, UserError
from textmill.text.encodings import UTF8

T = TypeVar("T")


def from_sequence(items: Sequence[T]) -> PipelineBuilder[T]:
    """The items of a list or another sequence, not copied."""
    refuse_read_once(items, "from_sequence's argument")

    opened = partial(Cursor, lambda _: iter(items), [])
    return PipelineBuilder(PipelineNode(f"from_sequence({len(items)} items)", opened))


def read_text(
    path: Path | str, *, rtrim: bool = True, skip_header: int = 0
) -> PipelineBuilder[str]:
    """The lines of a UTF-8 text file.

    Args:
        path: The file. It is opened when the first item is asked for.
        rtrim: Cut white space off the end of each line; the line's own end (LF, CR LF) always goes.
        skip_header: Lines to leave out at the start.

    Raises:
        UserError: When iterated: the file cannot be read.
        DataError: When iterated: a line is not UTF-8 or longer than a megabyte; it names the line.
    """
    check_count("read_text", "skip_header", skip_header, least=0)

    def text(row: Row) -> str:
        return row[0].rstrip() if rtrim else row[0]

    layout = bare_lines(longest=MAX_LINE_BYTES)
    words = f"read_text(skip_header={skip_header})"
    return _begin("read_text", words, path, layout, text, skip=skip_header)


def _read(verb: str, path: Path | str, layout: RowFormat) -> PipelineBuilder[dict[str, str]]:
    names = tuple(layout.columns)

    def item(row: Row) -> dict[str, str]:
        return dict(zip(names, row, strict=True))

    return _begin(verb, f"{verb}({', '.join(names)})", path, layout, item)


def _begin(
    verb: str,
    words: str,
    path: Path | str,
    layout: RowFormat,
    item: Callable[[Row], T],
    skip: int = 0,
) -> PipelineBuilder[T]:
    """The rows of a file, each as ``item`` makes it; a bad one is an error that names its place.

    The file is kept open until it is left.
    """
    path = Path(path)

    def given(c: Cursor) -> Iterator[T]:
        line = 0
        c.where = lambda: f"{path}:{line}"
        try:
            opened = path.open("rb")
        except OSError as error:
            raise UserError(f"{verb}: {path} cannot be read: {error.strerror}.") from error
        with opened as stream:
            for at, row in islice(layout.scan(stream, str(path)), skip, None):
                line = at
                if isinstance(row, BadRow):
                    raise DataError(f"{verb}: {row}.")
                yield item(row)

    return PipelineBuilder(PipelineNode(words, partial(Cursor, given, [])))


def read_tsv(
    path: Path | str, columns: Columns = PAIR, *, header: bool = False, encoding: str = UTF8
) -> PipelineBuilder[dict[str, str]]:
    """The rows of a TSV file, as dicts.

    As of every reader here, the file is opened when the first row is asked for.

    The arguments are those of ``tsv_format``.

    Raises:
        UserError: When iterated: the file cannot be read.
        DataError: When iterated: a row is bad; it names file, line and reason.
    """
    return _read("read_tsv", path, tsv_format(columns, header=header, encoding=encoding))


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
    return _read("read_csv", path, layout)


def read_jsonl(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    r"""The rows of a JSON lines file, as dicts; see ``read_tsv`` and ``json_lines_format``."""
    return _read("read_jsonl", path, json_lines_format(columns))


def read_parquet(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    """The rows of a Parquet file, as dicts, read by row groups; see ``parquet_format``."""
    return _read("read_parquet", path, parquet_format(columns))


def read_arrow(path: Path | str, columns: Columns = PAIR) -> PipelineBuilder[dict[str, str]]:
    """The rows of an Arrow file (Feather, IPC stream), as dicts; see ``arrow_format``."""
    return _read("read_arrow", path, arrow_format(columns))


def read_conll(
    path: Path | str,
    columns: Mapping[str, int] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
) -> PipelineBuilder[dict[str, str]]:
    """The sentences of a CoNLL file, as dicts of words with spaces; see ``conll_format``."""
    layout = conll_format(columns, separator=separator, comment=comment)
    return _read("read_conll", path, layout)
