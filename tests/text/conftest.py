"""A small trained tokenizer that the tests of this room share."""

from pathlib import Path

import pytest

from textmill.text import MultilingualTokenizer, train_sentencepiece

TEXTS = [
    "The cat sleeps on the mat.", "Le chat dort sur le tapis.", "A dog runs in the garden.",
    "Un chien court dans le jardin.", "Why are you late?", "Pourquoi êtes-vous en retard ?",
    "I don't know where she lives.", "Je ne sais pas où elle habite.",
] * 4  # fmt: skip


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("spm") / "small.model"
    train_sentencepiece(TEXTS, path, vocab_size=64)
    return path


@pytest.fixture
def tokenizer(model) -> MultilingualTokenizer:
    return MultilingualTokenizer.from_file(model, source_langs={"eng"}, target_langs={"fra"})
