"""A small text processor, rows for it, and a cache of the test's own."""

import random

import pytest

from textmill.data.rows import Rows
from textmill.data.store import tokens
from textmill.text.processors.seq2seq import Seq2SeqText
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece

WORDS = [
    "le",
    "chat",
    "dort",
    "the",
    "cat",
    "sleeps",
    "où",
    "est",
    "la",
    "gare",
    "where",
    "is",
    "station",
    "été",
    "ça",
]


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "spm.model"
    train_sentencepiece([" ".join(WORDS)] * 9, path, vocab_size=31)
    return Seq2SeqText(MultilingualTokenizer.from_file(path), max_source_length=12)


@pytest.fixture(scope="session")
def rows():
    draw = random.Random(5)
    made = [
        {side: " ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for side in ("source", "target")}
        for _ in range(500)
    ]
    return Rows({side: [row[side] for row in made] for side in ("source", "target")})


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Stores go to ``tmp_path``; all rows but a hundred characters are worth one."""
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path))
    monkeypatch.setattr(tokens, "LEAST_CHARACTERS", 100)
    monkeypatch.setattr(tokens, "CHUNK_ROWS", 64)
    return tmp_path
