"""The format of a file of columns, by its name or as it is said."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from textmill.data.formats.comma_separated import csv_format
from textmill.data.formats.conll import conll_format
from textmill.data.formats.excel import excel_format
from textmill.data.formats.json_lines import arrow_format, json_lines_format, parquet_format
from textmill.data.formats.lines import tsv_format
from textmill.data.formats.row_format import Columns, RowFormat, numbered
from textmill.data.formats.squad import squad_format
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.errors import UserError
from textmill.text.encodings import UTF8

FileFormat = Literal["auto", "tsv", "csv", "jsonl", "conll", "parquet", "arrow", "squad", "excel"]

TokenSeparator = Literal["any", "tab", "space"]

SEPARATORS: dict[TokenSeparator, str | None] = {"any": None, "tab": "\t", "space": " "}

SUFFIXES: dict[str, FileFormat] = {
    ".arrow": "arrow",
    ".conll": "conll",
    ".csv": "csv",
    ".feather": "arrow",
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), "excel"),
    ".json": "squad",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tsv": "tsv",
}


DELIMITED: tuple[FileFormat, ...] = ("tsv", "csv")
"""Formats whose columns a character divides."""
TABLES: tuple[FileFormat, ...] = (*DELIMITED, "excel")
"""Formats that may have a header."""
HAVING: dict[str, tuple[FileFormat, ...]] = {
    **dict.fromkeys(("header", "extra_columns"), TABLES),
    "delimiter": DELIMITED,
    "sheet": ("excel",),
    **dict.fromkeys(("separator", "comment"), ("conll",)),
    "lists": (*TABLES, "jsonl", "parquet", "arrow"),
    **dict.fromkeys(("max_line_bytes", "encoding"), (*DELIMITED, "conll", "jsonl")),
}
"""Settings that not all formats have, and the formats that have them."""
DEFAULTS: dict[str, Any] = {
    "header": False,
    "delimiter": None,
    "sheet": None,
    "extra_columns": "ignore",
    "separator": "any",
    "comment": None,
    "lists": (),
    "max_line_bytes": MAX_LINE_BYTES,
    "encoding": UTF8,
}
"""The values with which such a setting says nothing."""


def format_name(path: Path, said: FileFormat = "auto") -> FileFormat:
    """The format that is said, or that of the file's name; TSV where the name says nothing."""
    return SUFFIXES.get(path.suffix.lower(), "tsv") if said == "auto" else said


def column_format(name: FileFormat, columns: Columns, **reading: Any) -> RowFormat:
    """The layout of a file of a format; ``reading`` has some of the settings of `HAVING`."""
    how: Any = {**DEFAULTS, **reading, "lists": tuple(reading.get("lists", ()))}
    _refuse_foreign(name, [setting for setting in how if how[setting] != DEFAULTS[setting]])
    if unknown := [each for each in how["lists"] if each not in columns]:
        raise UserError(f"lists: wanted names of columns ({', '.join(columns)}), found {unknown}.")
    lines: Any = {key: how[key] for key in ("max_line_bytes", "encoding")}
    if name in TABLES:
        if how["delimiter"] is not None:
            lines["separator"] = _one_character(how["delimiter"])
        lines |= {key: how[key] for key in ("header", "extra_columns", "lists")}
        lines |= {"sheet": how["sheet"]} if name == "excel" else {}
        tables = {"tsv": tsv_format, "csv": csv_format, "excel": excel_format}
        return tables[name](columns, **lines)
    if name == "conll":
        positions: Any = numbered(columns, None)[0]
        between: Any = {"separator": SEPARATORS[how["separator"]], "comment": how["comment"]}
        return conll_format(positions, **between, **lines)
    if name == "jsonl":
        return json_lines_format(columns, lists=how["lists"], **lines)
    if name == "squad":
        return squad_format(columns)
    return {"arrow": arrow_format, "parquet": parquet_format}[name](columns, lists=how["lists"])


def _one_character(delimiter: str) -> str:
    character = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise UserError(
            f"delimiter: wanted one ASCII character, no quote or line end, or tab; found "
            f"{delimiter!r}."
        )
    return character


def _refuse_foreign(name: FileFormat, said: Sequence[str]) -> None:
    """Refuses settings that only other formats have."""
    for setting in said:
        if name in HAVING[setting]:
            continue
        *others, last = HAVING[setting]
        only = f"{', '.join(others)} and {last}" if others else last
        # Evaluations follow a run's data, and valid_data follows train_data.
        default = {False: "false", None: "null", (): "[]"}.get(DEFAULTS[setting], DEFAULTS[setting])
        raise UserError(
            f"{setting}: only {only} files have it, and this is {name}; leave {setting} out, or "
            f"undo what is inherited by {setting}={default}."
        )
