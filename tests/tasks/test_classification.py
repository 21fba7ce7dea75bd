"""Classification of documents: batches, loss, evaluation and answers; bad rows are refused."""

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.classifier import Classifier
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks import evaluate
from textmill.tasks.classification import DocumentClassification
from textmill.text.columns.numbers import FittedNumbers
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"label": "ham", "text": "see you at home", "dense": "1 0", "topics": "home"},
    {"label": "spam", "text": "win cash now", "dense": "0 2", "topics": "money, time"},
    {"label": "ham", "text": "home late", "dense": "3 1", "topics": "home, time"},
    {"label": "spam", "text": "cash cash cash for you", "dense": "0 5", "topics": "money"},
    {"label": "ham", "text": "", "dense": "2 2", "topics": ""},
]

Data = data_of(ROWS, batch_size=3)


def make(rows=ROWS, *, multiple=False, dense=False, ngrams=False, **settings):
    torch.manual_seed(0)
    names = {"column": "topics", "multiple": True, "separator": ","} if multiple else {}
    given = {
        "tokenizer": FittedWords.Config().build(train_data=rows),
        "labels": FittedLabels.Config(**names).build(train_data=rows),
        **({"dense": FittedNumbers.Config().build(train_data=rows)} if dense else {}),
        **({"ngrams": FittedNgrams.Config().build(train_data=rows)} if ngrams else {}),
    }
    module = Classifier.Config(dropout=0.0).build(**given)
    return DocumentClassification.Config(**settings).build(module=module, **given)


VARIANTS = {
    "one label": {}, "several labels": {"multiple": True}, "dense": {"dense": True},
    "n-grams": {"ngrams": True},
}  # fmt: skip


@pytest.fixture(params=VARIANTS)
def task(request):
    return make(**VARIANTS[request.param])


def test_it_learns_the_rows_by_heart(task):
    torch.manual_seed(0)
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=30, lr=0.05)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert found.values["loss"] < 0.05
    assert found.remarks == ()
    column = task.text.label.name
    for row in found.rows:
        gold = row[column].replace(" ", "").split(",") if column == "topics" else [row[column]]
        assert sorted(filter(None, row["prediction"].split(", "))) == sorted(filter(None, gold))


def test_the_metrics_are_those_of_the_rows():
    task = make(positive="spam", rank_metrics=True)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    right = [row["label"] == row["prediction"] for row in found.rows]
    assert found.values["accuracy"] == pytest.approx(sum(right) / 5)
    ranked = sorted(found.rows, key=lambda row: row["scores"]["spam"])
    pairs = [
        row["scores"]["spam"] > other["scores"]["spam"]
        for row in ranked
        for other in ranked
        if (row["label"], other["label"]) == ("spam", "ham")
    ]
    assert found.values["roc_auc"] == pytest.approx(sum(pairs) / 6)
    assert found.values["recall"] == found.values["label/spam/recall"]
    assert "label/spam/recall_at_precision/0.9" in found.values
    assert set(found.directions) == set(found.values)


def test_the_metrics_of_several_labels_are_those_of_the_rows():
    task = make(multiple=True, rank_metrics=True)
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    gold = [set(filter(None, row["topics"].replace(" ", "").split(","))) for row in found.rows]
    given = [set(filter(None, row["prediction"].split(", "))) for row in found.rows]
    right, all_given = sum(map(len, map(set.__and__, gold, given))), sum(map(len, given))
    assert found.values["micro_f1"] == pytest.approx(2 * right / (6 + all_given))
    assert found.values["accuracy"] == sum(map(set.__eq__, gold, given)) / 5
    assert found.values["label/home/support"] == 2
    assert 0 <= found.values["roc_auc"] <= 1
    assert set(found.directions) == set(found.values)


def test_a_positive_label_that_cannot_be_is_refused():
    with pytest.raises(UserError, match=r"task.positive is 'eggs', which is no label. The 2 "):
        make(positive="eggs")
    with pytest.raises(UserError, match=r"task.positive is for one label a row"):
        make(multiple=True, positive="money")


def test_texts_longer_than_the_encoder_takes_are_refused_at_the_start():
    given = {
        "tokenizer": FittedWords.Config().build(train_data=ROWS),
        "labels": FittedLabels.Config().build(train_data=ROWS),
    }
    encoder = SelfAttentionEncoder.Config(num_heads=2, max_length=3)
    embedding = WordEmbedding.Config(dim=4)
    module = Classifier.Config(encoder=encoder, embedding=embedding).build(**given)
    task = DocumentClassification.Config().build(module=module, **given)
    error = (
        r"^A text in 'text' may have 512 tokens, but the module's encoder takes at most 3. Set "
        r"task.max_length=3, or raise model.encoder.max_length.$"
    )
    with pytest.raises(UserError, match=error):
        task.batches(Data(), train=True, seed=1)
    with pytest.raises(UserError, match=error):
        task.use_text(task.text)
    short = DocumentClassification.Config(max_length=3).build(module=module, **given)
    assert len(short.batches(Data(), train=True, seed=1))
    assert short.predict([{"text": "a b c d e"}])[0].label


def test_dense_features_that_are_missing_are_said_in_prediction():
    predictor = Predictor(make(dense=True))
    with pytest.raises(DataError, match="needs the columns text, dense; 'dense' is missing"):
        predictor({"text": "a"})
    found = list(predictor.stream([{"text": "a", "dense": "1"}, {"text": "a", "dense": "1 2"}]))
    assert found[0]["error"] == "column 'dense': wanted 2 numbers, found 1."
    assert found[1]["prediction"] in ("ham", "spam")


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"columns of a row must differ, but 'label' is there"):
        make(column="label")


def test_labels_that_are_never_an_answer_are_named_with_the_setting_that_makes_them_count():
    rows = [{"label": "ham", "text": "home"}] * 8 + [{"label": "spam", "text": "home"}] * 2
    task = make(rows)
    with torch.no_grad():  # it answers the first label, whatever the text
        for parameter in task.module.parameters():
            parameter.zero_()
    found = evaluate(task, task.batches(data_of(rows, batch_size=5)(), train=False, seed=1))
    assert found.remarks == (
        "1 of the 2 labels of the rows is never predicted: 'spam' (2 rows). To make it count more: "
        "task.loss.weights='{\"spam\": 2}'; or train longer, or add rows of it.",
    )


def test_rows_to_answer_are_encoded_once(monkeypatch):
    predictor, seen = Predictor(make()), []
    encode = predictor.task.text.encode
    monkeypatch.setattr(
        predictor.task.text,
        "encode",
        lambda rows, **how: (seen.extend(rows), encode(rows, **how))[1],
    )
    given = ["see you", "win cash", "", "late"]
    assert len([*predictor.stream(given, size=3)]) == len(seen) == 4
    found = [*predictor.stream([*given, 7])]
    assert ["error" in row for row in found] == [False] * 4 + [True]
