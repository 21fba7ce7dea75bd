"""CoNLL: a token a line in columns, a blank line after each sentence."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.row_format import LineScan, RawLine, Row, RowFormat, Scan, text_of
from weft.data.line_blocks import MAX_LINE_BYTES
from weft.errors import UserError

__all__ = ["ConllFormat", "conll_format"]

HASH = b"# "
DOCUMENT = b"-DOCSTART-"
_KEY_VALUE = re.compile(rb"# \S+ = ")


@dataclass(frozen=True)
class ConllFormat(RowFormat):
    """Sentences of tokens; made by `conll_format`.

    Attributes:
        separator: Between columns; None is any white space.
        comment: How lines before a sentence's first token begin that are no tokens; None: as
            `conll_format` says; "": no such.
        max_line_bytes: A sentence with a longer line is a bad row.
    """

    separator: str | None = None
    comment: str | None = None
    max_line_bytes: int = MAX_LINE_BYTES

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator == "" or "\n" in (self.separator or ""):
            raise UserError(
                f"separator: wanted what stands between columns of a line, found "
                f"{self.separator!r}; leave it out for any white space."
            )
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
        comment: How lines begin that are none of a sentence's tokens. Only before its first token:
            a token may begin like that. None: lines that begin with ``"# "`` and are not columns
            like the sentence's first other line (fewer or more of them, no tabs where it has tabs,
            or ``# key = value``), and all lines where there is no other; ``""``: no comments.
            Lines that begin with ``-DOCSTART-`` before a sentence are left out too.
        max_line_bytes: The longest line that is read, in bytes.

    Raises:
        UserError: A column is named by something else than a position, or the separator is none.

    Example:
        >>> import io
        >>> text = b"-DOCSTART- O\n\n# text = # 1\n#\tB\n1\tI\n"
        >>> scan = conll_format().scan(io.BytesIO(text), "a.conll")
        >>> list(scan), scan.notes.left_out
        ([(4, ('# 1', 'B I'))], 2)
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
        block: list[RawLine] = []
        for line in self.lines():
            if line.problem is None and not line.raw.strip():
                yield from self._row(block)
                block = []
            else:
                block.append(line)
        yield from self._row(block)

    def _row(self, block: list[RawLine]) -> Iterator[tuple[int, Row | BadRow]]:
        """The sentence of lines without a blank one between; none where all are left out."""
        sentence = self._sentence(block)
        self.notes.left_out += len(block) - len(sentence)
        if not sentence:
            return
        self._sentences += 1
        # Its comments are of its place: reading from here on or up to here meets whole blocks.
        self.place = block[0].offset
        tokens: list[list[str]] = []
        for line in sentence:
            values = self._token(line)
            if isinstance(values, str):
                yield sentence[0].number, line.bad(self.name, values)
                return
            tokens.append(values)
        yield sentence[0].number, tuple(" ".join(column) for column in zip(*tokens, strict=True))

    def _sentence(self, block: list[RawLine]) -> list[RawLine]:
        """The lines that are tokens."""
        like = next((x.raw for x in block if not x.raw.startswith((HASH, DOCUMENT))), None)
        begins = 0
        for at, line in enumerate(block):
            if self._is_no_token(line.raw, like):
                begins = at + 1  # whatever came before a comment was one
            elif self._layout.comment is not None or not line.raw.startswith(HASH):
                break
        return block[begins:]

    def _is_no_token(self, raw: bytes, like: bytes | None) -> bool:
        """Whether a line is left out, where ``like`` is the first that is no comment for sure."""
        if raw.split()[:1] == [DOCUMENT]:
            return True
        mark, separator = self._layout.comment, self._layout.separator
        if mark is not None:
            return mark != "" and raw.startswith(mark.encode())
        if not raw.startswith(HASH):
            return False
        if like is None or _KEY_VALUE.match(raw):
            return True
        if separator is None and b"\t" in like and b"\t" not in raw:
            return True
        by = None if separator is None else separator.encode()
        return len(raw.split(by)) != len(like.split(by))

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
