"""Affixes of words: their places, digits, short words, what cannot be known."""

import pytest

from textmill.errors import UserError
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
        ("", ""), ("A", "X"), ("iPhone7", "xXxxd"), ("ÉTÉ", "XX"), ("(1999).", "(dd)."),
        ("...", ".."), ("a-b-c-d-e-f-g", "x-x-x-x-x-x-"),
    ],
)  # fmt: skip
def test_shapes(word, shape):
    assert word_shape(word) == shape


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: fitted(prefixes=(0,)), r"must be at least 1, but are \[0\] and \[1, "),
        (lambda: fitted(suffixes=range(1, 17)), "may have 15 .* but has 19"),
        (lambda: fitted(min_count=0), "affixes.min_count must be at least 1"),
        (lambda: Affixes([["a", "a"]], prefixes=[], suffixes=[]), "must differ, but 'a' is there"),
        (lambda: Affixes([["a"]], prefixes=[1], suffixes=[]), "Affixes of 2 places are wanted"),
    ],
)
def test_what_cannot_be_is_refused(make, text):
    with pytest.raises(UserError, match=text):
        make()
