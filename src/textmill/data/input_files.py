"""A file of rows to predict: read as the training data was, for what the model reads of it.

Targets may be there or not, so its columns are where those of the training data are, or the file
has nothing else.
"""

import logging
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

from textmill.data.bad_rows import BadRow
from textmill.data.data_files import first_file
from textmill.data.first_row import first_cells, other_delimiter
from textmill.data.formats.advice import utf8_warning
from textmill.data.formats.by_suffix import HAVING, FileFormat, column_format, format_name
from textmill.data.formats.header import columns_setting, plain_name
from textmill.data.formats.row_format import LinesFormat, Row, RowFormat, numbered
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, UserError
from textmill.text.encodings import HEAD_BYTES, UTF8, checked_encoding, is_utf8
from textmill.text.features.labels import Labels

LOG = logging.getLogger("textmill")

POSITIONS: tuple[FileFormat, ...] = ("tsv", "csv", "conll")
"""Formats whose columns have positions; those of the others have names."""
TABLES: tuple[FileFormat, ...] = ("tsv", "csv")
"""Formats that may have a header."""
LOOKED_AT = 100
"""Rows that show which columns a file has: some may be bad."""
CLEARLY = 3
"""As many times more rows are of one kind than of the other where those are bad rows, not mixed."""

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
            be one; or the rows are of two kinds.

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
    return _layout_of(InputFile(path, config, tuple(inputs), frozenset(said)), str(path))


def _layout_of(file: "InputFile", name: str) -> RowFormat:
    """The layout of a file, with a warning if its encoding may be another."""
    layout = file.layout()
    if warning := file.encoding_warning(layout):
        LOG.warning("%s", warning.replace(str(file.path), name))
    return layout


@dataclass(frozen=True)
class InputFile:
    """A file to predict, and what is known of it; as `input_layout` has them."""

    path: Path
    config: TextPairs.Config
    inputs: tuple[str, ...]
    said: frozenset[str]

    def layout(self) -> RowFormat:
        """By a header's names, by the training data's places, or by those of the inputs alone."""
        self._refuse_other_delimiter()
        places = self._places()
        named = any(isinstance(at, str) for at in places.values())
        if alone := named and self._are_names_of_another_format():
            places, named = {name: at for at, name in enumerate(self.inputs)}, False
        placed = "columns" in self.said and isinstance(self.config.columns, Mapping)
        if self.kind in TABLES and not named:
            cells = first_cells(self.path, self.read(places, header=False)) or ()
            if self._has_header(cells, placed=placed) and not placed:
                return self.read(_by_name(places, cells), header=True)
            if self.config.header and self.is_header_of_data(cells):
                return self.read(places, header=True)
        header = self.config.header
        if self.kind in TABLES and named and "header" not in self.said:
            header = True  # names are found in a header only
        trained = self.read(places, header=header, strict=alone)
        if alone or self.kind not in POSITIONS or named or "columns" in self.said:
            return trained
        order = sorted(self.inputs, key=lambda name: places[name])
        fewer = self.read({name: at for at, name in enumerate(order)}, header=header, strict=True)
        return self._fitting(trained, fewer)

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
        if other:
            raise DataError(f"{self.path}:1: {other}")

    @cached_property
    def kind(self) -> FileFormat:
        """The format that is said, or the suffix says; files like the training data's are alike."""
        alike = self.path.suffix.lower() == first_file(self.config.path).suffix.lower()
        holds = alike or "format" in self.said
        return format_name(self.path, self.config.format if holds else "auto")

    @property
    def _kind_of_data(self) -> FileFormat:
        said = "auto" if "format" in self.said else self.config.format
        return format_name(first_file(self.config.path), said)

    def _are_names_of_another_format(self) -> bool:
        """Whether the training data's names are no names of a header: of JSON, say."""
        if self.kind not in POSITIONS or "columns" in self.said:
            return False
        return self.kind == "conll" or self._kind_of_data not in TABLES

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

    def _has_header(self, cells: Row, *, placed: bool) -> bool:
        """Whether the first line has names.

        Args:
            cells: The first line.
            placed: Whether the places of this file's columns are said: its names are its own then.

        Raises:
            DataError: It has, or has not, and the other is to be.
        """
        names = {*map(plain_name, cells)}
        has = {*map(plain_name, self.inputs)} <= names
        if not cells or "header" in self.said:
            return has and self.config.header
        shown = ", ".join(map(repr, cells))[:300]
        wanted = ", ".join(map(repr, self.inputs))
        if self.config.header and not (has or placed or self.is_header_of_data(cells)):
            raise DataError(
                f"{self.path}:1: wanted a header with {wanted}, as the run's data has a header; "
                f"found {shown}. If that is a row: header=false. If it is a header of other names: "
                "header=true, if the columns are in the same places"
            )
        if not self.config.header and has:
            raise DataError(
                f"{self.path}:1: wanted a row, found names of columns, {shown}. If that is a "
                "header: header=true. If it is a row: header=false"
            )
        return has and self.config.header

    def is_header_of_data(self, cells: Row) -> bool:
        """Whether the run's data is at hand and has that header: its columns are in its places."""
        data = first_file(self.config.path)
        kind = self._kind_of_data
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
            fits = fits and (name != "delimiter" or self.kind == self._kind_of_data)
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

    def _fitting(self, trained: RowFormat, fewer: RowFormat) -> RowFormat:
        """The layout that nearly all of the first rows fit, of those that fit only one.

        Raises:
            DataError: Some fit the one, some the other.
        """
        good, alone = self._good(trained), self._good(fewer)
        if self.kind == "conll":  # its first column alone is never wrong, however many there are
            return trained if good or not alone else fewer
        only_trained, only_fewer = sorted(good - alone), sorted(alone - good)
        if len(only_fewer) >= CLEARLY * len(only_trained):
            return fewer if only_fewer else trained
        if len(only_trained) >= CLEARLY * len(only_fewer):
            return trained
        kinds = sorted([only_trained, only_fewer])  # that of the first row first
        raise DataError(
            f"{self.path}:{kinds[1][0]}: wanted rows that are alike, found {len(kinds[0])} as line "
            f"{kinds[0][0]} is and {len(kinds[1])} as this one: some have the columns of the run's "
            f"data, some {' and '.join(self.inputs)} alone. Say which all are to have, as "
            f"{columns_setting(trained.columns)} or {columns_setting(fewer.columns)}"
        )

    def _good(self, layout: RowFormat) -> set[int]:
        """The lines of the good ones of the first rows."""
        with self.path.open("rb") as stream:
            rows = islice(layout.scan(stream, str(self.path)), LOOKED_AT)
            return {line for line, row in rows if not isinstance(row, BadRow)}


def _head(path: Path) -> bytes:
    """The bytes of a file that show its encoding."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _by_name(places: Places, cells: Row) -> dict[str, int | str]:
    """The columns by their names in a header."""
    names = {plain_name(cell): cell for cell in cells}
    return {name: names[plain_name(name)] for name in places if plain_name(name) in names}


def piped_layout(
    head: bytes,
    config: TextPairs.Config,
    inputs: Sequence[str],
    labels: Mapping[str, Labels],
    *,
    name: str = "standard input",
    said: Collection[str] = (),
) -> RowFormat | None:
    r"""How what comes through a pipe becomes rows to predict; None where it is lines of text.

    A pipe has no suffix. It is read as rows where a header or the labels show that it is; as lines
    where nothing speaks for rows; and where both may be meant it is refused, with words for each.

    Args:
        head: Its first lines.
        config: How the training data was read, with what is said of these rows.
        inputs: The columns that the model reads.
        labels: Those that are known, by their column.
        name: What errors call it.
        said: Which settings are said of these rows: but for ``encoding``, they are rows then.

    Raises:
        UserError: It may be rows or lines.
        DataError: As `input_layout`.

    Example:
        >>> config = TextPairs.Config(path=Path("sms.csv"), columns=("label", "text"))
        >>> labels = {"label": Labels(["ham", "spam"])}
        >>> piped_layout(b"Win, win!\n", config, ["text"], labels) is None
        True
        >>> layout = piped_layout(b"spam,Win!\nham,Hi.\n", config, ["text"], labels)
        >>> [row for _, row in layout.scan(BytesIO(b"spam,Win!\n"), "-")]
        [('Win!',)]
    """
    with tempfile.TemporaryDirectory(prefix="textmill-pipe-") as folder:
        path = (Path(folder) / "rows").with_suffix(first_file(config.path).suffix)
        path.write_bytes(head)
        try:
            file = InputFile(path, config, tuple(config.columns), frozenset())
            if {*said} <= {"encoding"} and not _are_rows(file, head, inputs, labels, name=name):
                return None
            return _layout_of(InputFile(path, config, tuple(inputs), frozenset(said)), name)
        except DataError as error:
            raise DataError(str(error).replace(str(path), name)) from None


def _are_rows(
    file: InputFile,
    head: bytes,
    inputs: Sequence[str],
    labels: Mapping[str, Labels],
    *,
    name: str,
) -> bool:
    """Whether it has the columns of the run's data; a UserError where it may have."""
    config = file.config
    kind = format_name(first_file(config.path), config.format)
    if kind == "jsonl":
        return head.lstrip().startswith(b"{")
    if kind not in ("tsv", "csv", "conll"):
        return False
    if kind != "conll" and _has_header(file, inputs):
        return True
    rows = _rows(file, head)
    good = [row for row in rows if not isinstance(row, BadRow)]
    fits = bool(good) and len(good) >= CLEARLY * (len(rows) - len(good))
    known = {role: labels[role] for role in config.columns if role in labels}
    if fits and known:
        at = {role: [*config.columns].index(role) for role in known}
        right = sum(all(_has(known[role], row[at[role]]) for role in known) for row in good)
        if right >= CLEARLY * (len(good) - right):
            return True
    if fits and not known and kind == "tsv" and len(config.columns) > 1:
        return True
    comma = (config.delimiter or ",").encode()
    if what := _what_speaks_for_rows(kind, head, comma, fits=fits and not known):
        raise UserError(
            f"{name} may be rows of {kind}, as the run's data is, or lines of text: it has {what}. "
            f"Say which: format={kind} for rows (textmill predict RUN - format={kind}), or --lines."
        )
    return False


def _has_header(file: InputFile, inputs: Sequence[str]) -> bool:
    """Whether the first line has the names of what the model reads, or those of the run's data."""
    cells = first_cells(file.path, file.read(dict.fromkeys(inputs, 0), header=False)) or ()
    named = {*map(plain_name, map(str, _named(file.config, inputs)))}
    names = {*map(plain_name, cells)}
    return named <= names or (file.config.header and file.is_header_of_data(cells))


def _named(config: TextPairs.Config, inputs: Sequence[str]) -> list[str]:
    """The inputs' names in a header."""
    places = config.columns if isinstance(config.columns, Mapping) else {}
    return [at if isinstance(at := places.get(name), str) else name for name in inputs]


def _rows(file: InputFile, head: bytes) -> list[Row | BadRow]:
    """The rows that they are where they have the columns of the run's data; none by names."""
    places = numbered(file.config.columns, None)[0]
    if any(isinstance(at, str) for at in places.values()):
        return []
    layout = file.read(places, header=False)
    return [row for _, row in layout.scan(BytesIO(head), "")]


def _has(labels: Labels, cell: str) -> bool:
    """Whether a cell is a label, or several."""
    return labels.has(cell) or (bool(cell.split()) and all(map(labels.has, cell.split())))


def _what_speaks_for_rows(kind: str, head: bytes, comma: bytes, *, fits: bool) -> str:
    """What lines of text hardly have; empty where there is nothing."""
    lines = head.splitlines()
    if b"\t" in head and kind != "csv":
        return "tabs"
    if kind == "conll" and any(not line.strip() for line in lines):
        return "empty lines"
    if kind == "csv" and any(line.startswith(b'"') or comma + b'"' in line for line in lines):
        return "quotes around columns"
    return f"{comma.decode()!r} in all lines" if kind == "csv" and fits else ""
