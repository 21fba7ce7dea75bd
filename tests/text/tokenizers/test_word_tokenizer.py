import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.saved import change
from textmill.errors import DataError, UserError
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import WordsColumn
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.tokenizer import VocabInfo, load_tokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords, WordTokenizer

ROWS = [{"text": "Wake me up", "words": ["a", "b"]}, {"text": "wake HIM up up"}]


def test_words_are_in_the_order_of_their_first_row():
    tokenizer = FittedWords.Config().build(train_data=ROWS)
    assert tokenizer.config.words == ("wake", "me", "up", "him")
    assert tokenizer.vocab_info.size == 6
    ids = tokenizer.create_encoder().batch(["up  WAKE", "", "you\tme"])
    assert [row.tolist() for row in ids] == [[4, 2], [], [1, 3]]
    assert tokenizer.create_decoder().batch([[4, 2, 0], [], [1, 99]]) == ["up wake", "", "⁇ ⁇"]


def test_words_may_be_few_rare_or_written_as_they_are():
    assert FittedWords.Config(min_count=2).build(train_data=ROWS).config.words == ("wake", "up")
    assert FittedWords.Config(vocab_size=3).build(train_data=ROWS).config.words == ("up",)
    tokenizer = FittedWords.Config(lowercase=False).build(train_data=ROWS)
    assert tokenizer.config.words == ("Wake", "me", "up", "wake", "HIM")
    assert tokenizer.create_encoder()("Wake wake WAKE").tolist() == [2, 5, 1]
    listed = FittedWords.Config(columns=("words",)).build(train_data=ROWS[:1])
    assert listed.config.words == ("a", "b")


def test_what_has_no_word_is_refused():
    with pytest.raises(DataError, match=r"occurs 9 times. Lower tokenizer.min_count"):
        FittedWords.Config(min_count=9).build(train_data=ROWS)
    with pytest.raises(DataError, match=r"Row 1 of train_data has no column 'words' .* has: text"):
        FittedWords.Config(columns=("words",)).build(train_data=ROWS)
    with pytest.raises(DataError, match=r"Row 0, column 'text': wanted text to .*, found int"):
        FittedWords.Config().build(train_data=[{"text": 3}])
    with pytest.raises(UserError, match="min_count must be at least 1"):
        FittedWords.Config(min_count=0)
    with pytest.raises(UserError, match="vocab_size must be 3 or more"):
        FittedWords.Config(vocab_size=2)


@pytest.mark.parametrize("words", [("a b",), ("",), ("a", "a"), ("\n",)])
def test_words_that_cannot_be_are_refused(words):
    with pytest.raises(UserError, match=r"[Ww]ord"):
        WordTokenizer.Config(words=words).build()


@pytest.mark.parametrize("raw", [b"a\na\n", b"a b\n", b"\xff\n", b"\n"])
def test_changed_words_are_refused(raw, tmp_path):
    WordTokenizer.Config(words=("a",)).build().save(tmp_path)
    (tmp_path / "words.txt").write_bytes(raw)
    with pytest.raises(SavedTextError, match=r"(words\.txt|tokenizer\.json): "):
        load_tokenizer(tmp_path)


def test_an_empty_text_is_one_unknown_word():
    column = TextColumn("text", WordTokenizer.Config(words=("a",)).build())
    texts = ["", "a a", " ", "", "b"]
    encoded = column.encode(texts)
    assert [row.tolist() for row in encoded] == [[1], [2, 2], [1], [1], [1]]
    assert encoded.offsets.dtype == np.int64
    with pytest.raises(UserError, match="at least 1 token"):
        TextColumn("text", column.tokenizer, limit=0)


def test_marks_of_punctuation_can_be_words_of_their_own(tmp_path):
    rows = [{"text": "The U.S. won (twice)!"}, {"text": "it won, twice"}]
    tokenizer = FittedWords.Config(split="punctuation").build(train_data=rows)
    wanted = ("the", "u", ".", "s", "won", "(", "twice", ")", "!", "it", ",")
    assert tokenizer.config.words == wanted
    assert tokenizer.create_encoder()("Won, it?").tolist() == [6, 12, 11, 1]
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, WordTokenizer)
    assert loaded.config == tokenizer.config
    with pytest.raises(UserError, match=r"column 'words' .* Set tokenizer.split=space"):
        WordsColumn("words", tokenizer)


@pytest.mark.parametrize("split", ["space", "punctuation"])
@given(text=st.text("aÉ1_\u0130.,-'\u2014 \n\u2028\x1f\u3000", max_size=12))
def test_places_are_those_of_the_words(split, text):
    tokenizer = WordTokenizer.Config(words=(), split=split).build()
    found = [text[start:end] for start, end in tokenizer.places(text)]
    assert [word.lower() for word in found] == tokenizer.words(text)
    assert "".join(found) == "".join(text.split())


def test_marks_begin_targets_and_end_every_text(tmp_path):
    tokenizer = FittedWords.Config(marks=True).build(train_data=ROWS)
    assert tokenizer.vocab_info == VocabInfo(size=8, unk_idx=1, bos_idx=2, eos_idx=3, pad_idx=0)
    assert tokenizer.target_prefix() == [2]
    tokenizer.save(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        source, target = one.create_encoder(), one.create_encoder(mode="target")
        assert [row.tolist() for row in source.batch(["up me", "", "no"])] == [
            [6, 5, 3], [3], [1, 3],
        ]  # fmt: skip
        assert target("up").tolist() == [2, 6, 3]
        assert one.create_decoder()([2, 6, 1, 3, 0, 99]) == "up \u2047 \u2047"
    with pytest.raises(UserError, match=r"vocab_size must be 5 or more: 4 ids .* both marks"):
        FittedWords.Config(marks=True, vocab_size=4)


@pytest.mark.parametrize(
    "changed", [{"marks": "maybe"}, {"lowercase": ""}, {"split": "commas"}, {"more": "yes"}]
)
def test_changed_settings_of_words_are_refused(changed, tmp_path):
    WordTokenizer.Config(words=("a",)).build().save(tmp_path)
    change(tmp_path / "tokenizer.json", **changed)
    with pytest.raises(SavedTextError):
        load_tokenizer(tmp_path)
