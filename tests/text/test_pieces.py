"""What ids are, of every kind of tokenizer: marks, text, beginnings of words."""

import pytest

from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.tokenizer import pieces_of

WORDS = "unhappy happiest dogs day days was wash it its 1999 1990 the then there a an some"
TEXTS = [f"{one} {two}, the dog {two}." for one in WORDS.split() for two in WORDS.split()]
KINDS = {"bpe": 65, "byte_bpe": 300, "sentencepiece": 42, "characters": 100, "bytes": 260}


def fitted(kind, tmp_path):
    config = FittedTokenizer.Config(kind=kind, vocab_size=KINDS[kind], cache_dir=tmp_path)
    return config.build(train_data=[{"text": text} for text in TEXTS])


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_what_white_space_divides(kind, tmp_path):
    tokenizer = fitted(kind, tmp_path)
    pieces, decoder = pieces_of(tokenizer), tokenizer.create_decoder()
    text = "the unhappiest dog was 1909"
    ids = [i for i in tokenizer.create_encoder()(text).tolist() if pieces.plain[i]]
    words: list[list[int]] = []
    for number in ids:
        if pieces.begins[number] or not words:
            words.append([])
        words[-1].append(number)
    assert len(ids) > len(words)
    found = [decoder(word).strip() for word in words]
    assert found == text.split()


@pytest.mark.parametrize("kind", KINDS)
def test_marks_and_the_unknown_are_no_text(kind, tmp_path):
    tokenizer = fitted(kind, tmp_path)
    info, pieces = tokenizer.vocab_info, pieces_of(tokenizer)
    assert len(pieces) == info.size
    marks = {info.pad_idx, info.unk_idx, info.bos_idx, info.eos_idx}
    assert {i for i in range(info.size) if not pieces.plain[i]} == marks


def test_tags_of_languages_are_no_text(tmp_path):
    config = FittedTokenizer.Config(
        kind="bpe", vocab_size=65, source_langs=("eng", "fra"), cache_dir=tmp_path
    )
    tokenizer = config.build(train_data=[{"text": text} for text in TEXTS])
    tag = int(tokenizer.create_encoder(lang="fra")("dog")[0])
    assert tag >= 65
    assert not pieces_of(tokenizer).plain[tag]
