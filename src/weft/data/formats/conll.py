"""CoNLL: a token a line in columns, a blank line after each sentence."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.row_format import LineScan, RawLine, Row, RowFormat, Scan, text_of
from weft.data.line_blocks import MAX_LINE_BYTES
from weft.errors import UserError

__all__ = ["ConllFormat", "conll_format"]


@dataclass(frozen=True)
class ConllFormat(RowFormat):
    """Sentences of tokens; made by `conll_format`.

    Attributes:
        separator: Between columns; None is any white space.
        comment: How lines before a sentence's first token begin that are no tokens; None: no such.
        max_line_bytes: A sentence with a longer line is a bad row.
    """

    separator: str | None = None
    comment: str | None = None
    max_line_bytes: int = MAX_LINE_BYTES

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        for name, at in self.columns.items():
            if not isinstance(at, int):
                raise UserError(
                    f"columns: CoNLL has positions, no names; wanted a number for {name!r}, "
                    f"found {at!r}."
                )

    @override
    def scan(self, stream: BinaryIO, name: str) -> Scan:
        return _ConllScan(stream, name, self)


def conll_format(
    columns: Mapping[str, int] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> ConllFormat:
    r"""CoNLL; a row is a sentence, each of its columns the tokens' values with one space between.

    Args:
        columns: Position of each column, from 0, or from the end below 0; ``{"words": 0, "tags":
            -1}`` by default.
        separator: Between columns, ``"\\t"`` where a value may hold spaces; None: any white space.
        comment: How lines begin that are none of a sentence's tokens, ``"#"`` in CoNLL-U. Only
            before its first token: a token may begin like that.
        max_line_bytes: The longest line that is read, in bytes.

    Raises:
        UserError: A column is named by something else than a position.
    """
    places = {"words": 0, "tags": -1} if columns is None else columns
    return ConllFormat(dict(places), tuple(places), separator, comment, max_line_bytes)


class _ConllScan(LineScan):
    def __init__(self, stream: BinaryIO, name: str, layout: ConllFormat) -> None:
        super().__init__(stream, name, layout.max_line_bytes)
        self._layout, self._sentences = layout, 0
        places = [at for at in layout.columns.values() if isinstance(at, int)]
        self._places = places
        self._width = max(at + 1 if at >= 0 else -at for at in places)

    @property
    @override
    def total(self) -> int:
        return self._sentences

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        sentence: list[RawLine] = []
        for line in self.lines():
            if line.problem is None and not line.raw.strip():
                if sentence:
                    yield self._row(sentence)
                sentence = []
            elif sentence or not self._is_comment(line):
                sentence.append(line)
        if sentence:
            yield self._row(sentence)

    def _is_comment(self, line: RawLine) -> bool:
        mark = self._layout.comment
        return mark is not None and line.raw.startswith(mark.encode())

    def _row(self, sentence: list[RawLine]) -> tuple[int, Row | BadRow]:
        self._sentences += 1
        self.place = sentence[0].offset
        tokens: list[list[str]] = []
        for line in sentence:
            values = self._token(line)
            if isinstance(values, str):
                return sentence[0].number, line.bad(self.name, values)
            tokens.append(values)
        return sentence[0].number, tuple(" ".join(column) for column in zip(*tokens, strict=True))

    def _token(self, line: RawLine) -> list[str] | str:
        """A token's values, or what is wrong with it."""
        text, problem = text_of(line.raw, first=line.number == 1)
        if line.problem or problem:
            return line.problem or problem or ""
        parts = text.split(self._layout.separator)
        if len(parts) < self._width:
            return f"wanted {self._width} column{'s' * (self._width != 1)}, found {len(parts)}"
        values = [parts[at] for at in self._places]
        for name, value in zip(self._layout.columns, values, strict=True):
            if not value or value.split() != [value]:
                return f"column {name!r}: wanted one word, found {value!r:.80}"
        return values
