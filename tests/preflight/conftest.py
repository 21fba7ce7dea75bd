"""The folder that every test works in, and a bench that makes trainers in memory."""

import pytest

from tests.training.bench import Bench, sentences
from textmill.text import MultilingualTokenizer, train_sentencepiece


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    texts = [text for row in sentences() for text in row.values()]
    train_sentencepiece(texts, folder / "tiny.model", vocab_size=44)
    tokenizer = MultilingualTokenizer.from_file(
        folder / "tiny.model", source_langs=("eng",), target_langs=("fra",)
    )
    return Bench(tokenizer, folder / "run", valid_data=None, test_data=None)
