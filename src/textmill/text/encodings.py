"""The encodings that files of text may be in: which are read, and which one a file has.

A file is UTF-8 where nobody says otherwise. What is not is told; no encoding is guessed in silence.
"""

import codecs
import re

from textmill.errors import DataError, UserError

__all__ = [
    "BOM",
    "HEAD_BYTES",
    "UTF8",
    "WINDOWS",
    "checked_encoding",
    "decoded",
    "is_part",
    "is_undecodable",
    "is_utf8",
    "likely_encoding",
    "refuse_utf8",
]

UTF8 = "utf-8"
WINDOWS = "cp1252"
"""What Windows and Excel save in western Europe and America; Latin-1 but for 27 characters more."""
BOM = b"\xef\xbb\xbf"
HEAD_BYTES = 1 << 24
"""Bytes of a file that say which encoding it has."""
_UNDECODABLE = re.compile(r"bad [\w-]+: 0x")


def checked_encoding(name: str) -> str:
    """An encoding by the name that Python has for it; lines and commas are those of ASCII in it.

    Raises:
        UserError: There is no such encoding, or none of its bytes below 128 is ASCII, as in UTF-16.

    Example:
        >>> checked_encoding("UTF8"), checked_encoding("latin1"), checked_encoding("Windows-1252")
        ('utf-8', 'iso8859-1', 'cp1252')
    """
    ascii_bytes = bytes(range(128))
    try:
        found = codecs.lookup(name).name
        is_ascii = ascii_bytes.decode(found) == ascii_bytes.decode("ascii")
    except (LookupError, UnicodeError):
        found = name.lower().replace("_", "-")
        is_ascii = False
    if is_ascii:
        return UTF8 if found == "utf-8-sig" else found
    if found.startswith(("utf-16", "utf-32")):
        raise UserError(
            f"encoding: files in {found} are not read. Make UTF-8 of it: "
            f"iconv -f {found} -t utf-8 FILE > OTHER"
        )
    raise UserError(
        f"encoding: wanted the name of an encoding, as utf-8, {WINDOWS} (Windows, western Europe) "
        f"or latin-1, found {name!r}."
    )


def decoded(raw: bytes, encoding: str, *, first: bool = False) -> tuple[str, str | None]:
    r"""The text of a line, and what is wrong with its bytes; NUL is.

    Bytes that are of no character are escaped in the text.

    Args:
        raw: The line.
        encoding: From `checked_encoding`.
        first: Whether it is the file's first: UTF-16 shows there.

    Example:
        >>> decoded(b"caf\xe9", "utf-8")
        ('caf\\xe9', 'bad UTF-8: 0xe9 at byte 3 of the line (unexpected end of data)')
        >>> decoded(b"caf\xe9", "cp1252")
        ('café', None)
    """
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        is_utf16 = first and raw.startswith((b"\xff\xfe", b"\xfe\xff"))
        hint = "; so begins a file in UTF-16" if is_utf16 else ""
        called = "UTF-8" if encoding == UTF8 else encoding
        return raw.decode(encoding, "backslashreplace"), (
            f"bad {called}: 0x{raw[error.start]:02x} at byte {error.start} of the line "
            f"({error.reason}{hint})"
        )
    return text, f"NUL at byte {raw.index(0)} of the line" if "\0" in text else None


def is_part(character: str, encoding: str) -> bool:
    """Whether the byte of an ASCII character also ends a character of two bytes.

    Example:
        >>> is_part("|", "shift_jis"), is_part(",", "shift_jis"), is_part("|", "cp1252")
        (True, False, False)
    """
    pairs = (bytes([first, ord(character)]) for first in range(128, 256))
    return any(len(pair.decode(encoding, "replace")) == 1 for pair in pairs)


def is_undecodable(reason: str) -> bool:
    """Whether a row is bad since its bytes are of no character, as `decoded` says it."""
    return _UNDECODABLE.match(reason) is not None


def is_utf8(head: bytes) -> bool:
    """Whether bytes are certainly UTF-8: they have a mark, or characters that no chance makes so.

    Example:
        >>> is_utf8("Größe".encode()), is_utf8("Größe".encode("cp1252")), is_utf8(b"size")
        (True, False, False)
    """
    good, bad = _lines(head)
    return head.startswith(BOM) or (good > 0 and not bad)


def likely_encoding(head: bytes) -> str | None:
    """The encoding that a file which is not UTF-8 likely has; None where it is, or none is likely.

    Example:
        >>> likely_encoding("Größe".encode("cp1252")), likely_encoding("Größe".encode())
        ('cp1252', None)
    """
    good, bad = _lines(head)
    if bad <= good:
        return None
    try:
        head.decode(WINDOWS)
    except UnicodeDecodeError:
        return None
    return WINDOWS


def refuse_utf8(head: bytes, encoding: str, name: str) -> None:
    """Refuses UTF-8 that is to be read in another encoding: each umlaut would be two characters.

    Raises:
        DataError: It is UTF-8.
    """
    if encoding != UTF8 and is_utf8(head):
        raise DataError(
            f"{name}: wanted text in {encoding}, found UTF-8. Read it by encoding=utf-8."
        )


def _lines(head: bytes) -> tuple[int, int]:
    """How many lines with other characters than ASCII's are UTF-8, and how many are not."""
    lines = head.split(b"\n")
    cut = lines.pop() if len(lines) > 1 else b""
    others = [
        line for line in (*lines, *([cut] if len(head) < HEAD_BYTES else [])) if not line.isascii()
    ]
    good = sum(_is_good(line) for line in others)
    return good, len(others) - good


def _is_good(line: bytes) -> bool:
    try:
        line.decode(UTF8)
    except UnicodeDecodeError:
        return False
    return True
