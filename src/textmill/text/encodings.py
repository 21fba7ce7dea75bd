"""The encodings that files of text may be in: which are read, and which one a file has.

A file is read as UTF-8 unless a setting names another encoding; a guess is always reported.
"""

import codecs
import re
import unicodedata

from textmill.errors import UserError

UTF8 = "utf-8"
WINDOWS = "cp1252"
"""What Windows and Excel save in western Europe and America: Latin-1 with 27 more characters."""
BOM = b"\xef\xbb\xbf"
UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Byte order marks of UTF-16; such a file is read whatever the setting says."""
HEAD_BYTES = 1 << 24
"""Bytes of a file that say which encoding it has."""
BEYOND_ASCII = "éяあ中한"
"""Characters of which an encoding that is more than ASCII has one."""
WESTERN = (
    "ÄÖÜäöüßÀÂÇÉÈÊËÎÏÔÙÛàâçéèêëîïôùûœŒæÆøØåÅñÑáíóúÁÍÓÚãõÃÕìò¿¡ºª€£§°«»‹›„“”‚‘’–—…´·²³½¼¾±×µ®©™•\xa0"  # noqa: RUF001  # signs of texts
)
"""What texts in cp1252 have beyond ASCII: other letters and symbols say another encoding."""
USUAL_SHARE = 0.9
_ASCII, _NO_WORD = re.compile(r"[\0-\x7f]+"), re.compile(r"[\xc0-\xff]{3,}")
_UNDECODABLE = re.compile(r"bad [\w-]+: 0x")


def checked_encoding(name: str) -> str:
    """Python's name for UTF-16, or an encoding whose bytes below 128 mean what they do in ASCII.

    Example:
        >>> checked_encoding("UTF8"), checked_encoding("latin1"), checked_encoding("Windows-1252")
        ('utf-8', 'iso8859-1', 'cp1252')
    """
    ascii_bytes = bytes(range(128))
    try:
        found = codecs.lookup(name).name
        others = [character.encode(found, "ignore") for character in BEYOND_ASCII]
        is_ascii = all(beyond[0] >= 128 for beyond in others if beyond)
        is_ascii = is_ascii and ascii_bytes.decode(found) == ascii_bytes.decode("ascii")
    except (LookupError, UnicodeError):
        found = name.lower().replace("_", "-")
        is_ascii = False
    if is_ascii:
        return UTF8 if found == "utf-8-sig" else found
    if found.startswith("utf-16"):
        return "utf-16-le" if found == "utf-16" else found
    if found.startswith(("utf-32", "iso2022")):
        found = found.replace("iso2022_", "iso-2022-")
        raise UserError(
            f"encoding: files in {found} are not read. Make UTF-8 of it: "
            f"iconv -f {found} -t utf-8 FILE > OTHER"
        )
    raise UserError(
        f"encoding: wanted the name of an encoding, as utf-8, {WINDOWS} (Windows, western Europe) "
        f"or latin-1, found {name!r}."
    )


def decoded(raw: bytes, encoding: str) -> tuple[str, str | None]:
    r"""The text of a line, and what is wrong with its bytes; NUL is.

    Bytes that cannot be decoded are escaped in the text.

    Example:
        >>> decoded(b"caf\xe9", "utf-8")
        ('caf\\xe9', 'bad UTF-8: 0xe9 at byte 3 of the line (unexpected end of data)')
        >>> decoded(b"caf\xe9", "cp1252")
        ('café', None)
    """
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        called = "UTF-8" if encoding == UTF8 else encoding
        return raw.decode(encoding, "backslashreplace"), (
            f"bad {called}: 0x{raw[error.start]:02x} at byte {error.start} of the line "
            f"({error.reason})"
        )
    return text, f"NUL at byte {raw.index(0)} of the line" if "\0" in text else None


def is_undecodable(reason: str) -> bool:
    """Whether a row's error, as `decoded` words it, is about bytes that cannot be decoded."""
    return _UNDECODABLE.match(reason) is not None


def is_utf8(head: bytes, other: str = UTF8) -> bool:
    r"""Whether bytes are UTF-8, and hardly text in another encoding.

    A byte order mark says so. Else all lines must be UTF-8, and not be words in the other encoding:
    a short text in an encoding of two bytes a character is now and then UTF-8 by chance.

    Example:
        >>> is_utf8("Größe".encode()), is_utf8("Größe".encode("cp1252")), is_utf8(b"size")
        (True, False, False)
        >>> is_utf8("Größe".encode(), "cp1252"), is_utf8("模".encode("gbk"), "gbk")
        (True, False)
    """
    good, bad = _lines(head)
    if head.startswith(BOM):
        return True
    return good > 0 and not bad and (other == UTF8 or not _are_words(head, other))


def _are_words(head: bytes, encoding: str) -> bool:
    """Whether bytes are text in an encoding, all of it beyond ASCII letters that are not Latin.

    UTF-8 that is read in an encoding of Latin letters has symbols and Latin letters: "GrÃ¶ÃŸe".
    """
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)  # its end may be cut
    except UnicodeDecodeError:
        return False
    return all(
        unicodedata.category(character)[0] in "LM"
        and not unicodedata.name(character, "").startswith("LATIN")
        for character in {*text}
        if not character.isascii()
    )


def likely_encoding(head: bytes) -> str | None:
    """The likely encoding of a file that is not UTF-8; None if it is UTF-8 or none is likely.

    Nor is one given for a file that has the byte order mark of UTF-16, which needs no setting. Text
    in Latin-1 is cp1252, too.

    Example:
        >>> likely_encoding("Größe".encode("cp1252")), likely_encoding("Größe".encode())
        ('cp1252', None)
        >>> likely_encoding("Größe".encode("utf-16-le")), likely_encoding("Größe".encode("utf-16"))
        ('utf-16-le', None)
    """
    if head[:2] in UTF16_MARKS:
        return None
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[::2].count(0)}
    if (found := max(zeros, key=lambda name: zeros[name])) and zeros[found] > len(head) / 8:
        return found
    good, bad = _lines(head)
    text = head.decode(WINDOWS, "ignore")
    if bad <= good or text.encode(WINDOWS) != head:
        return None
    others = _ASCII.sub("", text)
    usual = sum(map(others.count, WESTERN)) - sum(map(len, _NO_WORD.findall(text)))
    return WINDOWS if usual >= USUAL_SHARE * len(others) else None


def _lines(head: bytes) -> tuple[int, int]:
    """How many lines with other characters than ASCII's are UTF-8, and how many are not."""
    lines = head.split(b"\n")
    cut = lines.pop() if len(lines) > 1 else b""
    others = [
        line for line in (*lines, *([cut] if len(head) < HEAD_BYTES else [])) if not line.isascii()
    ]
    good = sum(line.decode(UTF8, "ignore").encode() == line for line in others)
    return good, len(others) - good
