"""Rows of a file with columns of any names: what most tasks train on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from typing_extensions import override

from textmill.data import registries
from textmill.data.bad_rows import BadRow
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.row_format import Found, Row, RowFormat, Scan
from textmill.data.formats.sessions import sessions_format
from textmill.data.line_blocks import excerpt
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError
from textmill.text.features.slots import SpansError, places_of, read_slots, tags_of


@registries.datasets.register("text_rows")
class TextRows(TextPairs):
    """Rows of a file (TSV, CSV, JSON lines, ...) with a label and a text, or other columns."""

    class Config(TextPairs.Config, first=()):
        columns: tuple[str, ...] | dict[str, int | str] = ("label", "text")
        optional: tuple[str, ...] = ()
        """Columns that a row may have empty; a row with any other one empty is bad."""
        spans: dict[str, str] | None = None
        """Columns of spans of characters, as 16:24:time,39:57:day, each with the column of the text
        that they are in: as {tags: words}. They are read as tags: O, B-time and I-time, one for
        each word; an empty cell has none."""
        read_as: dict[str, dict[str, str]] | None = None
        """Cells of a column that are read as others, as {label: {Biling: Billing}}: what is another
        spelling of the same."""
        group_by: str | None = None
        """Column of what rows of one session share, such as the id of a conversation: such rows,
        one after the other, become one row, whose other columns are lists. null: a row is a row."""
        batch_size: int | None = 32
        """Rows of one optimizer step, over all ranks; null: max_tokens decides."""

    config: Config

    @override
    def _format(self) -> RowFormat:
        layout, optional = super()._format(), self.config.optional
        unknown = next((name for name in optional if name not in layout.columns), None)
        if unknown is not None:
            raise UserError(
                f"optional: wanted names of columns ({', '.join(layout.columns)}), "
                f"found {unknown!r}."
            )
        spans = self.config.spans or {}
        required = (name for name in layout.required if name not in (*optional, *spans))
        return replace(layout, required=tuple(required))

    @override
    def _whole_format(self) -> RowFormat:
        config, session = self.config, self.config.group_by
        layout = spans_format(self._layout, config.spans) if config.spans else self._layout
        layout = respelled_format(layout, config.read_as) if config.read_as else layout
        return layout if session is None else sessions_format(layout, session)


@dataclass(frozen=True)
class SpansFormat(RowFormat):
    """Another format, of which some columns are spans; made by `spans_format`."""

    inner: RowFormat
    spans: Mapping[str, str] = field(default_factory=dict)

    @property
    @override
    def has_header(self) -> bool:
        return self.inner.has_header

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        for line, row in self.inner.rows(scan, whole=False):
            if isinstance(row, BadRow | list):
                yield line, row
            elif isinstance(tagged := self.tagged(row), str):
                yield line, BadRow(scan.name, line, tagged, excerpt("\t".join(row).encode()))
            else:
                yield line, tagged

    def tagged(self, row: Row) -> Row | str:
        """The row with a tag for each word in place of its spans; or what is wrong with them."""
        cells = dict(zip(self.columns, row, strict=True))
        try:
            for name, column in self.spans.items():
                text = cells[column]
                found = read_slots(cells[name], text, "spans", column=name, row=0)
                cells[name] = " ".join(tags_of(found, places_of(text)))
        except SpansError as error:
            return f"column '{error.column}': {error.problem}"
        return tuple(cells.values())


def spans_format(inner: RowFormat, spans: Mapping[str, str]) -> SpansFormat:
    r"""A format whose columns of spans are read as tags: ``O``, and ``B-`` and ``I-`` of a kind."""
    for name in (*spans, *spans.values()):
        if name not in inner.columns:
            raise UserError(
                f"spans: wanted names of columns ({', '.join(inner.columns)}), found {name!r}."
            )
    if isinstance(inner, ConllFormat):
        raise UserError("spans: a conll file has tags of words, and no spans; leave spans out.")
    required = tuple(name for name in inner.required if name not in spans)
    return SpansFormat(inner.columns, required, replace(inner, required=required), dict(spans))


@dataclass(frozen=True)
class RespelledFormat(RowFormat):
    """Another format, of which some cells are read as others; made by `respelled_format`."""

    inner: RowFormat
    read_as: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    @override
    def has_header(self) -> bool:
        return self.inner.has_header

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        spelled = [self.read_as.get(name, {}) for name in self.columns]
        for line, row in self.inner.rows(scan, whole=False):
            if isinstance(row, BadRow | list):
                yield line, row
            else:
                pairs = zip(spelled, row, strict=True)
                yield line, tuple([others.get(cell, cell) for others, cell in pairs])


def respelled_format(inner: RowFormat, read_as: Mapping[str, Mapping[str, str]]) -> RespelledFormat:
    """A format whose cells of some columns are read as others, by column and cell."""
    for name in read_as:
        if name not in inner.columns:
            raise UserError(
                f"read_as: wanted names of columns ({', '.join(inner.columns)}), found {name!r}."
            )
    return RespelledFormat(inner.columns, inner.required, inner, dict(read_as))
