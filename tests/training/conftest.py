"""Fixtures: the tokenizer is trained once a session, and every test has a bench."""

import logging
import signal

import pytest
import torch

from tests.training.bench import Bench, sentences
from textmill.runtime.signals import StopSignals
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tiny.model"
    texts = [text for row in sentences() for text in row.values()]
    train_sentencepiece(texts, path, vocab_size=44)
    return MultilingualTokenizer.from_file(path, source_langs=("eng",), target_langs=("fra",))


@pytest.fixture
def bench(tokenizer, tmp_path):
    return Bench(tokenizer, tmp_path / "run")


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.getLogger("textmill").setLevel(logging.INFO)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _a_signal_from_outside_ends_the_session(monkeypatch):
    """Else the run that is at work takes it for its test's own: ``timeout 60 pytest`` sends one."""
    sending = []
    send, handle = signal.raise_signal, StopSignals._handle

    def sends(number):
        sending.append(number)
        try:
            send(number)
        finally:
            sending.pop()

    def handles(self, number, frame):
        if number not in sending:
            pytest.exit(f"{signal.Signals(number).name} from outside the tests", 128 + number)
        handle(self, number, frame)

    monkeypatch.setattr(signal, "raise_signal", sends)
    monkeypatch.setattr(StopSignals, "_handle", handles)
