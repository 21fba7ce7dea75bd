"""Files that are no text, told by how they begin: read as lines they would be answered as such."""

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
LEAST_BYTES = 4096
"""Of fewer, each line may well be one bad row."""


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
