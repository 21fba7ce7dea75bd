"""CoNLL: a token a line in columns, a blank line after each sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from typing_extensions import override

from textmill.data.formats.row_format import Found, LinesFormat, RawLine, Scan
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.errors import UserError
from textmill.text.cells import ListCell
from textmill.text.encodings import UTF8

HASH = b"# "
DOCUMENT = b"-DOCSTART-"
_KEY_VALUE = re.compile(rb"# \S+ = ")
FIRST_LINES = 2000
"""Lines among which the usual number of columns is counted."""


@dataclass(frozen=True)
class ConllFormat(LinesFormat):
    """Sentences of tokens; made by `conll_format`.

    Attributes:
        separator: Between columns; None is any white space.
        comment: Prefix of comment lines before a sentence's first token; None: as `conll_format`
            says; "": there are none.
    """

    separator: str | None = None
    comment: str | None = None

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
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        places = [at for at in self.columns.values() if isinstance(at, int)]
        least = max(at + 1 if at >= 0 else -at for at in places)
        # So many columns make one of a position from the start and one from the end.
        same = {a - b for a in places for b in places if b < 0 <= a}
        blocks, head, usual = self.blocks(scan), list[RawLine](), 0
        for read in blocks:
            head += self.split(read)
            usual = self._usual(head[:FIRST_LINES], least, same)
            if usual or len(head) >= FIRST_LINES:
                break
        lines = chain(head, chain.from_iterable(map(self.split, blocks)))
        for block in _blocks(lines):
            sentence = self._sentence(block)
            scan.notes.left_out += len(block) - len(sentence)
            if not sentence:
                continue
            scan.place = block[0].place
            texts = [line.text() for line in sentence]
            split = [text.split(self.separator) for text, _ in texts]
            scan.record = [" ".join(column) for column in zip(*split, strict=False)] or None
            counts = [
                len(parts) for parts, (_, wrong) in zip(split, texts, strict=True) if not wrong
            ]
            size = Counter(counts).most_common(1)[0][0] if counts else 0
            # If columns are counted from the end, or all are read, one more or less is another
            # column: lines have as many as most lines. Else sentences may differ (CoNLL-2012).
            may_differ = min(places) >= 0 and min(size, usual or least) > least
            wanted = size if may_differ else usual or least
            tabs = [b"\t" in line.raw for line in sentence]
            tabbed = self.separator is None and 2 * sum(tabs) >= len(tabs)
            bad = None
            for line, parts, (_, wrong), tab in zip(sentence, split, texts, tabs, strict=True):
                bad = wrong or self._problem(parts, wanted, least, same)
                if bad is None and tabbed and not tab and len(parts) > 1:
                    bad = "wanted a tab between columns as most lines have, found spaces"
                if bad is not None:
                    yield sentence[0].number, line.bad(scan.name, bad)
                    break
            if bad is None:
                columns = ([parts[at] for parts in split] for at in places)
                yield sentence[0].number, tuple(map(ListCell, columns))

    def _usual(self, lines: Sequence[RawLine], least: int, same: set[int]) -> int:
        """The number of columns that most lines have, of those that are enough; 0 if none is."""
        texts = (line.text() for block in _blocks(lines) for line in self._sentence(block))
        counts = Counter(len(text.split(self.separator)) for text, wrong in texts if not wrong)
        enough = [count for count, _ in counts.most_common() if count >= least]
        return next((count for count in enough if count not in same), 0)

    def _sentence(self, block: list[RawLine]) -> list[RawLine]:
        like = next((x.raw for x in block if not x.raw.startswith((HASH, DOCUMENT))), None)
        begins = 0
        for at, line in enumerate(block):
            if self._is_no_token(line.raw, like):
                begins = at + 1  # whatever came before a comment was one
            elif self.comment is not None or not line.raw.startswith(HASH):
                break
        return block[begins:]

    def _is_no_token(self, raw: bytes, like: bytes | None) -> bool:
        """Whether a line is left out, where ``like`` is the first that is no comment for sure."""
        if raw.split()[:1] == [DOCUMENT]:
            return True
        mark, separator = self.comment, self.separator
        if mark is not None:
            return mark != "" and raw.startswith(mark.encode(self.encoding, "replace"))
        if not raw.startswith(HASH):
            return False
        if like is None or _KEY_VALUE.match(raw):
            return True
        if separator is None and b"\t" in like and b"\t" not in raw:
            return True
        by = None if separator is None else separator.encode()
        return len(raw.split(by)) != len(like.split(by))

    def _problem(self, parts: list[str], wanted: int, least: int, same: set[int]) -> str | None:
        count = len(parts)
        if count < least:
            return f"wanted {least} column{'s' * (least != 1)}, found {count}"
        for name, at in self.columns.items():
            value = parts[int(at)]
            if not value or value.split() != [value]:
                return f"column {name!r}: wanted one word, found {value!r:.80}"
        if count in same:
            return f"wanted {count + 1} columns, found {count}"
        if count != wanted:
            columns = f"{wanted} column{'s' * (wanted != 1)}"
            return f"wanted {columns} as most lines have, found {count}"
        return None


def _blocks(lines: Iterable[RawLine]) -> Iterator[list[RawLine]]:
    """Lines up to a blank one."""
    block: list[RawLine] = []
    for line in lines:
        if line.problem is not None or line.raw.strip():
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


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
            -1}`` by default. Each line must have as many as the others of its sentence, and if
            positions are from the end, or all columns are read, as most of the first 2,000 lines.
        separator: Between columns, ``"\\t"`` where a value may hold spaces; None: any white space,
            but a line with spaces alone is bad in a sentence of which half the lines have tabs.
        comment: Prefix of comment lines. They stand only before a sentence's first token:
            a token may begin like that. None: lines that begin with ``"# "`` and are not columns
            like the sentence's first other line (fewer or more of them, no tabs where it has tabs,
            or ``# key = value``), and all lines where there is no other; ``""``: no comments.
            Lines that begin with ``-DOCSTART-`` before a sentence are left out too.
        max_line_bytes: The longest line that is read, in bytes.
        encoding: That of the file.

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
