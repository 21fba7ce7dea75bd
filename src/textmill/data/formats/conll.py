"""CoNLL: a token a line in columns, a blank line after each sentence."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.row_format import LineScan, LinesFormat, RawLine, Row, Scan
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.errors import UserError
from textmill.text.encodings import UTF8

HASH = b"# "
DOCUMENT = b"-DOCSTART-"
_KEY_VALUE = re.compile(rb"# \S+ = ")


class _ConllScan(LineScan["ConllFormat"]):
    looked_at = 100
    """Sentences that say how many columns are usual."""

    def __init__(self, stream: BinaryIO, name: str, layout: "ConllFormat") -> None:
        super().__init__(stream, name, layout)
        places = [at for at in layout.columns.values() if isinstance(at, int)]
        self._places = places
        self._least = max(at + 1 if at >= 0 else -at for at in places)
        # So many columns make one of a position from the start and one from the end.
        self._same = {a - b for a in places for b in places if b < 0 <= a}
        self._usual = self._least

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        blocks = self._without_blank_lines()
        first = [*itertools.islice(blocks, self.looked_at)]
        sizes = (self._size([self._parts(line) for line in self._sentence(b)]) for b in first)
        usable = [size for size in sizes if size >= self._least and size not in self._same]
        self._usual = Counter(usable).most_common(1)[0][0] if usable else self._least
        for block in itertools.chain(first, blocks):
            yield from self._row(block)

    def _without_blank_lines(self) -> Iterator[list[RawLine]]:
        """Lines up to a blank one."""
        block: list[RawLine] = []
        for line in self.lines():
            if line.problem is not None or line.raw.strip():
                block.append(line)
            elif block:
                yield block
                block = []
        if block:
            yield block

    def _row(self, block: list[RawLine]) -> Iterator[tuple[int, Row | BadRow]]:
        """The sentence of lines without a blank one between; none where all are left out."""
        sentence = self._sentence(block)
        self.notes.left_out += len(block) - len(sentence)
        if not sentence:
            return
        self.total += 1
        # Its comments are of its place: reading from here on or up to here meets whole blocks.
        self.place = block[0].offset
        found = [self._parts(line) for line in sentence]
        separator = self.layout.separator
        split = [
            line.text()[0].split(separator) if isinstance(parts, str) else parts
            for line, parts in zip(sentence, found, strict=True)
        ]
        self.record = [" ".join(column) for column in zip(*split, strict=False)] or None
        wanted = self._wanted(self._size(found))
        tabs = [b"\t" in line.raw for line in sentence]
        tabbed = self.layout.separator is None and 2 * sum(tabs) >= len(tabs)
        tokens: list[list[str]] = []
        for line, parts, tab in zip(sentence, found, tabs, strict=True):
            values = parts if isinstance(parts, str) else self._values(parts, wanted)
            if tabbed and not (tab or len(parts) == 1 or isinstance(values, str)):
                values = "wanted a tab between columns as other lines have, found spaces"
            if isinstance(values, str):
                yield sentence[0].number, line.bad(self.name, values)
                return
            tokens.append(values)
        yield sentence[0].number, tuple(" ".join(column) for column in zip(*tokens, strict=True))

    def _size(self, sentence: list[list[str] | str]) -> int:
        """How many columns most lines of a sentence have."""
        sizes = Counter(len(parts) for parts in sentence if not isinstance(parts, str))
        return sizes.most_common(1)[0][0] if sizes else 0

    def _wanted(self, size: int) -> int:
        """How many columns each line of a sentence must have, most of which have ``size``.

        Where columns are counted from the end, or all are read, as many as other sentences: one
        more or less is another column then. Else sentences may differ, as in CoNLL-2012.
        """
        may_differ = min(self._places) >= 0 and min(size, self._usual) > self._least
        return size if may_differ else self._usual

    def _sentence(self, block: list[RawLine]) -> list[RawLine]:
        """The lines that are tokens."""
        like = next((x.raw for x in block if not x.raw.startswith((HASH, DOCUMENT))), None)
        begins = 0
        for at, line in enumerate(block):
            if self._is_no_token(line.raw, like):
                begins = at + 1  # whatever came before a comment was one
            elif self.layout.comment is not None or not line.raw.startswith(HASH):
                break
        return block[begins:]

    def _is_no_token(self, raw: bytes, like: bytes | None) -> bool:
        """Whether a line is left out, where ``like`` is the first that is no comment for sure."""
        if raw.split()[:1] == [DOCUMENT]:
            return True
        mark, separator = self.layout.comment, self.layout.separator
        if mark is not None:
            return mark != "" and raw.startswith(mark.encode(self.layout.encoding, "replace"))
        if not raw.startswith(HASH):
            return False
        if like is None or _KEY_VALUE.match(raw):
            return True
        if separator is None and b"\t" in like and b"\t" not in raw:
            return True
        by = None if separator is None else separator.encode()
        return len(raw.split(by)) != len(like.split(by))

    def _parts(self, line: RawLine) -> list[str] | str:
        """All columns of a line, or what is wrong with it."""
        text, problem = line.text()
        return problem or text.split(self.layout.separator)

    def _values(self, parts: list[str], wanted: int) -> list[str] | str:
        """A token's values, or what is wrong with them."""
        count = len(parts)
        if count < self._least:
            return f"wanted {self._least} column{'s' * (self._least != 1)}, found {count}"
        values = [parts[at] for at in self._places]
        for name, value in zip(self.layout.columns, values, strict=True):
            if not value or value.split() != [value]:
                return f"column {name!r}: wanted one word, found {value!r:.80}"
        if count in self._same:
            return f"wanted {count + 1} columns, found {count}"
        if count != wanted:
            return f"wanted {wanted} column{'s' * (wanted != 1)} as other lines have, found {count}"
        return values


@dataclass(frozen=True)
class ConllFormat(LinesFormat):
    """Sentences of tokens; made by `conll_format`.

    Attributes:
        separator: Between columns; None is any white space.
        comment: How lines before a sentence's first token begin that are no tokens; None: as
            `conll_format` says; "": no such.
    """

    separator: str | None = None
    comment: str | None = None

    SCAN = _ConllScan

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator == "" or "\n" in (self.separator or ""):
            raise UserError(
                f"separator: wanted the delimiter of a line's columns, found "
                f"{self.separator!r}; leave it out for any white space."
            )
        for name, at in self.columns.items():
            if not isinstance(at, int):
                raise UserError(
                    f"columns: CoNLL has positions, no names; wanted a number for {name!r}, "
                    f"found {at!r}."
                )

    @override
    def scan_part(self, stream: BinaryIO, name: str) -> Scan[Any]:
        scan = super().scan_part(stream, name)
        assert isinstance(scan, _ConllScan)
        scan.looked_at = 1  # which is a good one
        return scan


def conll_format(
    columns: Mapping[str, int] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    encoding: str = UTF8,
) -> ConllFormat:
    r"""CoNLL; a row is a sentence, each of its columns the tokens' values with one space between.

    Args:
        columns: Position of each column, from 0, or from the end below 0; ``{"words": 0, "tags":
            -1}`` by default. Each line must have as many as the others of its sentence, and where
            positions are from the end, or all columns are read, as other sentences.
        separator: Between columns, ``"\\t"`` where a value may hold spaces; None: any white space,
            but a line with spaces alone is bad in a sentence of which half the lines have tabs.
        comment: How lines begin that are none of a sentence's tokens. Only before its first token:
            a token may begin like that. None: lines that begin with ``"# "`` and are not columns
            like the sentence's first other line (fewer or more of them, no tabs where it has tabs,
            or ``# key = value``), and all lines where there is no other; ``""``: no comments.
            Lines that begin with ``-DOCSTART-`` before a sentence are left out too.
        max_line_bytes: The longest line that is read, in bytes.
        encoding: What the file is in.

    Raises:
        UserError: A column is named by something else than a position, the separator is none, or
            there is no such encoding.

    Example:
        >>> import io
        >>> text = b"-DOCSTART- O\n\n# text = # 1\n#\tB\n1\tI\n"
        >>> scan = conll_format().scan(io.BytesIO(text), "a.conll")
        >>> list(scan), scan.notes.left_out
        ([(4, ('# 1', 'B I'))], 2)
    """
    places = {"words": 0, "tags": -1} if columns is None else columns
    layout = dict(places), tuple(places), max_line_bytes, separator, comment
    return ConllFormat(*layout, encoding=encoding)
