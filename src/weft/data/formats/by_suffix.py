"""The format of a file of columns, by its name or as it is said."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from weft.data.formats.columnar import arrow_format, parquet_format
from weft.data.formats.comma_separated import csv_format
from weft.data.formats.conll import conll_format
from weft.data.formats.json_lines import json_lines_format
from weft.data.formats.lines import tsv_format
from weft.data.formats.row_format import RowFormat, numbered
from weft.data.formats.squad import squad_format
from weft.data.line_blocks import MAX_LINE_BYTES
from weft.errors import UserError

__all__ = ["SUFFIXES", "FileFormat", "TokenSeparator", "column_format", "format_name"]

FileFormat = Literal["auto", "tsv", "csv", "jsonl", "conll", "parquet", "arrow", "squad"]

TokenSeparator = Literal["any", "tab", "space"]

SEPARATORS: dict[TokenSeparator, str | None] = {"any": None, "tab": "\t", "space": " "}

SUFFIXES: dict[str, FileFormat] = {
    ".arrow": "arrow",
    ".conll": "conll",
    ".csv": "csv",
    ".feather": "arrow",
    ".json": "squad",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
}


def format_name(path: Path, said: FileFormat = "auto") -> FileFormat:
    """The format that is said, or that of the file's name; TSV where the name says nothing.

    >>> format_name(Path("pairs.JSONL")), format_name(Path("eng-fra.txt"))
    ('jsonl', 'tsv')
    """
    return SUFFIXES.get(path.suffix.lower(), "tsv") if said == "auto" else said


def column_format(
    name: FileFormat,
    columns: Sequence[str] | Mapping[str, int | str],
    *,
    header: bool = False,
    extra_columns: Literal["ignore", "error"] = "ignore",
    max_line_bytes: int = MAX_LINE_BYTES,
    separator: TokenSeparator = "any",
    comment: str | None = None,
    lists: Sequence[str] = (),
) -> RowFormat:
    """The layout of a file of that format.

    Args:
        name: From `format_name`.
        columns: As for `tsv_format` and `csv_format`; positions of `conll_format`, which are the
            first ones where only names are given; keys of `json_lines_format` and `squad_format`,
            and names of columns of `parquet_format` and `arrow_format`.
        header: As for `csv_format`; JSON lines, Parquet, Arrow and SQuAD name their columns always,
            and CoNLL has none.
        extra_columns: Likewise.
        max_line_bytes: The longest line; Parquet, Arrow and SQuAD have none.
        separator: What stands between a CoNLL token's columns; other formats have their own.
        comment: As for `conll_format`; other formats have no comments.
        lists: As for `json_lines_format`; other formats have no lists.

    Raises:
        UserError: A setting does not go with the format.
    """
    own = {"separator": separator != "any", "comment": comment is not None, "lists": bool(lists)}
    _check_own(name, [setting for setting, is_said in own.items() if is_said])
    if name in ("tsv", "csv"):
        make = tsv_format if name == "tsv" else csv_format
        return make(
            columns, header=header, extra_columns=extra_columns, max_line_bytes=max_line_bytes
        )
    if name == "conll":
        if header or extra_columns != "ignore":
            said = "header" if header else "extra_columns"
            raise UserError(
                f"{said}: a conll file has no header and any number of columns; leave {said} out."
            )
        return conll_format(
            _positions(columns),
            separator=SEPARATORS[separator],
            comment=comment,
            max_line_bytes=max_line_bytes,
        )
    if header:
        raise UserError(f"header: a {name} file names its columns itself; leave header out.")
    if extra_columns != "ignore":
        raise UserError(
            f"extra_columns: in a {name} file columns are found by their names, and others do no "
            "harm; leave extra_columns out."
        )
    if name == "jsonl":
        return json_lines_format(columns, max_line_bytes=max_line_bytes, lists=lists)
    if max_line_bytes != MAX_LINE_BYTES:
        raise UserError(
            f"max_line_bytes: {name} files are not read by lines; leave max_line_bytes out."
        )
    if name == "squad":
        return squad_format(columns)
    return parquet_format(columns) if name == "parquet" else arrow_format(columns)


def _check_own(name: FileFormat, said: Sequence[str]) -> None:
    """Refuses settings that only another format has."""
    for setting in said:
        only = "jsonl" if setting == "lists" else "conll"
        if name != only:
            raise UserError(
                f"{setting}: only {only} files have it, and this is {name}; leave {setting} out."
            )


def _positions(columns: Sequence[str] | Mapping[str, int | str]) -> Mapping[str, Any]:
    return numbered(columns, None)[0]
