"""A file of rows to predict: read as the training data was, for what the model reads of it.

A header's names decide where the columns are; else they are where those of the training data are,
or the file has nothing but what the model reads: its first row shows which.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from textmill.data.data_files import first_file
from textmill.data.first_row import first_cells, other_delimiter
from textmill.data.formats.advice import utf8_warning
from textmill.data.formats.by_suffix import (
    HAVING,
    SUFFIXES,
    FileFormat,
    column_format,
    format_name,
)
from textmill.data.formats.header import plain_name
from textmill.data.formats.row_format import LinesFormat, RowFormat, numbered
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, UserError
from textmill.text.encodings import HEAD_BYTES, UTF8, checked_encoding, is_utf8

LOG = logging.getLogger("textmill")

POSITIONS: tuple[FileFormat, ...] = ("tsv", "csv", "conll")
"""Formats whose columns have positions; those of the others have names."""
TABLES: tuple[FileFormat, ...] = ("tsv", "csv")
"""Formats that may have a header."""

SETTINGS = ("columns", "optional", *HAVING)
"""The settings of data that say how a file is read, but for its format."""

Places = Mapping[str, int | str]


def input_format(path: Path, config: TextPairs.Config) -> FileFormat | None:
    """The format that a file's name says: that of the training data if the suffix is the same.

    Args:
        path: The file.
        config: How the training data was read.

    Returns:
        The format; None if the suffix says nothing.

    Example:
        >>> config = TextPairs.Config(path=Path("train.txt"), format="csv")
        >>> input_format(Path("new.txt"), config), input_format(Path("new.tsv"), config)
        ('csv', 'tsv')
        >>> print(input_format(Path("new.log"), config))
        None
    """
    if path.suffix.lower() == first_file(config.path).suffix.lower():
        return format_name(path, config.format)
    return SUFFIXES.get(path.suffix.lower())


def input_layout(
    path: Path,
    config: TextPairs.Config,
    inputs: Sequence[str],
    *,
    form: FileFormat | None = None,
    said: Collection[str] = (),
    name: str = "",
) -> RowFormat:
    r"""How a file becomes rows to predict.

    Args:
        path: The file.
        config: How the training data was read, with what is said of this file.
        inputs: The columns that the model reads.
        form: The file's format; by default that of its name, else that of the training data.
        said: Which settings are said of this file; of the others those are left out that do not go
            with it.
        name: What errors and warnings call the file.

    Raises:
        UserError: ``columns`` does not name one that the model reads.
        DataError: The training data has a header, and the file has another first line; or another
            character is between its columns.

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
    trained = format_name(first_file(config.path), config.format)
    kind = form or input_format(path, config) or trained
    file = InputFile(path, kind, trained, config, tuple(inputs), frozenset(said))
    called = name or str(path)
    try:
        layout = file.layout()
    except DataError as error:
        raise DataError(str(error).replace(str(path), called)) from None
    if warning := file.encoding_warning(layout):
        LOG.warning("%s", warning.replace(str(path), called))
    return layout


@dataclass(frozen=True)
class InputFile:
    """A file to predict, and what is known of it; as `input_layout` has them."""

    path: Path
    kind: FileFormat
    trained_kind: FileFormat
    """The format of the training data."""
    config: TextPairs.Config
    inputs: tuple[str, ...]
    said: frozenset[str]

    def layout(self) -> RowFormat:
        """By a header's names, by the training data's places, or by those of the inputs alone."""
        self._refuse_other_delimiter()
        places, header = self._places(), self.config.header
        if self.kind not in POSITIONS:
            return self.read(places, header=False)
        if self._are_names_of_another_format(places):
            alone: dict[str, int | str] = {name: at for at, name in enumerate(self.inputs)}
            if self.kind in TABLES:
                names = {name: str(at) for name, at in places.items()}
                return self._by_first_row(alone, names)
            places = alone
        if self.kind == "conll":
            return self.read(places, header=False)
        if any(isinstance(at, str) for at in places.values()):  # found in a header only
            return self.read(places, header=header if "header" in self.said else True)
        if "columns" in self.said and isinstance(self.config.columns, Mapping):
            return self.read(places, header=header)
        return self._by_first_row(places)

    def _by_first_row(self, places: Places, names: Mapping[str, str] | None = None) -> RowFormat:
        """The layout of a table without names: its first row is a header, or has a width.

        Args:
            places: The positions of the columns.
            names: What the training data, of another format, calls the inputs; they are alone then.

        Raises:
            DataError: The training data has a header, and this is none, or one of other names.
        """
        header, cells = self.config.header, self._first_row(places)
        called = names or {name: name for name in places}
        found = {plain_name(cell): cell for cell in cells}
        by_name = {
            name: found[plain_name(at)] for name, at in called.items() if plain_name(at) in found
        }
        if {*self.inputs} <= {*by_name} and (header or "header" not in self.said):
            return self.read(by_name, header=True)
        if header and cells and "header" not in self.said and not self.is_header_of_data(cells):
            shown, wanted = (", ".join(map(repr, some))[:300] for some in (cells, self.inputs))
            raise DataError(
                f"{self.path}:1: wanted a header with {wanted}, as the run's data has a header; "
                f"found {shown}. If that is a row: header=false. If it is a header of other names: "
                "header=true, if the columns are in the same places"
            )
        order = sorted(self.inputs, key=lambda name: places[name])
        layout = self.read(places, header=header, strict=names is not None)
        width = 1 + max((int(layout.columns[name]) for name in layout.required), default=0)
        if "columns" in self.said or not len(cells) == len(order) < width:
            return layout
        inputs = {name: at for at, name in enumerate(order)}
        return self.read(inputs, header=header, strict=True)

    def _first_row(self, places: Places) -> Sequence[str]:
        """The cells of the first row that is not blank, whatever columns it has."""
        with self.path.open("rb") as stream:
            scan = self.read(places, header=False).scan(stream, str(self.path))
            rows = (scan.record for _ in scan if isinstance(scan.record, list | tuple))
            return next((row for row in rows if any(map(str.strip, row))), ())

    def _refuse_other_delimiter(self) -> None:
        """Refuses a file whose columns another character parts: each line would be one text."""
        if self.kind not in TABLES or "delimiter" in self.said:
            return
        places = numbered(self.config.columns, None)[0]
        if any(isinstance(at, str) for at in places.values()):
            places = {name: places[name] for name in self.inputs if name in places}
            layout = self.read(places, header=True)
        else:
            layout = replace(self, inputs=tuple(places)).read(places, header=False)
        other = other_delimiter(self.path, layout)
        if other:  # the format is an option of the commands that predict
            raise DataError(f"{self.path}:1: {other.replace('format=csv', '--format csv')}")

    def _are_names_of_another_format(self, places: Places) -> bool:
        """Whether the training data's names are no names of a header: of JSON, say."""
        if "columns" in self.said or not any(isinstance(at, str) for at in places.values()):
            return False
        return self.kind == "conll" or self.trained_kind not in TABLES

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

    def is_header_of_data(self, cells: Sequence[str]) -> bool:
        """Whether the run's data is at hand and has that header: its columns are in its places."""
        data = first_file(self.config.path)
        kind = self.trained_kind
        if not cells or "columns" in self.said or kind not in TABLES or not data.is_file():
            return False
        delimiter = None if "delimiter" in self.said else self.config.delimiter
        encoding = self._encoding_of(data)
        how: Any = {"header": True, "delimiter": delimiter, "encoding": encoding}
        layout = column_format(kind, self.config.columns, **how)
        header = first_cells(data, layout) or ()
        return [*map(plain_name, header)] == [*map(plain_name, cells)]

    @cached_property
    def _encoding(self) -> str:
        return self._encoding_of(self.path)

    def _encoding_of(self, path: Path) -> str:
        """UTF-8 if a file certainly is; else the training data's encoding."""
        own = self.config.encoding
        if own == UTF8:
            return own
        return UTF8 if is_utf8(_head(path), checked_encoding(own)) else own

    def encoding_warning(self, layout: RowFormat) -> str:
        """A warning if the file may be in another encoding than it is read in; else empty."""
        if "encoding" in self.said:
            return utf8_warning(self.path, layout)
        own = self.config.encoding
        if own == UTF8 or not isinstance(layout, LinesFormat) or not is_utf8(_head(self.path)):
            return ""
        if layout.encoding == UTF8:
            read, other = "as UTF-8", f"in {own}, as the run's data is: encoding={own}"
        else:
            read, other = f"in {own}, as the run's data is", "UTF-8: encoding=utf-8"
        return f"{self.path} is read {read}. If it is {other}"

    def read(self, places: Places, *, header: bool, strict: bool = False) -> RowFormat:
        """The layout, by those settings that go with the format."""
        defaults = {field.name: field.default for field in fields(TextPairs.Config)}
        settings: dict[str, Any] = {}
        less = set(self.config.columns) > set(self.inputs)  # what is left out is no further column
        for name, kinds in HAVING.items():
            fits = self.kind in kinds and not (name == "extra_columns" and less)
            fits = fits and (name != "delimiter" or self.kind == self.trained_kind)
            kept = fits or name in self.said
            settings[name] = getattr(self.config, name) if kept else defaults[name]
        if "encoding" not in self.said and settings["encoding"] != UTF8:
            settings["encoding"] = self._encoding
        if "lists" not in self.said:
            settings["lists"] = [name for name in settings["lists"] if name in places]
        if self.kind in TABLES:
            settings["header"] = header
            settings["extra_columns"] = "error" if strict else settings["extra_columns"]
        optional = getattr(self.config, "optional", ())
        required = tuple(name for name in self.inputs if name in places and name not in optional)
        trained = numbered(self.config.columns, None)[0]
        alike = places.items() <= trained.items()
        others = {at: name for name, at in trained.items() if alike and isinstance(at, int)}
        return replace(
            column_format(self.kind, places, **settings), required=required, others=others
        )


def _head(path: Path) -> bytes:
    """The bytes of a file that show its encoding."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)
