"""Texts with masks: their ids, their answers, and the path as it is saved."""

import numpy as np
import pytest

from tests.text.test_pieces import KINDS, fitted
from textmill.errors import DataError
from textmill.text.processors.language_model import Fill, MaskedText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

WORDS = WordTokenizer.Config(words=("set", "my", "alarm")).build()


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_stands_where_its_word_stood(kind, tmp_path):
    tokenizer = fitted(kind, tmp_path)
    text = MaskedText.of(tokenizer)
    encode = tokenizer.create_encoder()
    alone = kind in {"characters", "bytes"}
    whole, dog = encode("the dog was").tolist(), encode(" dog").tolist()[:-1]
    dog = dog[alone:]  # a space is a token of its own there
    at = next(i for i in range(len(whole)) if whole[i : i + len(dog)] == dog)
    expected = [*whole[:at], text.mask_idx, *whole[at + len(dog) :]]
    assert text.masked(["the [MASK] was"]) == [expected]
    (first, two) = text.masked(["[MASK]", "[MASK] [MASK]"])
    assert first == [text.mask_idx, *encode("").tolist()]
    assert two.count(text.mask_idx) == 2
    assert len(two) == 3 + alone


def test_marks_stand_once_around_a_text(tmp_path):
    tokenizer = WordTokenizer.Config(words=("set", "my"), marks=True).build()
    text = MaskedText.of(tokenizer)
    assert text.masked(["set [MASK] my", "[MASK]"]) == [[4, 6, 5, 3], [6, 3]]


def test_a_text_without_a_mask_is_named():
    with pytest.raises(DataError) as caught:
        MaskedText.of(WORDS, column="line").masked(["set [MASK]", "set [mask]"])
    assert str(caught.value).startswith("Row 1, column 'line': has no [MASK], so there is nothing")
    with pytest.raises(DataError, match=r"Row 0, column 'text': wanted text, found 7 \(int\)"):
        MaskedText.of(WORDS).masked([7])


def test_an_answer_has_the_tokens_of_each_mask(tmp_path):
    text = MaskedText.of(WORDS)
    ids, scores = np.array([[3, 4], [4, 2]]), np.array([[0.5, 0.25], [0.75, 0.125]])
    (masks,) = text.decode([(ids, scores)])
    assert masks == (
        (Fill("my", 0.5), Fill("alarm", 0.25)),
        (Fill("alarm", 0.75), Fill("set", 0.125)),
    )
    answer = text.filled("Set [MASK]  [MASK]!", masks)
    assert str(answer) == answer.text == "Set my  alarm!"
    assert answer.score == 0.375


def test_a_filled_space_is_kept_where_spaces_are_tokens(tmp_path):
    for kind, expected in [("characters", "the dog"), ("byte_bpe", "thedog")]:
        text = MaskedText.of(fitted(kind, tmp_path))
        answer = text.filled("the[MASK]dog", ((Fill(" ", 1.0),),))
        assert answer.text == expected
