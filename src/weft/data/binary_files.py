"""Files that are no text, told by their first bytes: read as lines they would be answered."""

from collections.abc import Mapping

from weft.errors import DataError

__all__ = ["BEGINNINGS", "refuse_binary"]

PACKED = "unpack it first"
BEGINNINGS: Mapping[bytes, tuple[str, str]] = {
    b"%PDF-": ("a PDF", "make text of it first, as `pdftotext FILE.pdf` does"),
    b"PK\x03\x04": ("a zip archive, as .docx, .xlsx and .odt files are", "save it as text"),
    b"\xd0\xcf\x11\xe0": ("a file of an old Office program", "save it as text"),
    b"\x1f\x8b\x08": ("a gzip file", PACKED),
    b"BZh91AY&SY": ("a bzip2 file", PACKED),
    b"\xfd7zXZ\0": ("an xz file", PACKED),
    b"\x28\xb5\x2f\xfd": ("a zstd file", PACKED),
    b"PAR1\x15": ("a Parquet file", "name the file, or its format by format=parquet"),
    b"ARROW1\0\0": ("an Arrow file", "name the file, or its format by format=arrow"),
    b"\x89PNG": ("an image", "recognize its text first"),
    b"\xff\xd8\xff": ("an image", "recognize its text first"),
    b"\x7fELF": ("a program", "name a file of text"),
    b"MZ\x90\0": ("a program", "name a file of text"),
    b"SQLite format 3\0": ("a database", "export its rows as CSV"),
}
"""How such files begin, what each is, and what to do about it."""
LEAST_BYTES, LEAST_CONTROLS = 4096, 256
"""Of fewer, each line may well be one bad row: with NUL, and with other control characters."""
LOOKED_AT = 1 << 16
"""Bytes that are counted: a share is known to 1 % then."""
CONTROLS_SHARE, LINES_SHARE = 0.05, 0.5
"""Of random bytes, and of packed ones, a tenth are such, in nearly all lines; of text in whatever
encoding hardly any, so that its lines are bad rows; a hole in a text is in one line of many."""
CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
"""Bytes that stand in no text."""


def refuse_binary(head: bytes, name: str) -> None:
    """Refuses what begins as files do that are no text.

    Args:
        head: The first bytes.
        name: What errors call the file.

    Raises:
        DataError: It is no text; says what it is, and what to do.

    Example:
        >>> refuse_binary(b"%PDF-1.7", "paper.pdf")
        Traceback (most recent call last):
        weft.errors.DataError: paper.pdf: wanted text, found a PDF: make text of it first, as \
`pdftotext FILE.pdf` does.
    """
    for beginning, (what, remedy) in BEGINNINGS.items():
        if head.startswith(beginning):
            raise DataError(f"{name}: wanted text, found {what}: {remedy}.")
    if len(head) >= LEAST_BYTES and all(b"\0" in line for line in head.split(b"\n") if line):
        raise DataError(
            f"{name}: wanted text, found NUL in each line of the first {len(head):,} bytes: if it "
            "is text in UTF-16 or UTF-32, save it as UTF-8."
        )
    looked = head[:LOOKED_AT]
    share = 1 - len(looked.translate(None, CONTROLS)) / max(len(looked), 1)
    if len(head) >= LEAST_CONTROLS and share >= CONTROLS_SHARE:
        lines = [line for line in looked.split(b"\n") if line]
        odd = sum(line.translate(None, CONTROLS) != line for line in lines)
        if odd >= LINES_SHARE * len(lines):
            raise DataError(
                f"{name}: wanted text, found a binary file: {share:.0%} of its first bytes are "
                "control characters. Make text of it with the program that wrote it."
            )
