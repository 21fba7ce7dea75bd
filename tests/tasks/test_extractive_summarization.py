"""Extractive summaries: sentences with places, the loss by hand, and an export that agrees."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from tests.pretrained_checkpoints import save_encoder
from tests.tasks.rows import data_of, learn
from textmill.errors import UserError
from textmill.inference import Predictor
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.layers.word_embeddings import CharacterCnn
from textmill.models.readers.sentences import SentenceScorer
from textmill.tasks import evaluate
from textmill.tasks.generation import ExtractiveSummarization
from textmill.text.features.sentences import overlap
from textmill.text.features.spelling import FittedPieces, WordPieces
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

ROWS = [
    {"source": "The cat sat. Dogs bark at the moon. Films are rare.", "target": "Dogs bark."},
    {"source": ["The mat is rare.", "The cat sat on the mat."], "target": "A cat sat on a mat."},
    {"source": "Films are fabulous", "target": "x", "references": ["Fabulous films.", "Rare."]},
    {"source": "", "target": "Nothing."},
]
Data = data_of(ROWS, batch_size=3)


VARIANTS = {"one sentence": {}, "two sentences": {"sentences": 2}, "from nothing": {"own": True}}
MADE = TemporaryDirectory(prefix="textmill-encoder-")


@cache
def folder() -> Path:
    return save_encoder(Path(MADE.name) / "bert", "bert")


def make(*, own=False, **settings):
    torch.manual_seed(0)
    if own:
        pieces = FittedPieces.Config(column="source", length=8, min_count=1).build(train_data=ROWS)
        encoder, cnn = LstmEncoder.Config(hidden_dim=8), CharacterCnn.Config(dim=8, filters=8)
        config = SentenceScorer.Config(encoder=encoder, sentence_cnn=cnn, dropout=0.0)
    else:
        path = folder() / "tokenizer.json"
        tokenizer = PretrainedTokenizer(PretrainedTokenizer.Config(path=path))
        pieces = WordPieces(tokenizer, length=12, column="source")
        encoder = PretrainedEncoder.Config(path=str(folder()), dropout=0.0)
        config = SentenceScorer.Config(encoder=encoder, dropout=0.0)
    module = config.build(pieces=pieces).eval()
    settings = {"max_length": 30, **settings}
    return ExtractiveSummarization.Config(**settings).build(module=module, pieces=pieces)


def test_the_loss_is_the_cross_entropy_of_what_sentences_share():
    task = make(temperature=0.2)
    (batch,) = task.batches(Data(batch_size=9), train=True, seed=1)
    found = task.training_step(batch)
    total = 0.0
    for row in ROWS[:3]:
        encoded = task.text.encode([row], with_targets=False)["sentences"]
        ids = torch.from_numpy(encoded.values.reshape(1, -1, 12)).long()
        scores = task.module(ids, torch.tensor([ids.shape[1]]))[0]
        right = [overlap(t, task.text.references(row)) for t in task.text.sentences(row).texts]
        wanted = torch.softmax(torch.tensor(right) / 0.2, dim=0)
        total -= (wanted * scores.log_softmax(0)).sum().item()
    assert found.count == 3, "a text without a sentence has no loss"
    assert found.total.item() == pytest.approx(total, rel=1e-5)
    parts = [task.training_step(b) for b in task.batches(Data(batch_size=2), train=True, seed=1)]
    assert sum(part.total.item() for part in parts) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("own", [False, True])
def test_it_learns_which_sentences_say_most(own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = make(own=own, temperature=0.02)
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=40, lr=0.01)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    answers = [row["prediction"] for row in found.rows]
    assert answers == [
        "Dogs bark at the moon.", "The cat sat on the mat.", "Films are fabulous", "",
    ]  # fmt: skip
    assert found.values["rouge1"] == pytest.approx(
        np.mean([2 * 2 / 7, 2 * 4 / 12, 2 * 2 / 5, 0]), abs=1e-6
    )
    (answer,) = Predictor(task)([ROWS[0]["source"]])
    (sentence,) = answer.sentences
    assert ROWS[0]["source"][sentence.start : sentence.end] == sentence.text
    assert answer.score > 0.9


def test_a_summary_has_its_sentences_in_the_order_of_the_text():
    task = make(sentences=2)
    answer = Predictor(task)(ROWS[0]["source"])
    starts = [sentence.start for sentence in answer.sentences]
    assert len(starts) == 2
    assert starts == sorted(starts)
    assert answer.text == " ".join(s.text for s in answer.sentences)
    assert len(Predictor(task)("One alone.").sentences) == 1


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"task\.sentences must be at most 20"):
        make(sentences=21)
    with pytest.raises(UserError, match=r"task\.temperature must be positive"):
        make(temperature=0.0)
