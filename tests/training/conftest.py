"""Fixtures: the tokenizer is trained once a session, and every test has a bench."""

import logging

import pytest
import torch

from tests.training.bench import Bench, sentences
from weft.runtime.disk import operations
from weft.text.multilingual import MultilingualTokenizer
from weft.text.sentencepiece import train_sentencepiece


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> MultilingualTokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tiny.model"
    texts = [text for row in sentences() for text in row.values()]
    train_sentencepiece(texts, path, vocab_size=44)
    return MultilingualTokenizer.from_file(path, source_langs=("eng",), target_langs=("fra",))


@pytest.fixture
def bench(tokenizer, tmp_path) -> Bench:
    return Bench(tokenizer, tmp_path / "run")


@pytest.fixture(autouse=True)
def _one_thread_and_no_waiting_for_the_disk(monkeypatch):
    """No power fails here: a save need not wait, which is half of a tiny run's time."""
    monkeypatch.setattr(operations, "fsync", lambda descriptor: None)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("weft").setLevel(logging.INFO)
    yield
    torch.set_num_threads(threads)
