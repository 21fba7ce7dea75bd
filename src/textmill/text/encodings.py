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
_LIKELY = (
    "utf-16-le utf-16-be cp1252 mac-roman cp1250 iso8859-2 cp1257 cp1258 cp1254 cp1253 cp1251 "
    "koi8-r cp1255 cp1256 cp874 cp932 euc-jp gb18030 big5hkscs cp949"
)
LIKELY = _LIKELY.split()
"""Encodings that are told apart: those in which programs in the countries of their languages save.
Each has all characters of its narrower siblings, as cp932 of Shift-JIS and gb18030 of GBK."""
LOOKED_AT = 200_000
"""Bytes of lines beyond ASCII that tell an encoding; five sentences do."""
WESTERN = "äöüÄÖÜßàâçéèêëîïôùûÉœæøåñáíóúãõ’“”„‘–…€£°§«»©®™"  # noqa: RUF001  # signs of texts
FEW = 4
"""Fewer characters beyond ASCII tell hardly anything; they are cp1252 if it makes such of them."""
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
    in Latin-1 is cp1252, too. chardet tells which of `LIKELY` it is, by the letters that follow
    each other in some fifty languages.

    Example:
        >>> likely_encoding("Größe".encode("cp1252")), likely_encoding("Größe".encode())
        ('cp1252', None)
        >>> (
        ...     likely_encoding("お問い合わせ内容".encode("cp932")),
        ...     likely_encoding("Größe".encode("utf-16")),
        ... )
        ('cp932', None)
    """
    if head[:2] in UTF16_MARKS:
        return None
    good, bad = _lines(head)
    if b"\0" not in head:
        if bad <= good:
            return None
        # Few others say whether it is English, many would hide the language of the few.
        beyond = b"\n".join(line for line in head.split(b"\n") if not line.isascii())
        others = b"\n".join(line for line in head[:LOOKED_AT].split(b"\n") if line.isascii())
        head = b"\n".join([beyond, others[: len(beyond) // 2]])
        signs = [sign for sign in beyond.decode(WINDOWS, "replace") if not sign.isascii()]
        if len(signs) < FEW and {*signs} <= {*WESTERN}:
            return WINDOWS
        if len(signs) == 1:  # it may be damage
            return None
    import chardet  # it takes a twentieth of a second

    is_ascii, head = head.isascii(), head[:LOOKED_AT]
    found = chardet.detect(
        head, include_encodings=[*LIKELY, UTF8], compat_names=False, no_match_encoding=UTF8
    )["encoding"]
    if found in (None, UTF8):
        return None
    if is_ascii and not found.startswith("utf-16"):  # a stray NUL
        return None
    # Of encodings in which a text is the same, the usual one.
    is_same = head.decode(found, "replace") == head.decode(WINDOWS, "replace")
    return WINDOWS if is_same else found


def _lines(head: bytes) -> tuple[int, int]:
    """How many lines with other characters than ASCII's are UTF-8, and how many are not."""
    lines = head.split(b"\n")
    cut = lines.pop() if len(lines) > 1 else b""
    others = [
        line for line in (*lines, *([cut] if len(head) < HEAD_BYTES else [])) if not line.isascii()
    ]
    good = sum(line.decode(UTF8, "ignore").encode() == line for line in others)
    return good, len(others) - good
