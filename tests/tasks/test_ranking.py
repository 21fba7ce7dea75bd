"""Ranking: right documents over wrong ones by a margin; ties; answers about one document."""

import pytest
import torch
from torch.nn import functional as F

from tests.tasks.rows import data_of, learn
from textmill.data.column_batch import ColumnBatch
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.encoders.sequence import CnnEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.pairs import Ranker
from textmill.tasks import evaluate
from textmill.tasks.ranking import QueryDocumentRanking
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"query": "wake me", "positive": "set an alarm", "negative": "play a song now"},
    {"query": "music", "positive": "play a song now", "negative": "set an alarm"},
    {"query": "music", "positive": "play", "negative": "play"},
    {"query": "", "positive": "set an alarm", "negative": ""},
]
SMALL = WordEmbedding.Config(dim=12)
COLUMNS = ("query", "positive", "negative")

Data = data_of(ROWS, batch_size=3)


def make(dim=64, **settings):
    torch.manual_seed(0)
    tokenizer = FittedWords.Config(columns=COLUMNS).build(train_data=ROWS)
    module = Ranker.Config(
        embedding=SMALL, encoder=CnnEncoder.Config(filters=6), dim=dim, dropout=0.0
    ).build(tokenizer=tokenizer)
    return QueryDocumentRanking.Config(**settings).build(module=module, tokenizer=tokenizer)


VARIANTS = {"cosine": {}, "own vectors": {"dim": None}}


def test_the_loss_is_torchs_margin_loss_of_the_answers():
    task = make(margin=0.3)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    right, wrong = (
        torch.tensor([row[name] for row in found.rows]) for name in ("prediction", "negative_score")
    )
    expected = F.margin_ranking_loss(right, wrong, torch.ones(4), margin=0.3)
    assert found.values["loss"] == pytest.approx(expected.item(), abs=1e-5)
    assert found.values["avg_score_difference"] == pytest.approx(
        (right - wrong).mean().item(), abs=1e-5
    )
    assert found.values["num_examples"] == 4


def test_it_learns_all_but_ties_whose_loss_is_the_margin():
    task = make()
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=40, lr=0.01)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert found.values["ranking_accuracy"] == 0.75
    assert found.values["loss"] == pytest.approx(0.25, abs=0.02)
    assert found.rows[2]["prediction"] == found.rows[2]["negative_score"]
    assert (task.text.input_columns, task.text.target_columns) == (COLUMNS[:2], COLUMNS[2:])
    answers = Predictor(task)([{k: row[k] for k in COLUMNS[:2]} for row in ROWS])
    for answer, row in zip(answers, found.rows, strict=True):
        assert answer.score == pytest.approx(row["prediction"], abs=1e-5)
        assert answer.negative is None
        assert list(task.answer_row(answer)) == ["prediction"]


def test_what_cannot_be_is_refused():
    task = make()
    with pytest.raises(UserError, match=r"task.margin must be positive, but is 0"):
        QueryDocumentRanking.Config(margin=0.0)
    with pytest.raises(UserError, match=r"model.dim must be at least 1, but is 0"):
        Ranker.Config(dim=0)
    with pytest.raises(UserError, match=r"model.dropout must be from 0 to below 1"):
        Ranker.Config(dropout=1.0)
    (batch,) = task.batches(Data(batch_size=9), train=True, seed=1)
    bare = ColumnBatch(
        columns={k: batch[k] for k in COLUMNS[:2]},
        lengths={k: batch.lengths[k] for k in COLUMNS[:2]},
    )
    with pytest.raises(DataError, match="no column 'negative'; it has query, positive"):
        task.training_step(bare)
