"""Affixes of words: their places, digits, short words, what cannot be known."""

import pytest

from textmill.errors import DataError, UserError
from textmill.text.features.spelling import Affixes, FittedAffixes, word_shape

ROWS = [{"words": "Pages pages 12--15"}, {"words": ["rages", "98--99"]}]


def fitted(**settings):
    return FittedAffixes.Config(**settings).build(train_data=ROWS)


def test_they_are_those_of_the_training_rows_that_occur_often_enough():
    affixes = fitted(prefixes=(1,), suffixes=(2,))
    assert affixes.known == (("p", "0"), ("es", "00"), ("xx", "dd--dd"))
    assert fitted(prefixes=(), suffixes=(), min_count=1).known == (("Xxx", "xx", "dd--dd"),)
    assert (affixes.length, affixes.size, affixes.pad_idx) == (3, 1 + 3 + 6, 0)


def test_case_is_in_the_shape_alone_and_digits_are_one():
    affixes = fitted(prefixes=(1,), suffixes=(2,))
    (one, two, three) = affixes.table(["pages", "PAGES", "47--11"]).tolist()
    assert one == [4, 6, 8]
    assert two == [4, 6, 3]  # a shape that training never saw
    assert three == [5, 7, 9]
    assert affixes.table([]).shape == (0, 3)


def test_a_short_word_is_its_own_affix():
    affixes = Affixes([["ab"], ["a", "ab"], []], prefixes=[3], suffixes=[4])
    assert affixes.table(["ab", "a"]).tolist() == [[4, 6, 3], [1, 5, 3]]


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("", ""),
        ("A", "X"),
        ("iPhone7", "xXxxd"),
        ("ÉTÉ", "XX"),
        ("(1999).", "(dd)."),
        ("...", ".."),
        ("a-b-c-d-e-f-g", "x-x-x-x-x-x-"),
    ],
)
def test_shapes(word, shape):
    assert word_shape(word) == shape


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: fitted(prefixes=(0,)), UserError, r"must be at least 1, but are \[0\] and \[1, "),
        (lambda: fitted(suffixes=range(1, 17)), UserError, "may have 15 .* but has 19"),
        (lambda: fitted(min_count=0), UserError, "affixes.min_count must be 1 or more"),
        (
            lambda: Affixes([["a", "a"]], prefixes=[], suffixes=[]),
            UserError,
            "must differ, but 'a' is there twice",
        ),
        (
            lambda: Affixes([["a"]], prefixes=[1], suffixes=[]),
            UserError,
            "Affixes of 2 places are wanted, but those of 1 are known",
        ),
        (
            lambda: FittedAffixes.Config().build(train_data=[{"text": "a"}]),
            DataError,
            "Row 0 of train_data has no column 'words' .* it has: text. Name .* affixes.column",
        ),
        (
            lambda: FittedAffixes.Config().build(train_data=[{"words": 3}]),
            DataError,
            "Row 0, column 'words': wanted text or a list of words, found int",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()
