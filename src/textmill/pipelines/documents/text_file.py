"""A text file as a document: a line is a line, and a point high."""

from pathlib import Path

from textmill.data.line_blocks import refuse_binary
from textmill.pipelines.documents.document import Document, DocumentError, Line
from textmill.runtime.files import read_all
from textmill.text.encodings import WINDOWS

MOST_BYTES = 64 << 20
"""Of a file: a million references."""
MOST_LINES = 1 << 20
LONGEST_LINE = 1 << 20
"""Characters."""


def read_text(source: str | Path | bytes, *, name: str | None = None) -> Document:
    r"""The lines of a text file, blank ones too: UTF-8, with or without a byte order mark.

    Args:
        source: A path, or what the file holds.
        name: What errors call it; else its path.

    Raises:
        DocumentError: It cannot be read, is not UTF-8, or is too large.
        DataError: It is no text, as a PDF is none.

    Example:
        >>> [line.text for line in read_text(b"D. Knuth. 1984.\r\n\r\nE. Dijkstra.\n").lines]
        ['D. Knuth. 1984.', '', 'E. Dijkstra.']
        >>> read_text(b"Caf\xe9", name="refs.txt")  # doctest: +NORMALIZE_WHITESPACE
        Traceback (most recent call last):
        textmill.pipelines.documents.document.DocumentError: refs.txt: line 1 is not UTF-8. Make
        UTF-8 of it, as from Windows: iconv -f cp1252 -t utf-8 FILE > OTHER
    """
    if isinstance(source, bytes):
        name = name or "the text"
        content = source
        if len(content) > MOST_BYTES:
            reason = f"{len(content):,} bytes are more than the {MOST_BYTES:,} allowed"
            raise DocumentError(name, reason)
    else:
        called = name = name or str(source)

        def refuse(reason: str) -> DocumentError:
            return DocumentError(called, reason.removeprefix(f"{called}: "))

        content = read_all(Path(source), MOST_BYTES, refuse, name=name, links=True)
    refuse_binary(content[: 1 << 16], name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = content.count(b"\n", 0, error.start) + 1
        remedy = f"Make UTF-8 of it, as from Windows: iconv -f {WINDOWS} -t utf-8 FILE > OTHER"
        raise DocumentError(name, f"line {at} is not UTF-8. {remedy}") from error
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if len(lines) > MOST_LINES:
        raise DocumentError(name, f"{len(lines):,} lines are more than the {MOST_LINES:,} allowed")
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            reason = f"line {number} has {len(line):,} characters, more than {LONGEST_LINE:,}"
            raise DocumentError(name, reason)
    return Document(name, 1, [Line(line, y=n) for n, line in enumerate(lines)])
