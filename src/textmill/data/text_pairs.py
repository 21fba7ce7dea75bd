"""Pairs of sentences from a file: the row source of the main job."""

import hashlib
import json
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config import Component, setting
from textmill.config import Config as BaseConfig
from textmill.data import registries
from textmill.data.bad_rows import BadRow, RowCount, allowed_rows, check_bad_rows, tell_left_out
from textmill.data.batching import Batched, Batching, MaxTokens
from textmill.data.data_files import DataPath, ReadFiles, data_files, mixture_of, read_files
from textmill.data.first_row import advice_on, first_cells, has_names, is_header, utf8_warning
from textmill.data.formats.by_suffix import (
    HAVING,
    SUFFIXES,
    FileFormat,
    TokenSeparator,
    column_format,
    format_name,
)
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.header import (
    UNKNOWN,
    columns_setting,
    header_places,
    plain_name,
    proposed,
    shown_cells,
)
from textmill.data.formats.json_lines import ColumnarFormat, JsonLinesFormat, first_keys
from textmill.data.formats.lines import LineFormat
from textmill.data.formats.row_format import RowFormat
from textmill.data.holdout import Holdout
from textmill.data.line_blocks import MAX_LINE_BYTES, FileNotes
from textmill.data.mixture import Mixture, is_mixed
from textmill.data.rows import Rows, StoredRows
from textmill.errors import DataError, UserError
from textmill.text.cells import RowCheck

LOG = logging.getLogger("textmill")

HELD_BYTES = 64 << 20
"""A larger file is not held in memory, where its rows would take three times as much."""


class FilesConfig(BaseConfig, first=()):
    """Where rows are, and which of them are taken."""

    path: DataPath
    """The file. Several: a list, read in its order; a folder, or a pattern such as
    ``data/part-*``, read in the order of the names."""
    encoding: str = "utf-8"
    """Encoding of a text file that is not UTF-8: cp1252 as Windows and Excel save it in western
    Europe, latin-1, shift_jis, ...; UTF-16 with a byte order mark needs none."""
    weights: tuple[float, ...] | None = None
    """Share of each entry of path (a file, folder or pattern) in the rows of an epoch, which has as
    many rows as all entries together; an entry that has ended begins again. null: every row
    once, also in data of one entry that follows train_data."""
    temperature: float | None = None
    """Shares by size: the number of rows of each entry to the power of 1 / temperature. 1 keeps
    the proportions, 5 is usual if small entries are to be seen more often."""
    keep_tokens: bool = setting(default=True, in_key=False)
    """Whether the token store keeps the ids of much text for later runs; else each run encodes
    all rows anew, by several processes, and holds the ids in memory."""
    max_bad_rows: int | float = 0
    """How many unreadable rows may be left out, as a number or, below 1, as a share of all rows;
    with more, the run ends before step 1."""
    holdout: float = 0.0
    """Share of the rows held out for valid_data, if that has no file of its own: chosen by a
    hash of each row, so that rows keep their side as others are added."""
    held_out: bool = False
    """Whether this is the data that holdout leaves to valid_data, and not the rest. textmill
    sets it for valid_data itself."""
    max_line_bytes: int = MAX_LINE_BYTES
    """Longest line, in bytes; a longer one is a bad row (a lost line end, most likely)."""


@registries.datasets.register("text_pairs")
class TextPairs(Component, Batched):
    r"""Rows of a file (TSV, CSV, JSON lines, ...), usually a sentence and its translation.

    The file is read in one pass when rows are first asked for; a missing file is an error at once.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "pairs.tsv").write_text("Hi.\tSalut.\nRun!\tCours !\n", encoding="utf-8")
        >>> pairs = TextPairs.Config(path=folder / "pairs.tsv").build()
        >>> len(pairs), pairs.rows()[0]
        (2, {'source': 'Hi.', 'target': 'Salut.'})
    """

    class Config(
        FilesConfig,
        first=("path", "format", "columns", "header", "max_tokens", "batch_size", "holdout"),
    ):
        format: FileFormat = "auto"
        """The file's format. auto: by its suffix (.csv, .jsonl, .ndjson, .conll, .parquet, .arrow,
        .feather, .xlsx, .xls, .ods; .json is SQuAD's), else TSV: a row a line, columns separated
        by tabs, without quotes. Of a spreadsheet one sheet is read."""
        columns: tuple[str, ...] | dict[str, int | str] = ("source", "target")
        """TSV and CSV: names of the first columns in their order, or in that of a header with these
        names; or each name with its position (from 0) or its name in the header. CoNLL: likewise,
        without a header; a position below 0 is from the end. Other formats: names of keys or
        columns; or each name with the file's name for it, where a.b is the field b of a, and in
        JSON a.0 the first of the list a."""
        header: bool = False
        """A line of a TSV or CSV file, or of a sheet, names the columns: the first line, or the
        first of 20 that has all names in columns. It and what is above it, as a title, are no
        rows."""
        sheet: str | None = None
        """Sheet of a spreadsheet. null: the first that has the columns' names, else the first."""
        delimiter: str | None = None
        """Delimiter of the columns of a TSV or CSV file, if it is neither a tab nor a comma: one
        character, as ";", or tab. In a TSV file there are no quotes."""
        extra_columns: Literal["ignore", "error"] = "ignore"
        """What happens to further columns of a row: they are ignored (Tatoeba has its attribution
        there), or are an error."""
        separator: TokenSeparator = "any"
        """Delimiter of the columns of a CoNLL file: any white space, one tab, or one space.
        Other formats have their own."""
        comment: str | None = None
        """Prefix of a CoNLL file's comment lines, which stand before a sentence. null: "# ", if
        such a line does not have the columns of the sentence; "": there are no comments."""
        lists: tuple[str, ...] = ()
        """Columns that hold lists, such as the turns of a conversation: in TSV and CSV as JSON, as
        ``["hi", "hello"]``; in JSON lines, Parquet and Arrow a single text is a list of one."""
        max_tokens: MaxTokens = 2048
        """Tokens of one optimizer step over all ranks, padding counted, of source and target; not
        used if batch_size is set. auto: a number that suits the device, found when a run starts."""
        batch_size: int | None = None
        """Rows of one optimizer step, over all ranks."""
        shuffle: bool = True
        """Whether each epoch has another order of the rows, which follows from the run's seed and
        the epoch."""
        stratify: str | None = None
        """Column whose every value keeps a row for training, whatever holdout takes; null: the
        column of the labels, if a row has one label."""

    def __init__(self, config: "TextPairs.Config") -> None:
        self.config = config
        self.files = data_files(config.path)
        self._layout = self._format()
        _ = self._unmixed  # refuses impossible sizes
        self.holdout = self._holdout()
        self.is_held_out = self.holdout is not None and self.holdout.held_out
        self._required = self._layout.required
        self._may_lack: Collection[str] = ()
        self._table: ReadFiles | None = None
        self._numbers: NDArray[np.int64] | None = None  # those of the holdout's side; None: all
        self._mixture: Mixture | None = None  # of its sources; None: every row once

    def _holdout(self) -> Holdout | None:
        config = self.config
        if not config.holdout:
            return None
        return Holdout(config.holdout, held_out=config.held_out, label=config.stratify)

    def _format(self) -> RowFormat:
        config = self.config
        kinds = {format_name(file, config.format): file for file in reversed(self.files)}
        if len(kinds) > 1:
            found = " and ".join(f"{kind} ({kinds[kind]})" for kind in reversed(kinds))
            raise UserError(f"path: wanted files of one format, found {found}; or say it: format.")
        settings = {name: getattr(config, name) for name in HAVING}
        return column_format(next(iter(kinds)), config.columns, **settings)

    def _whole_format(self) -> RowFormat:
        """How the file becomes rows, with what is made of its cells."""
        return self._layout

    def read(self, *, ingredient: str = "train_data") -> "TextPairs":
        """Reads all files, once, and decides about their bad rows. Everything else calls this.

        Raises:
            BadRowsError: There are more bad rows than ``max_bad_rows``.
            DataError: There is no good row at all.
        """
        owner = "train_data" if self.is_held_out else ingredient  # whose files they are
        self._layout = replace(self._layout, prefix=f"{owner}.")
        for file in self.files:
            if self._table is None and (warning := utf8_warning(file, self._layout)):
                LOG.warning("%s", warning)
            self._refuse_names(file)
        refuse_other_header(owner, self, self)
        table = self._table or read_files(self.files, self._whole_format(), held=HELD_BYTES)
        bad_in = Path(table.bad_rows[0].file) if table.bad_rows else None
        check_bad_rows(
            table.bad_rows,
            table.count,
            allowed=allowed_rows(self.config.max_bad_rows, table.count.total),
            # Of one file the bad rows are those of its training side.
            setting=f"{owner}.max_bad_rows",
            advice=advice_on(table.bad_rows, self._layout, self._may_lack),
            hint=self._other_format(bad_in, ingredient) if bad_in else "",
        )
        if not table.count.good:
            bad = table.count.bad
            found = f"{bad} bad row{'s' * (bad > 1)} and no other" if bad else "an empty file"
            wanted = ", ".join(self._layout.columns)
            raise DataError(f"{self.name}: wanted rows of {wanted}, found {found}.")
        if self._table is None:
            self._refuse_absent(table)
            setting = f"{ingredient}.max_bad_rows"
            if not self.is_held_out:  # the training side tells them
                tell_left_out(table.bad_rows, table.count, setting=setting, name=self.name)
                if table.notes.above:
                    lines = f"{table.notes.above} line{'s' * (table.notes.above > 1)}"
                    LOG.info("%s: %s above the header: left out.", self.name, lines)
            if table.notes.left_out:
                LOG.info("%s: %d lines are no tokens: left out.", self.name, table.notes.left_out)
            if table.notes.same_ids:
                LOG.warning(
                    "%s: %d of the questions have the id of one before them, the first %r; all "
                    "were kept.",
                    *(self.name, table.notes.same_ids, table.notes.same_id),
                )
        self._table = table
        if self.holdout is not None and self._numbers is None:
            self._numbers = self.holdout.of(table.rows(), name=self.name, owner=owner)
        if is_mixed(self.config) and not self.is_held_out:
            self._mixture = mixture_of(self.config, table, self._numbers, ingredient=ingredient)
        return self

    def _refuse_absent(self, table: ReadFiles) -> None:
        """Refuses a column that is empty in every row; warns of one that may be so (``optional``).

        The name or the position of such a column is a wrong one, most likely. A column that the
        header has may be empty if the task does not read it.
        """
        layout = self._layout
        named = layout.has_header or isinstance(layout, ColumnarFormat)
        for name, at in layout.columns.items():
            if name in (layout.required if not named else layout.must_exist):
                continue
            if any(row[name] for row in table.rows()):
                continue
            place = f"position {at} (from 0)" if isinstance(at, int) else repr(at)
            empty = f"{self.name}: column {name!r}, at {place}, is empty in all rows."
            setting = f"{layout.prefix}columns"
            if name in layout.present:
                keys = first_keys(self.files[0]) if isinstance(layout, JsonLinesFormat) else []
                guess = columns_setting(proposed(layout.columns, keys), layout.prefix)
                raise DataError(
                    f"{empty} Correct it{f': {guess}' if keys else f' in {setting}'}, or leave it "
                    "out there: the task does not read it."
                )
            LOG.warning("%s If that is not its place, correct it in %s.", empty, setting)

    def require(self, columns: Collection[str], *, may_lack: Collection[str] = ()) -> None:
        """Lets rows have other columns empty; of no effect where they were read.

        The files must have these columns nevertheless: else the name of one is wrong. An error
        about an empty cell of a column that ``may_lack`` it says how it is allowed.
        """
        self._may_lack = may_lack
        kept = tuple(name for name in self._layout.required if name in columns)
        if self._table is None and kept:
            self._layout = replace(self._layout, required=kept, present=self._required)

    def check_rows(self, check: RowCheck) -> None:
        """Counts rows that do not pass as bad ones; has no effect on rows that were read."""
        reads, fields = getattr(check, "reads", None), getattr(check, "__dict__", {})
        if not isinstance(reads, tuple) or not reads or not {*reads} <= fields.keys():
            raise UserError(
                f"row_check of the task's Config returned {check!r}: wanted None, or a RowCheck "
                "(textmill.text.cells) whose reads is a tuple of the names of its fields."
            )
        if self._table is None and not getattr(self.config, "spans", None):  # no tags yet
            self._layout = replace(self._layout, check=check)

    @property
    def layout(self) -> RowFormat:
        return self._layout

    @property
    def name(self) -> str:
        """The file, or of several the first and how many there are, as errors call them."""
        first, *more = self.files
        return f"{first} and {len(more)} more" if more else str(first)

    def rows(self) -> Rows | StoredRows:
        """The good rows in the file's order; of a file over ``HELD_BYTES`` they stay in it."""
        rows, numbers = self._read().rows(), self._numbers
        if numbers is None:
            return rows
        if not isinstance(rows, Rows):
            return rows.chosen(numbers)
        columns = {name: rows.column(name) for name in rows.names}
        mine = {name: [values[n] for n in numbers] for name, values in columns.items()}
        return Rows(mine, place_of=self.place_of)

    @property
    def lines(self) -> Sequence[int]:
        """The line number, from 1, of each good row in its file."""
        every = self._read().lines
        return every if self._numbers is None else [every[n] for n in self._numbers]

    def place_of(self, row: int) -> str:
        """The file, and the line in it of a good row by its number from 0."""
        return self._read().place_of(row if self._numbers is None else int(self._numbers[row]))

    @property
    def bad_rows(self) -> Sequence[BadRow]:
        """The rows that were left out, of a great many the first ``KEPT``: on the training side."""
        return [] if self.is_held_out else self._read().bad_rows

    @property
    def count(self) -> RowCount:
        """Good, bad and total, of the rows of this side."""
        good, bad = len(self.rows()), 0 if self.is_held_out else self._read().count.bad
        return RowCount(good, bad, good + bad)

    def __len__(self) -> int:
        return len(self.rows())

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self.rows())

    @property
    def notes(self) -> FileNotes:
        return self._read().notes

    def fingerprint(self) -> str:
        """64 hexadecimal digits of the files' bytes and of what decides how they are read.

        The path is not in it, nor is batching: a moved file is the same data.
        """
        return self.side_fingerprint(self.holdout)

    def side_fingerprint(self, holdout: Holdout | None) -> str:
        """The :meth:`fingerprint` that these files have with another holdout; None: with none."""
        layout = replace(self._layout, required=self._required, check=None).reading()
        facts: dict[str, object] = {"sha256": self._read().sha256, "layout": layout}
        if not isinstance(self._layout, LineFormat):
            facts["format"] = type(self._layout).__name__
        for name in ("spans", "group_by"):
            if changed := getattr(self.config, name, None):
                facts[name] = changed
        if holdout is not None:
            facts["holdout"] = asdict(holdout)
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    @property
    @override
    def batching(self) -> Batching:
        """How the rows become batches; for the sizes of a mixture's sources all are read."""
        if is_mixed(self.config):
            self._read()
        return replace(self._unmixed, mixture=self._mixture)

    @property
    def _unmixed(self) -> Batching:
        """The sizes and the order of batches, whatever rows an epoch has."""
        return super().batching

    def digests(self) -> dict[str, str]:
        """The sha256 of each of several files, by its name; of one file the fingerprint tells."""
        found = self._read().sha256
        return {} if isinstance(found, str) else dict(zip(map(str, self.files), found, strict=True))

    def header(self, file: Path) -> tuple[str, ...] | None:
        """The names over the columns of a file; None without a header, or of columns by names."""
        cells = first_cells(file, self._layout) if self._layout.has_header else None
        places = [at for at in self._layout.columns.values() if isinstance(at, int)]
        named = tuple(cells[at] if at < len(cells) else "" for at in places) if cells else ()
        return named or None

    def _refuse_names(self, path: Path) -> None:
        """Refuses a header without the columns, or one that no setting names: it would be a row."""
        layout, prefix = self._layout, self._layout.prefix
        if (cells := first_cells(path, layout)) is None:
            return
        if layout.has_header:
            header_places(layout, cells, str(path))  # of each file before the first is read whole
        if layout.has_header or not has_names(cells, layout):
            return
        advice = "If that is a header, take it out: a conll file has none."
        if not isinstance(layout, ConllFormat):
            words = f"{prefix}header=true"
            if not {*map(plain_name, layout.required)} <= {*map(plain_name, cells)}:
                words += f" {columns_setting(proposed(layout.columns, cells), prefix)}"
            advice = f"If that is a header: {words}. If it is a row, let another one be the first."
        raise DataError(
            f"{path}:1: wanted a row, found names of columns, {shown_cells(cells)}. {advice}"
        )

    def _other_format(self, path: Path, ingredient: str) -> str:
        """What may be wrong with bad rows: other keys, or a format that its name does not have."""
        if isinstance(self._layout, JsonLinesFormat) and (keys := first_keys(path)):
            names = proposed(self._layout.columns, keys)
            if not {*self._layout.columns.values()} <= {*keys} and "..." not in names.values():
                setting = columns_setting(names, f"{ingredient}.")
                return f"If they have them by other keys: {setting}"
        said, named = getattr(self.config, "format", "auto"), SUFFIXES.get(path.suffix.lower())
        if said == "auto" or named in (None, said):
            return ""
        return (
            f"{path} is read as {said}, as {ingredient}.format says; by its name it is {named}: "
            f"{ingredient}.format=auto"
        )

    def _read(self) -> ReadFiles:
        if self._table is None:
            self.read()
        assert self._table is not None
        return self._table


def refuse_other_header(name: str, data: object, first: object) -> None:
    """Rejects files whose header does not match that of the first file of the training data.

    Data that follows ``train_data`` has its ``header=true``: of a file without one a row would be
    lost.
    """
    if not (isinstance(first, TextPairs) and isinstance(data, TextPairs)):
        return
    if (wanted := first.header(first.files[0])) is None:
        return
    for file in data.files:
        found = data.header(file)
        if found is not None and not is_header(found, wanted):
            setting = columns_setting(dict.fromkeys(data.config.columns, UNKNOWN), f"{name}.")
            is_row = f"If that is a row: {name}.header=false."
            if data is first:
                is_row = "With header=true each of several files has it."
            raise DataError(
                f"{file}:1: wanted the header of {first.files[0]}, {shown_cells(wanted)}; found "
                f"{shown_cells(found)}. {is_row} If it is a header of other names, say which: "
                f"{setting}"
            )
