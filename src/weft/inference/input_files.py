"""A file of rows to predict: read as the training data was, for what the model reads of it.

Targets may be there or not, so its columns are where those of the training data are, or the file
has nothing else.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from weft.data.bad_rows import BadRow
from weft.data.first_row import first_cells
from weft.data.formats.by_suffix import HAVING, FileFormat, column_format, format_name
from weft.data.formats.header import plain_name
from weft.data.formats.row_format import Row, RowFormat, numbered
from weft.data.text_pairs import TextPairs
from weft.errors import DataError, UserError

__all__ = ["input_layout"]

POSITIONS: tuple[FileFormat, ...] = ("tsv", "csv", "conll")
"""Formats whose columns have positions; those of the others have names."""
TABLES: tuple[FileFormat, ...] = ("tsv", "csv")
"""Formats that may have a header."""
LOOKED_AT = 100
"""Rows that show which columns a file has: the first may be bad."""

Places = Mapping[str, int | str]


def input_layout(
    path: Path,
    config: TextPairs.Config,
    inputs: Sequence[str],
    *,
    said: Collection[str] = (),
) -> RowFormat:
    r"""How a file becomes rows to predict.

    Args:
        path: The file; its suffix says the format.
        config: How the training data was read, with what is said of this file.
        inputs: The columns that the model reads.
        said: Which settings are said of this file; of the others those are left out that do not go
            with it.

    Raises:
        UserError: ``columns`` does not name one that the model reads.
        DataError: The first line is a header where there should be none, or none where there should
            be one.

    Example:
        A file of labels and texts was trained on; this one has texts alone:

        >>> import io, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "new.tsv"
        >>> _ = path.write_text("Ok, see you.\nYou won!\n")
        >>> config = TextPairs.Config(path=Path("sms.tsv"), columns=("label", "text"))
        >>> layout = input_layout(path, config, ["text"])
        >>> [row for _, row in layout.scan(io.BytesIO(path.read_bytes()), "new.tsv")]
        [('Ok, see you.',), ('You won!',)]
    """
    return _InputFile(path, config, tuple(inputs), frozenset(said)).layout()


@dataclass(frozen=True)
class _InputFile:
    path: Path
    config: TextPairs.Config
    inputs: tuple[str, ...]
    said: frozenset[str]

    def layout(self) -> RowFormat:
        """By a header's names, by the training data's places, or by those of the inputs alone."""
        places = self._places()
        named = any(isinstance(at, str) for at in places.values())
        if alone := named and self._are_names_of_another_format():
            places, named = {name: at for at, name in enumerate(self.inputs)}, False
        placed = "columns" in self.said and isinstance(self.config.columns, Mapping)
        if self.kind in TABLES and not named:
            cells = first_cells(self.path, self._read(places, header=False)) or ()
            if self._has_header(cells) and not placed:
                return self._read(_by_name(places, cells), header=True)
        header = self.config.header
        if self.kind in TABLES and named and "header" not in self.said:
            header = True  # names are found in a header only
        trained = self._read(places, header=header, strict=alone)
        if alone or self.kind not in POSITIONS or named or "columns" in self.said:
            return trained
        order = sorted(self.inputs, key=lambda name: places[name])
        fewer = self._read({name: at for at, name in enumerate(order)}, header=header, strict=True)
        return trained if self._fits(trained) or not self._fits(fewer) else fewer

    @cached_property
    def kind(self) -> FileFormat:
        """The format that is said, or the suffix says; files like the training data's are alike."""
        alike = self.path.suffix.lower() == Path(self.config.path).suffix.lower()
        holds = alike or "format" in self.said
        return format_name(self.path, self.config.format if holds else "auto")

    def _are_names_of_another_format(self) -> bool:
        """Whether the training data's names are no names of a header: of JSON, say."""
        if self.kind not in POSITIONS or "columns" in self.said:
            return False
        said = "auto" if "format" in self.said else self.config.format
        return self.kind == "conll" or format_name(Path(self.config.path), said) not in TABLES

    def _places(self) -> dict[str, int | str]:
        """The columns that are read: the inputs, and all where columns are said."""
        found = numbered(self.config.columns, None)[0]
        if missing := [name for name in self.inputs if name not in found]:
            raise UserError(
                f"columns: wanted all that the model reads ({', '.join(self.inputs)}), found "
                f"{', '.join(found)}; {missing[0]!r} is missing."
            )
        said = "columns" in self.said
        kept = {name: at for name, at in found.items() if said or name in self.inputs}
        if self.kind in POSITIONS or (said and isinstance(self.config.columns, Mapping)):
            return kept
        return {name: at if isinstance(at, str) else name for name, at in kept.items()}

    def _has_header(self, cells: Row) -> bool:
        """Whether the first line has names.

        Raises:
            DataError: It has, or has not, and the other is to be.
        """
        has = {*map(plain_name, self.inputs)} <= {*map(plain_name, cells)}
        if not cells or "header" in self.said:
            return has and self.config.header
        shown = ", ".join(map(repr, cells))[:300]
        wanted = ", ".join(map(repr, self.inputs))
        if self.config.header and not has:
            raise DataError(
                f"{self.path}:1: wanted a header with {wanted}, as the run's data has a header; "
                f"found {shown}. If that is a row: header=false. If it is a header of other names: "
                "header=true, if the columns are in the same places"
            )
        known = {*map(plain_name, self.config.columns)}
        if not self.config.header and has and {*map(plain_name, cells)} <= known:
            raise DataError(
                f"{self.path}:1: wanted a row, found names of columns, {shown}. If that is a "
                "header: header=true. If it is a row: header=false"
            )
        return has and self.config.header

    def _read(self, places: Places, *, header: bool, strict: bool = False) -> RowFormat:
        """The layout, by those settings that go with the format."""
        defaults = {field.name: field.default for field in fields(TextPairs.Config)}
        settings: dict[str, Any] = {}
        less = set(self.config.columns) > set(self.inputs)  # what is left out is no further column
        for name, kinds in HAVING.items():
            fits = self.kind in kinds and not (name == "extra_columns" and less)
            kept = fits or name in self.said
            settings[name] = getattr(self.config, name) if kept else defaults[name]
        if "lists" not in self.said:
            settings["lists"] = [name for name in settings["lists"] if name in places]
        if self.kind in TABLES:
            settings["header"] = header
            settings["extra_columns"] = "error" if strict else settings["extra_columns"]
        optional = getattr(self.config, "optional", ())
        required = tuple(name for name in self.inputs if name in places and name not in optional)
        return replace(column_format(self.kind, places, **settings), required=required)

    def _fits(self, layout: RowFormat) -> bool:
        """Whether one of the first rows is good."""
        with self.path.open("rb") as stream:
            rows = islice(layout.scan(stream, str(self.path)), LOOKED_AT)
            return any(not isinstance(row, BadRow) for _, row in rows)


def _by_name(places: Places, cells: Row) -> dict[str, int | str]:
    """The columns by their names in a header."""
    names = {plain_name(cell): cell for cell in cells}
    return {name: names[plain_name(name)] for name in places if plain_name(name) in names}
