"""Parquet and Arrow: columns by their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from textmill.data.formats.json_lines import named_places
from textmill.data.formats.row_format import PAIR, Columns, Found, RowFormat, Scan

NAMED = "columns of Parquet and Arrow files"


@dataclass(frozen=True)
class ColumnarFormat(RowFormat):
    """Columns by their names; made by `parquet_format` and `arrow_format`.

    A row's line is its number, from 1.

    Attributes:
        kind: The file's format; Arrow is its file format (Feather) or its stream format.
        lists: The columns that are lists where they have a text, too.
    """

    kind: Literal["parquet", "arrow"] = "parquet"
    lists: tuple[str, ...] = ()

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        from textmill.data.formats.arrow_files import columnar_rows  # pyarrow takes .1 s

        return columnar_rows(scan, self)


def parquet_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Parquet.

    Args:
        columns: Names of columns, or a name for each column of the file; ``translation.en`` is the
            field ``en`` of the column ``translation``.
        required: The columns that a row cannot be without; all by default.
        lists: As for `json_lines_format`.

    Raises:
        UserError: A column is named by a position, or ``lists`` names one that is none.
    """
    named = named_places(columns, required, NAMED, lists)
    return ColumnarFormat(*named, "parquet", tuple(lists))


def arrow_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Arrow IPC: Feather files, and the files in which Hugging Face ``datasets`` keeps its data.

    The arguments, and what is raised, are those of `parquet_format`.
    """
    return ColumnarFormat(*named_places(columns, required, NAMED, lists), "arrow", tuple(lists))
