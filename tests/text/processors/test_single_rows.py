"""A single row is encoded in a way of its own, which gives what a batch of it gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.text.cells import ListCell
from textmill.text.columns.column import padded_columns
from textmill.text.columns.inputs import text_columns, word_columns
from textmill.text.columns.labels import TagsColumn, label_column
from textmill.text.columns.numbers import Numbers
from textmill.text.columns.token_ids import TextColumn
from textmill.text.features.labels import Labels
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.processors.tagging import TaggingText
from textmill.text.processors.texts import LabelText
from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

LABEL = {"label": label_column(Labels(["ham", "spam"]))}
WORDS = WordTokenizer.Config(words=("wake", "me", "up")).build()
LETTERS = CharacterTokenizer.Config(characters="wakemup ").build()
NGRAMS = FittedNgrams.Config().build(train_data=[{"text": "wake me up"}, {"text": "up, up"}])


def classifier(tokenizer=WORDS, *, kind=LabelText, **beside):
    columns = text_columns(tokenizer, max_length=4, **beside)
    return kind(columns, LABEL)


def same(text, row):
    """Whether the row is encoded alone, and as a batch of it."""
    alone = text.encode_one(row)
    if alone is None:
        return False
    batch = padded_columns(text.encode([row], with_targets=False), text.all, [0], least=1)
    for found, wanted in zip(alone, batch, strict=True):
        assert found.keys() == wanted.keys()
        for role, array in wanted.items():
            np.testing.assert_array_equal(found[role], array, strict=True)
    return True


@pytest.mark.parametrize("tokenizer", [WORDS, LETTERS])
@given(text=st.lists(st.sampled_from(["wake", "up", "no", ",", " ", "W", "é"])).map(" ".join))
def test_a_row_alone_is_a_batch_of_it(tokenizer, text):
    plain, wide = classifier(tokenizer), classifier(tokenizer, ngrams=NGRAMS)
    length = len(plain.encode([{"text": text}], with_targets=False)["text"].values)
    has_ngrams = len(NGRAMS.create_encoder()(text)) > 0
    # A text without a word is one unknown one, which only a batch knows.
    short = length <= 4 and (tokenizer is LETTERS or bool(text.split()))
    assert same(plain, {"text": text}) == short
    assert same(wide, {"text": text}) == (short and has_ngrams)


TAGS = {"tags": TagsColumn(Labels(["O", "B"], column="tags", multiple=True))}
LENGTHS = {"prefixes": [2], "suffixes": [1]}
SPELLING = {
    "characters": Characters("wake", length=9, column="text"),
    "affixes": Affixes([["wa", "up"], ["e"], ["xx"]], **LENGTHS, column="text"),
}


@pytest.mark.parametrize("beside", [{}, SPELLING])
@given(words=st.lists(st.sampled_from(["wake", "up", "a", "Wakefulness", "\u00e9"]), max_size=6))
def test_words_alone_are_a_batch_of_them(beside, words):
    tagger = TaggingText(word_columns(WORDS, column="text", max_length=4, **beside), TAGS)
    for value in (words, " ".join(words), ListCell(words)):
        assert same(tagger, {"text": value}) == (0 < len(words) <= 4)


def test_two_texts_alone_are_a_batch_of_them():
    columns = {role: TextColumn(role, WORDS) for role in ("text1", "text2")}
    assert same(LabelText(columns, LABEL), {"text1": "wake up", "text2": "me", "more": 1})


@pytest.mark.parametrize("value", ["", [], ["wake"], 7, None, b"wake", "a\ud800", "wake " * 5])
def test_what_is_no_short_text_is_left_to_encode(value):
    assert classifier(ngrams=NGRAMS).encode_one({"text": value}) is None


def test_a_text_processor_of_ones_own_is_asked_as_it_is():
    class Turned(LabelText):
        def encode(self, rows, **how):
            return super().encode([{"text": row["text"][::-1]} for row in rows], **how)

    class Loud(TextColumn):
        def encode(self, values):
            return super().encode([value.lower() for value in values])

    assert classifier(kind=Turned).encode_one({"text": "wake"}) is None
    assert LabelText({"text": Loud("text", WORDS)}, LABEL).encode_one({"text": "w"}) is None
    numbers = Numbers("dense", [1.0], [1.0])
    assert classifier(dense=numbers).encode_one({"text": "wake", "dense": "1"}) is None
