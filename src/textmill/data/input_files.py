"""A file of rows to predict: read as the training data was, for what the model reads of it.

A header's names decide where the columns are; else they are where those of the training data are,
or the file has nothing but what the model reads: its first row shows which.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textmill.data.data_files import first_file
from textmill.data.first_row import first_cells, utf8_warning
from textmill.data.formats.by_suffix import (
    DEFAULTS,
    HAVING,
    SUFFIXES,
    TABLES,
    FileFormat,
    column_format,
    format_name,
)
from textmill.data.formats.excel import sheet_names
from textmill.data.formats.header import DelimitedFormat, plain_name
from textmill.data.formats.row_format import RowFormat, numbered
from textmill.data.formats.sessions import sessions_format
from textmill.data.look.guess import seen_words
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, UserError
from textmill.text.encodings import (
    HEAD_BYTES,
    UTF8,
    checked_encoding,
    is_utf8,
    likely_encoding,
)

LOG = logging.getLogger("textmill")

SETTINGS = ("columns", "optional", "group_by", *HAVING)
"""The settings of data that say how a file is read, but for its format."""

Places = Mapping[str, int | str]


def input_format(path: Path, config: TextPairs.Config) -> FileFormat | None:
    """The format by a file's suffix: that of the training data if theirs is the same."""
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
    """How a file becomes rows to predict.

    Raises:
        UserError: ``columns`` does not name one that the model reads.
        DataError: The training data has a header, and the file has another first line.
    """
    trained = format_name(first_file(config.path), config.format)
    kind = form or input_format(path, config) or trained
    own, called = config.encoding, name or str(path)
    encoding, warning = own, ""
    if "encoding" not in said and kind in HAVING["encoding"]:
        encoding, warning = input_encoding(path, own, name=called)
    session = getattr(config, "group_by", None)
    read = (*inputs, *([session] if session is not None and session not in inputs else ()))
    file = _InputFile(path, called, kind, trained, config, read, said, encoding)
    layout = file.layout()
    if "encoding" in said:
        warning = utf8_warning(path, layout).replace(str(path), called)
    if warning:
        LOG.warning("%s", warning)
    alone = not said and isinstance(layout, DelimitedFormat) and not layout.has_header
    if alone and len(first_cells(path, layout) or ()) == 1:
        seen = seen_words(path, inputs)
        if "delimiter=" in seen and "header=true" in seen:  # a comma alone may be one of a text
            LOG.warning("%s is read as one column. As it looks it has several: %s", called, seen)
    return layout if session is None else sessions_format(layout, session)


def input_encoding(path: Path, own: str, *, name: str) -> tuple[str, str]:
    """The encoding of a file to predict, and a warning if it is not ``own``, the run's."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if checked_encoding(own).startswith("utf-16") and likely_encoding(head) is None:
        own = UTF8  # UTF-16 is seen for sure
    if own == UTF8 and (likely := likely_encoding(head)) is not None:
        said = f"{name} is not UTF-8, and is read in {likely}. If it is in another encoding"
        return likely, f"{said}, name it: encoding=..."
    if own == UTF8 or not is_utf8(head):
        return own, ""
    if is_utf8(head, checked_encoding(own)):
        other = f"in {own}, as the run's data is: encoding={own}"
        return UTF8, f"{name} is read as UTF-8. If it is {other}"
    return own, f"{name} is read in {own}, as the run's data is. If it is UTF-8: encoding=utf-8"


@dataclass(frozen=True)
class _InputFile:
    """A file to predict, and what is known of it."""

    path: Path
    name: str
    kind: FileFormat
    trained: FileFormat
    """The format of the training data."""
    config: TextPairs.Config
    inputs: tuple[str, ...]
    said: Collection[str]
    encoding: str

    def layout(self) -> RowFormat:
        """By a header's names, by the training data's places, or by those of the inputs alone."""
        config, columns = self.config, self.config.columns
        found, is_said = numbered(columns, None)[0], "columns" in self.said
        if missing := [name for name in self.inputs if name not in found]:
            raise UserError(
                f"columns: wanted all that the model reads ({', '.join(self.inputs)}), found "
                f"{', '.join(found)}; {missing[0]!r} is missing."
            )
        places = {name: at for name, at in found.items() if is_said or name in self.inputs}
        if self.kind not in (*TABLES, "conll"):  # the others have names, and no positions
            if not (is_said and isinstance(columns, Mapping)):
                places = {n: at if isinstance(at, str) else n for n, at in places.items()}
            return self._read(places)
        has_names = any(isinstance(at, str) for at in places.values())
        alone: Places = {name: at for at, name in enumerate(self.inputs)}
        if self.kind == "conll":
            return self._read(alone if has_names and not is_said else places)
        if has_names and (is_said or self.trained in TABLES):  # found in a header only
            return self._read(places, header=config.header if "header" in self.said else True)
        if is_said and isinstance(columns, Mapping):
            return self._read(places, header=config.header)
        if has_names:  # those of JSON, say, may be names of a header
            return self._by_first_row(alone, {name: str(at) for name, at in places.items()})
        return self._by_first_row(places)

    def _by_first_row(self, places: Places, names: Mapping[str, str] | None = None) -> RowFormat:
        """The layout of a table by its first row: a header with the names, or a row by width."""
        header, cells = self.config.header, first_cells(self.path, self._read(places)) or ()
        found = {plain_name(cell): cell for cell in cells}
        called = names or {name: name for name in places}
        by_name = {n: found[plain_name(at)] for n, at in called.items() if plain_name(at) in found}
        if {*self.inputs} <= {*by_name} and (header or "header" not in self.said):
            return self._read(by_name, header=True)
        if header and cells and "header" not in self.said:
            shown, wanted = (", ".join(map(repr, some))[:300] for some in (cells, self.inputs))
            raise DataError(
                f"{self.name}:1: wanted a header with {wanted}, as the run's data has a header; "
                f"found {shown}. If that is a row: header=false. If it is a header of other names: "
                "header=true, if the columns are in the same places"
            )
        order = sorted(self.inputs, key=lambda name: places[name])
        layout = self._read(places, header=header, strict=names is not None)
        width = 1 + max((int(layout.columns[name]) for name in layout.required), default=0)
        if "columns" in self.said or not len(cells) == len(order) < width:
            return layout
        return self._read({n: at for at, n in enumerate(order)}, header=header, strict=True)

    def _read(self, places: Places, *, header: bool = False, strict: bool = False) -> RowFormat:
        """The layout, by those settings that go with the format."""
        config, kind = self.config, self.kind
        less = {*config.columns} > {*self.inputs}  # what is left out is no further column
        how: dict[str, Any] = {}
        for name, kinds in HAVING.items():
            fits = kind in kinds and not (name == "extra_columns" and less)
            fits = fits and (name != "delimiter" or kind == self.trained)
            how[name] = getattr(config, name) if fits or name in self.said else DEFAULTS[name]
        if kind in HAVING["encoding"]:
            how["encoding"] = self.encoding
        if how["sheet"] and "sheet" not in self.said and how["sheet"] not in sheet_names(self.path):
            how["sheet"] = None  # that of another month, say
        if "lists" not in self.said:
            how["lists"] = [name for name in how["lists"] if name in places]
        if kind in TABLES:
            how |= {"header": header} | ({"extra_columns": "error"} if strict else {})
        optional = getattr(config, "optional", ())
        required = tuple(name for name in self.inputs if name in places and name not in optional)
        every = numbered(config.columns, None)[0]
        alike = places.items() <= every.items()
        others = {at: name for name, at in every.items() if alike and isinstance(at, int)}
        return replace(column_format(kind, places, **how), required=required, others=others)
