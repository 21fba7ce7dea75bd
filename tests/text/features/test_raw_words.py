"""How texts that were typed are divided: as the data whose words are known."""

import copy
import time

import pytest

from textmill.text.cells import DividedText
from textmill.text.features.raw_words import RawWords
from textmill.text.features.slots import places_of

TREEBANK = "I live in New York . Do n't go ( please ) , J. 's dog barked ... u.s. inc. \" -lrb- mr."
WORDS = RawWords(dict.fromkeys([*TREEBANK.lower().split(), *map(str, range(300))]), lowercase=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I live in New York.", "I live in New York ."),
        (
            "Don\u2019t go (please), Smith's \"dog\" barked...",
            "Do n\u2019t go ( please ) , Smith 's \" dog \" barked ...",
        ),
        ("Ask K. Ito of the U.S. at 3.5,\tMr. Zed", "Ask K. Ito of the U.S. at 3.5 , Mr. Zed"),
        ("(..).", "( . . ) ."),
        ("n't", "n't"),
        ("what?!", "what?!"),  # signs that the data does not have
    ],
)  # fmt: skip
def test_a_typed_text_has_the_words_of_a_treebank_where_they_are(text, words):
    found = WORDS.divided(text)
    assert found == text
    assert [text[start:end] for start, end in places_of(found)] == words.split()


def test_a_text_that_was_divided_before_stays_as_it_is():
    for text in ("Zed Inc., said . I", "New York", ""):
        assert type(WORDS.divided(text)) is str


def test_data_that_leaves_signs_at_its_words_divides_nothing():
    known = [f"word{letter}{sign}" for letter in "abcdefgh" for sign in ("", ".", ",")]
    for more in ([], [".", ",", "-"]):
        words = RawWords(dict.fromkeys([*known, *more]), lowercase=False)
        assert type(words.divided("Knuth, D. (1984). The-")) is str


def test_a_copy_of_a_divided_text_is_divided_alike():
    found = copy.deepcopy(WORDS.divided("New York."))
    assert isinstance(found, DividedText)
    assert (found, found.parts) == ("New York.", ("New", "York", "."))
    assert found.places == ((0, 3), (4, 8), (8, 9))


@pytest.mark.parametrize(
    "text", ["(" * 300_000 + "a", "a" + ")." * 150_000, "'s" * 150_000, "a's" * 100_000]
)
def test_no_text_takes_long(text):
    start = time.monotonic()
    WORDS.divided(text)
    assert time.monotonic() - start < 5
