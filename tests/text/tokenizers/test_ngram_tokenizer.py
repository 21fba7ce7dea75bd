import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from tests.text.saved import change
from textmill.errors import DataError, UserError
from textmill.text.columns.token_ids import TextColumn
from textmill.text.metadata import SavedTextError
from textmill.text.ragged import Ragged
from textmill.text.tokenizers import ngram_tokenizer as ngrams
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams, NgramTokenizer, Orders
from textmill.text.tokenizers.tokenizer import VocabInfo, load_tokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords

TEXTS = ["Wake me up!", "wake us  up", "Up, up and away.", "don't"]
SPLIT = re.compile(r"\w+|[^\w\s]").findall
ROWS = [{"text": text} for text in TEXTS]


def fit(rows=ROWS, **settings):
    return FittedNgrams.Config(**settings).build(train_data=rows)


def known(tokenizer, text):
    """The n-grams of a text that have an id."""
    decode = tokenizer.create_decoder()
    return [decode([i]) for i in tokenizer.create_encoder()(text).tolist()]


def test_words_and_marks_and_what_begins_a_text_are_ngrams():
    tokenizer = fit(characters=(1, 0), shapes=0)
    assert sorted(known(tokenizer, "WAKE up, him")) == [" wake", ",", "up", "up ,", "wake"]
    assert tokenizer.words == tokenizer.vocab_info.size - 2
    assert sorted(known(fit(characters=(1, 0), words=3, shapes=0), "us up and")) == [
        *("and", "up", "up and", "us", "us up")
    ]


def test_shapes_tell_how_words_are_written_but_small_letters_alone():
    rows = [
        {"text": text}
        for text in ["Ann met NATO in B52 on", "Tom met", "\u65e5\u672c \u05d0 \u0939\u093f ok"]
    ]
    settings = {"words": 1, "characters": (1, 0)}

    def shapes(text, most):
        found = known(fit(rows, shapes=most, **settings), text)
        return sorted(each for each in found if each.strip(" ") != each.lower())

    assert shapes("Ann met NATO", 2) == [" UL", "L U", "U", "UL", "UL L"]
    assert shapes("in B52 on", 2) == ["L UN", "UN", "UN L"]
    assert shapes("ann met nato \u65e5\u672c \u0939\u093f", 2) == []
    assert shapes("Ann met NATO", 1) == ["U", "UL"]
    assert {" UL L", "UL L U"} < {*shapes("Ann met NATO", 3)}


def test_ids_go_from_words_to_characters_each_from_the_frequent_to_the_rare():
    tokenizer = fit()
    ids = tokenizer.create_encoder()("up").tolist()
    assert ids == sorted(ids)
    assert ids[0] == 2
    assert [i < 2 + tokenizer.words for i in ids[:3]] == [True, True, False]
    of_words, others = np.split(tokenizer.weights[2:], [tokenizer.words])
    assert (np.diff(of_words) >= 0).all()
    assert (np.diff(others) >= 0).all()
    assert tokenizer.weights[:2].tolist() == [0, 0]
    assert tokenizer.weights[2] == pytest.approx(math.sqrt(1 + math.log(5 / 4)))


def test_words_and_weights_are_those_of_scikit_learn():
    tokenizer = fit(characters=(1, 0), words=1, shapes=0)
    wanted = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]").fit(TEXTS)
    ids = range(2, tokenizer.vocab_info.size)
    found = dict(zip(tokenizer.create_decoder().batch([[i] for i in ids]), ids, strict=True))
    assert found.keys() == wanted.vocabulary_.keys()
    for word, at in wanted.vocabulary_.items():
        assert tokenizer.weights[found[word]] ** 2 == pytest.approx(wanted.idf_[at], rel=1e-5)


def test_characters_are_those_of_scikit_learn():
    tokenizer = fit(words=0, shapes=0, characters=(2, 4))
    wanted = TfidfVectorizer(
        analyzer="char_wb",
        ngram_range=(2, 4),
        preprocessor=lambda text: " ".join(SPLIT(text.lower())),
    ).fit(TEXTS)
    assert {*known(tokenizer, " ".join(TEXTS))} == {*wanted.vocabulary_}


def test_few_or_frequent_ones_alone_may_be_known():
    assert known(fit(characters=(1, 0), vocab_size=3), "wake up") == ["up"]
    assert known(fit(characters=(1, 0), min_count=3), "wake up") == ["up"]
    both = fit([{"a": "x", "b": "y"}], columns=("a", "b"), characters=(1, 0))
    assert sorted(known(both, "z y x")) == ["x", "y"]
    assert both.rows == 2


def test_rows_are_counted_in_parts_and_rare_ones_forgotten_where_there_are_too_many(monkeypatch):
    whole = fit()
    monkeypatch.setattr(ngrams, "ROWS", 1)
    parts = fit()
    assert known(parts, "wake me up") == known(whole, "wake me up")
    assert parts.weights.tolist() == whole.weights.tolist()
    monkeypatch.setattr(ngrams, "MOST", 70)
    rare = fit()
    assert "up" in known(rare, "up")
    assert "and" in known(whole, "and")
    assert not known(rare, "and")


def test_what_has_no_ngram_is_refused():
    with pytest.raises(DataError, match=r"has none that 9 rows have. Lower min_count"):
        fit(min_count=9)
    with pytest.raises(DataError, match=r"has no column 'title' to take n-grams from; it has: te"):
        fit(columns=("title",))
    with pytest.raises(DataError, match=r"Row 1, column 'text': wanted text to .*, found int"):
        fit([{"text": "a"}, {"text": 3}])
    with pytest.raises(DataError, match="half of a surrogate pair"):
        fit([{"text": "\ud800"}])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": 0}, "^min_count must be at least 1, but is 0"),
        ({"words": -1}, "^words must be at least 0, but is -1"),
        ({"characters": (0, 3)}, r"^characters must be the fewest .* but is \[0, 3\]"),
        ({"shapes": -1}, "^shapes must be at least 0, but is -1"),
        ({"words": 0, "characters": (1, 0)}, r"\[1,0\] is for none, where there are n-grams of"),
        ({"vocab_size": 2}, "^vocab_size must be 3 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        FittedNgrams.Config(**settings)


def test_saved_ngrams_come_back(tmp_path):
    tokenizer = fit(words=3, shapes=1, characters=(1, 2), vocab_size=40)
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, NgramTokenizer)
    assert loaded.vocab_info == tokenizer.vocab_info == VocabInfo(40, 1, -1, -1, 0)
    assert (loaded.words, loaded.rows) == (tokenizer.words, 4)
    assert loaded.orders == Orders(words=3, shapes=1, characters=(1, 2))
    assert loaded.weights.tolist() == tokenizer.weights.tolist()
    for text in TEXTS:
        assert known(loaded, text) == known(tokenizer, text)


@pytest.mark.parametrize(
    ("settings", "lines", "message"),
    [
        ({"rows": 0}, None, "must be those of 1 to 0 rows"),
        ({"words": 99}, None, "wanted 99 n-grams of words"),
        ({"longest": -1}, None, "cannot have at most -1 words"),
        ({}, "1 a\n1 a\n", "each n-gram once"),
        ({}, "a\n", "invalid literal"),
    ],
)
def test_changed_files_are_refused(tmp_path, settings, lines, message):
    fit(characters=(1, 0)).save(tmp_path)
    change(tmp_path / "tokenizer.json", **({"words": lines.count("\n")} if lines else {}))
    change(tmp_path / "tokenizer.json", **settings)
    if lines:
        (tmp_path / "ngrams.txt").write_text(lines)
    with pytest.raises(SavedTextError, match=message):
        load_tokenizer(tmp_path)


def test_a_text_without_any_is_one_unknown_token():
    column = TextColumn("text", fit())
    assert [row.tolist() for row in column.encode(["", "日本"])] == [[1], [1]]


def test_rows_of_any_number_of_ngrams_share_a_batch():
    assert TextColumn("text", fit()).sorted is False
    words = FittedWords.Config().build(train_data=ROWS)
    assert TextColumn("text", words).sorted is True


PIECES = st.lists(
    st.sampled_from([*"aAb ,!_", "ab", "  ", "up", "\u00e9", "\u0130", "\n"]), max_size=12
)


@pytest.mark.parametrize(
    "orders",
    [
        Orders(2, 2, (2, 5)),
        *(
            pytest.param(orders, marks=pytest.mark.slow)
            for orders in (Orders(0, 0, (1, 2)), Orders(3, 1, (3, 3)))
        ),
    ],
)
@given(texts=st.lists(PIECES.map("".join), max_size=6), size=st.integers(0, 3))
def test_a_vocabulary_gives_what_counting_finds(orders, texts, size):
    rows = [{"text": text} for text in ["a B Up", "ab, B!", "\u00e9a a"]]
    tokenizer = fit(rows, **orders._asdict(), vocab_size=12)
    of_words, of_characters = tokenizer.numbers()
    numbers = (lambda ngram: of_words.get(ngram, -1)), (lambda ngram: of_characters.get(ngram, -1))
    encoder = tokenizer.create_encoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "KEPT", size)
        patch.setattr(ngrams, "BLOCK", 2)
        for some in (texts, texts[:1], [*texts, *texts]):
            counted = Ragged.concatenate(ngrams.ngrams_of(some, numbers, orders))
            assert encoder.batch(some) == counted
            assert len(encoder._known) <= max(size, 1)
    assert known(tokenizer, "b" * 1_000) == known(tokenizer, "b" * 1_000)
    encoder("b" * 1_000)
    assert "b" * 1_000 not in encoder._known


def test_ids_without_an_order_are_not_read_back_as_a_text():
    rows = [{"text": "a b Up"}]
    tokenizer = fit(rows, **Orders(1, 1, (2, 2))._asdict(), vocab_size=12)
    assert TextColumn("text", tokenizer).cells([[5, 4]], ()) == ()
