"""Embedding: near vectors for texts that belong together, or are alike; answers are vectors."""

import itertools
import json

import numpy as np
import pytest
import torch

from tests.tasks.rows import data_of, evaluated, learn
from textmill.data.column_batch import ColumnBatch
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.embedding_losses import CoSent, CosineSimilarity, MultipleNegativesRanking
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.pairs import SentenceEncoder
from textmill.tasks import embedding
from textmill.tasks.embedding import TextEmbedding
from textmill.text.processors.texts import Embedded
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"text1": "wake me", "text2": "set an alarm", "wrong": "wake an owl", "score": "5"},
    {"text1": "music", "text2": "play a song now", "wrong": "music is bad", "score": 4},
    {"text1": "a plane", "text2": "set an alarm", "wrong": "a plain", "score": "0.5"},
    {"text1": "it rains", "text2": "wet", "wrong": "it reigns", "score": "2"},
    {"text1": "", "text2": "nothing said", "wrong": "an owl", "score": "0"},
]
COLUMNS = ("text1", "text2", "wrong")
PLAIN = AveragingEncoder.Config(word_dropout=0.0)

Data = data_of(ROWS, batch_size=3)


def make(encoder=PLAIN, normalize=None, **settings):
    torch.manual_seed(0)
    tokenizer = FittedWords.Config(columns=COLUMNS).build(train_data=ROWS)
    module = SentenceEncoder.Config(
        embedding=WordEmbedding.Config(dim=12), encoder=encoder, normalize=normalize
    ).build(tokenizer=tokenizer)
    return TextEmbedding.Config(**settings).build(module=module, tokenizer=tokenizer)


VARIANTS = {
    "negatives": {},
    "wrong texts": {"negative": "wrong", "loss": MultipleNegativesRanking.Config(symmetric=True)},
    "cosent": {"loss": CoSent.Config(), "encoder": LstmEncoder.Config(hidden_dim=4)},
    "cosines": {"loss": CosineSimilarity.Config(), "span": (0.0, 5.0), "normalize": False},
}


@pytest.mark.parametrize("name", ["negatives", "wrong texts"])
def test_right_texts_become_the_nearest(name):
    task = make(**VARIANTS[name])
    assert evaluated(task, Data()).values["mrr"] < 0.8
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=40, lr=0.02)
    found = evaluated(task, Data())
    assert found.values["recall_at_1"] == found.values["mrr"] == 1
    for row in found.rows if name == "wrong texts" else ():
        assert row["negative_similarity"] < row["similarity"]


@pytest.mark.parametrize("name", ["cosent", "cosines"])
def test_cosines_become_as_scores_say(name):
    task = make(**VARIANTS[name])
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=80, lr=0.02)
    found = evaluated(task, Data())
    assert {*found.values} == {"loss", "pearson", "spearman"}
    assert found.values["spearman"] == 1
    if name == "cosines":
        assert found.rows[0]["similarity"] == pytest.approx(1, abs=0.1)
        assert found.rows[3]["similarity"] == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize("name", VARIANTS)
def test_an_evaluation_tells_the_cosine_of_what_is_predicted(name):
    task = make(**VARIANTS[name])
    vectors = {
        row[column]: answer.vector
        for column in COLUMNS
        for row, answer in zip(ROWS, Predictor(task)([row[column] for row in ROWS]), strict=True)
    }
    shown = {"similarity": "text2"}
    if name == "wrong texts":
        shown["negative_similarity"] = "wrong"
    for row, told in zip(ROWS, evaluated(task, Data()).rows, strict=True):
        for key, column in shown.items():
            one, two = vectors[row["text1"]], vectors[row[column]]
            cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
            assert told[key] == pytest.approx(cosine, abs=1e-5)
    assert task.measured(Predictor(task).answers, ROWS)


def test_values_are_those_of_what_a_program_answers():
    task = make(negative="wrong")
    wanted = evaluated(task, Data()).values
    found = task.reduce(task.measured(Predictor(task).answers, ROWS))
    assert found == {name: wanted[name] for name in found}


def test_vectors_have_length_one_unless_it_is_said():
    (unit,), (other,) = (Predictor(make(normalize=n))(["wake me"]) for n in (None, False))
    assert np.linalg.norm(unit.vector) == pytest.approx(1)
    assert np.linalg.norm(other.vector) != pytest.approx(1, abs=1e-3)
    assert unit.vector.dtype == np.float32
    assert unit.vector == pytest.approx(other.vector / np.linalg.norm(other.vector))
    assert unit == Embedded(unit.vector.copy())
    assert unit != other
    assert len({unit, Embedded(unit.vector.copy())}) == 1


def test_of_the_numbers_of_a_row_the_same_vector_is_made():
    bits = np.random.default_rng(1).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    powers = 10.0 ** np.arange(-37, 38, dtype=np.float32)
    near = [np.nextafter(powers, np.float32(side)) for side in (0, np.inf)]
    vector = np.concatenate([bits.view(np.float32), powers, *near, np.zeros(1, np.float32)])
    with np.errstate(invalid="ignore"):  # bits that are a signalling NaN
        found = np.float32(json.loads(json.dumps(Embedded(vector).row()["prediction"])))
        assert np.array_equal(found, vector, equal_nan=True)
    small = np.random.default_rng(1).normal(0, 0.05, 1000).astype(np.float32)
    text = json.dumps(Embedded(small).row()["prediction"])
    assert len(text) < 15 * len(small)


def test_texts_have_one_number_where_their_ids_are_the_same():
    texts = sorted(
        {tuple(ids) for n in range(1, 6) for ids in itertools.product(range(6), repeat=n)}
    )
    lengths = torch.tensor([len(text) for text in texts])
    found = []
    for pad, width in ((0, 5), (3, 9)):  # as another rank may have padded them
        ids = torch.full((len(texts), width), pad)
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = torch.tensor(text)
        found.append(embedding._hashed(ids, lengths).tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) == len(texts)


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match=r"task.negative is for task.loss.type=multiple_negatives"):
        make(negative="wrong", loss=CoSent.Config())
    with pytest.raises(UserError, match="'text1' is there twice"):
        make(columns=("text1", "text1"))
    with pytest.raises(DataError, match="Row 0 has no column 'wrong'"):
        make(negative="wrong").batches(Data([{"text1": "a", "text2": "b"}]), train=True, seed=1)
    task = make()
    (batch,) = task.batches(Data(batch_size=9), train=True, seed=1)
    bare = ColumnBatch(columns={"text1": batch["text1"]}, lengths={"text1": batch.lengths["text1"]})
    with pytest.raises(DataError, match="no column 'text2'; it has text1"):
        task.training_step(bare)
