"""Characters of words: marks, long words, what cannot be known."""

import pytest

from textmill.data import TextRows
from textmill.errors import DataError, UserError
from textmill.text.features.spelling import Characters, FittedCharacters


def test_a_long_word_keeps_its_ends():
    characters = Characters("abcdefgh", length=7)
    (row,) = characters.table(["abcdefgh"]).tolist()
    assert row == [2, 4, 5, 6, 10, 11, 3]
    assert characters.table(["abcde"]).tolist() == [[2, 4, 5, 6, 7, 8, 3]]
    assert characters.table([]).shape == (0, 7)
    assert (characters.size, characters.pad_idx) == (12, 0)


def test_they_are_those_of_the_training_rows_that_occur_often_enough():
    rows = [{"words": "go Go"}, {"words": ["gone", "é"]}]
    assert FittedCharacters.Config(min_count=1).build(train_data=rows).known == tuple("goGneé")
    assert FittedCharacters.Config().build(train_data=rows).known == ("g", "o")


def fitted(row):
    return FittedCharacters.Config().build(train_data=[row])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Characters(["ab"]), UserError, "must be one character, but one is 'ab'"),
        (lambda: Characters("aba"), UserError, "'a' is there twice"),
        (lambda: Characters("a", length=3), UserError, "must be from 4 to 1000, but is 3"),
        (lambda: Characters("a", length=1001), UserError, "must be from 4 to 1000, but is 1001"),
        (lambda: FittedCharacters.Config(length=2), UserError, "must be from 4"),
        (
            lambda: FittedCharacters.Config(min_count=0),
            UserError,
            "characters.min_count must be at least 1",
        ),
        (
            lambda: fitted({"text": "a"}),
            DataError,
            "Row 0 of .* 'words' .* Name .* characters.colu",
        ),
        (
            lambda: fitted({"words": 3}),
            DataError,
            "Row 0, column 'words': wanted text or a list of",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_training_row_that_cannot_be_read_is_named_with_its_file_and_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"words": "a b"}\n{"words": " "}\n')
    rows = TextRows.Config(path=path, columns=("words",)).build()
    with pytest.raises(DataError, match=r"rows\.jsonl:2: column 'words'"):
        FittedCharacters.Config().build(train_data=rows)
