"""Passages: tokens of any tokenizer know which characters they are of."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.text.conftest import TEXTS
from textmill.text import FittedTokenizer
from textmill.text.features.passages import read_passages
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer
from textmill.text.tokenizers.fitted_tokenizer import Kind
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [{"source": a, "target": b} for a, b in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
SIZES = dict.fromkeys(Kind.__args__, 64) | {"words": 99, "bytes": 260}
SIZES["byte_bpe"] = 300


@pytest.fixture(scope="module", params=[*Kind.__args__, "fitted_words"])
def tokenizer(request, tmp_path_factory):
    if request.param == "fitted_words":
        columns = ("source", "target")
        return FittedWords.Config(columns=columns, split="punctuation").build(train_data=ROWS)
    cache = tmp_path_factory.mktemp("cache")
    config = FittedTokenizer.Config(
        kind=request.param, vocab_size=SIZES[request.param], cache_dir=cache
    )
    return config.build(train_data=ROWS)


def test_tokens_are_the_parts_of_a_known_text(tokenizer):
    for text, passage in zip(TEXTS, read_passages(tokenizer, TEXTS), strict=True):
        assert len(passage) == len(passage.ids) == len(passage.places)
        assert passage == tuple(text[start:end] for start, end in passage.places)


PARTS = {
    "sentencepiece": "t he g g ard en .",  # the mark of a word's beginning stands for its first one
    "bpe": "t he g g ard en .",
    "characters": "t h e g a r d e n .",
}


@pytest.mark.parametrize("kind", PARTS)
def test_pieces_of_a_word_are_its_parts(kind, tmp_path):
    config = FittedTokenizer.Config(kind=kind, vocab_size=SIZES[kind], cache_dir=tmp_path)
    (passage,) = read_passages(config.build(train_data=ROWS), ["the garden."])
    assert " ".join(passage) == PARTS[kind]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
def test_every_character_is_in_a_token_and_places_rise(tokenizer, texts):
    for text, passage in zip(texts, read_passages(tokenizer, texts), strict=True):
        starts, ends = ([place[i] for place in passage.places] for i in range(2))
        assert starts == sorted(starts)
        assert ends == sorted(ends)
        covered = {at for start, end in passage.places for at in range(start, end)}
        assert covered == {at for at, character in enumerate(text) if not character.isspace()}
        assert all(token and token.split() == [token] for token in passage)
        assert all(0 <= number < tokenizer.vocab_info.size for number in passage.ids)


@pytest.mark.parametrize("kind", ["sentencepiece", "bpe"])
def test_pieces_are_those_of_the_whole_text(kind, tmp_path):
    config = FittedTokenizer.Config(kind=kind, vocab_size=SIZES[kind], cache_dir=tmp_path)
    tokenizer = config.build(train_data=ROWS)
    whole = [row[:-1].tolist() for row in tokenizer.create_encoder().batch(TEXTS)]
    assert [list(passage.ids) for passage in read_passages(tokenizer, TEXTS)] == whole


def test_a_word_of_very_many_pieces_takes_no_square_of_time():
    start = time.process_time()
    (passage,) = read_passages(ByteTokenizer.Config().build(), ["ab " + "x" * 50_000])
    assert time.process_time() - start < 1  # 0.05 s; its beginnings would be 1,250,000,000 bytes
    assert passage[:2] == ("a", "b")
    assert passage.places[2:] == [(at, at + 1) for at in range(3, 50_003)]
