"""Which encoding a file is in: real sentences of many languages, in the encodings used for them."""

import random
from pathlib import Path

import pytest

from textmill.text.encodings import likely_encoding

LINES = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
SENTENCES = dict(line.split(": ", 1) for line in LINES)
"""Five sentences, by their language and the encodings in which it is written."""
CASES = [
    (key.split()[0], name, text) for key, text in SENTENCES.items() for name in key.split()[1:]
]


def exported(sentences: list[str]) -> str:
    """Sentences as a support desk exports them: most cells of a row are ASCII."""
    chance = random.Random(0)
    rows = [
        f"{chance.randint(1000, 9999)},{chance.randint(10, 28)}/11,{each.replace(',', '')},open"
        for each in sentences
    ]
    return "\r\n".join(["Ticket,Created,Message,State", *rows, ""])


@pytest.mark.parametrize(("language", "encoding", "text"), CASES, ids=lambda part: str(part)[:10])
def test_a_file_of_five_sentences_is_read_as_it_was_written(language, encoding, text):
    content = exported(text.split("|"))
    raw = content.encode(encoding)
    found = likely_encoding(raw)
    assert found is not None
    assert raw.decode(found) == content
    assert likely_encoding(content.encode()) is None
    assert likely_encoding(content.encode("utf-16")) is None
    many = content.encode("utf-16-le") * 3  # without its mark
    assert many.decode(likely_encoding(many) or "utf-8") == content * 3


def test_sentences_late_in_a_long_file_of_english_tell_its_encoding():
    head = "".join(f"{n},another line that has ASCII only\r\n" for n in range(20_000))
    for encoding, text in (("cp932", SENTENCES["ja cp932 euc-jp"]), ("cp1252", "in a café|naïve")):
        assert likely_encoding((head + text.replace("|", "\r\n")).encode(encoding)) == encoding


def test_a_stray_nul_makes_no_other_encoding_of_ascii():
    assert likely_encoding(b"text,label\n" + b"some words,a\n" * 50 + b"a\0b,c\n") is None
