"""Rows whose words are marked by spans of characters, read as tags of the words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.row_format import Row, RowFormat, Scan
from textmill.data.line_blocks import excerpt
from textmill.errors import UserError
from textmill.text.features.slots import SpansError, places_of, read_slots, tags_of


class _SpansScan(Scan["SpansFormat"]):
    def __init__(self, stream: BinaryIO, name: str, layout: "SpansFormat") -> None:
        super().__init__(stream, name, layout)
        self._inner = layout.inner.scan(stream, name)
        self.notes = self._inner.notes

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        for line, row in self._inner:
            self.place = self._inner.place
            if isinstance(row, BadRow):
                yield line, row
            elif isinstance(tagged := self.layout.tagged(row), str):
                shown = excerpt("\t".join(row).encode())
                yield line, BadRow(self.name, line, self.byte, tagged, shown)
            else:
                yield line, tagged
        self.total, self.sha256 = self._inner.total, self._inner.sha256

    @property
    @override
    def byte(self) -> int | None:
        return self._inner.byte


@dataclass(frozen=True)
class SpansFormat(RowFormat):
    """Another format, of which some columns are spans; made by `spans_format`.

    Attributes:
        inner: That format.
        spans: Each column of spans with the column of the text that they are in.
    """

    inner: RowFormat
    spans: Mapping[str, str] = field(default_factory=dict)

    SCAN = _SpansScan

    @property
    @override
    def has_header(self) -> bool:
        return self.inner.has_header

    @override
    def between(self, path: Path, start: int, stop: int | None, *, head: int) -> Iterator[Row]:
        for part in self.inner.between(path, start, stop, head=head):
            for row in zip(*part, strict=True) if isinstance(part, list) else (part,):
                tagged = self.tagged(row)
                if not isinstance(tagged, str):
                    yield tagged

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
    r"""A format whose columns of spans are read as tags: ``O``, and ``B-`` and ``I-`` of a kind.

    Args:
        inner: The format of the file.
        spans: Each column of spans, such as ``16:24:time,39:57:day`` (the first character of each
            and the one after its last, counted from 0, with its kind), with the column of the text.
            A row without spans has an empty cell.

    Raises:
        UserError: A column is none of the format's, or it is one of CoNLL, which has tags.

    Example:
        >>> import io
        >>> from textmill.data.formats.lines import tsv_format
        >>> layout = spans_format(tsv_format(("tags", "words")), {"tags": "words"})
        >>> text = b"7:10:person\tNobody Ann\n7:10:person,14:18:place\tNobody Ann in Rome\n"
        >>> for _, row in layout.scan(io.BytesIO(text), "a.tsv"):
        ...     print(row)
        ('O B-person', 'Nobody Ann')
        ('O B-person O B-place', 'Nobody Ann in Rome')
    """
    for name in (*spans, *spans.values()):
        if name not in inner.columns:
            raise UserError(
                f"spans: wanted names of columns ({', '.join(inner.columns)}), found {name!r}."
            )
    if isinstance(inner, ConllFormat):
        raise UserError("spans: a conll file has tags of words, and no spans; leave spans out.")
    required = tuple(name for name in inner.required if name not in spans)
    return SpansFormat(inner.columns, required, replace(inner, required=required), dict(spans))
