"""A small text gives fewer pieces than were asked for: all are taken, and a line says so."""

import logging

import pytest

from textmill.errors import UserError
from textmill.text import FittedTokenizer
from textmill.text.tokenizers.fitted_tokenizer import ModelType

ROWS = [{"text": "the cat sat on the mat"}, {"text": "a dog ran by the old red house"}] * 3
KINDS = [
    *({"kind": kind} for kind in ("bpe", "byte_bpe", "words")),
    *({"model_type": model_type} for model_type in ModelType.__args__),
    {"kind": "characters"},
]


def fit(folder, **settings):
    return FittedTokenizer.Config(cache_dir=folder, **settings).build(train_data=ROWS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: next(iter(kind.values())))
def test_all_pieces_of_a_small_text_are_taken(kind, tmp_path):
    most = fit(tmp_path / "a", vocab_size=5000, **kind)
    size = most.vocab_info.size
    assert 4 < size < 400
    assert most.fingerprint() == fit(tmp_path / "b", vocab_size=size, **kind).fingerprint()
    assert fit(tmp_path / "c", vocab_size=size - 1, **kind).vocab_info.size <= size - 1


@pytest.mark.parametrize("kind", ["sentencepiece", "bpe"])
def test_a_line_says_how_many_there_are(kind, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    size = fit(tmp_path, kind=kind, vocab_size=5000).vocab_info.size
    said = f"the training text gives {size} pieces, fewer than vocab_size=5,000: all are taken"
    assert said in caplog.messages
    caplog.clear()
    fit(tmp_path, kind=kind, vocab_size=size)
    assert "all are taken" not in caplog.text


def test_an_empty_text_is_still_refused(tmp_path):
    with pytest.raises(UserError, match="training text is empty"):
        FittedTokenizer.Config(cache_dir=tmp_path).build(train_data=[{"text": " "}])
