"""Weights built with other numbers, or with another ingredient of a recipe's own, are not taken."""

import shutil

import pytest
import torch

from textmill.checkpoint import Checkpoints
from textmill.models.classifier import Classifier
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks.classification import DocumentClassification
from textmill.text.columns.numbers import Numbers
from textmill.text.features.labels import Labels
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training import initial_weights as initial
from textmill.training.initial_weights import Initial, text_of

PRICES = Numbers("dense", [50.0, 3.0], [10.0, 1.0])
SWAPPED = Numbers("dense", [3.0, 50.0], [1.0, 10.0])
HEAD = "scores.1.weight, scores.1.bias"


def classifier(dense=PRICES, *, labels=("go", "stop")):
    tokenizer = WordTokenizer.Config(words=("a", "b")).build()
    given = {"tokenizer": tokenizer, "labels": Labels(labels), "dense": dense}
    config = Classifier.Config(
        embedding=WordEmbedding.Config(dim=8), encoder=AveragingEncoder.Config()
    )
    return DocumentClassification.Config().build(module=config.build(**given), **given)


def saved(task, folder):
    store = Checkpoints(folder / "checkpoints")
    return store.save(1, {"model": task.module}, write_text=task.text.save)


def others(task, place, **names):
    """The lines of the report on other ingredients."""
    return [x for x in Initial(str(place), names, task=task).load() if x.startswith("Of other ")]


@pytest.mark.parametrize(
    "dense", [SWAPPED, Numbers("dense", [50.0, 3.0], [10.0, 2.5])], ids=["swapped", "wider"]
)
def test_what_reads_other_numbers_stays_and_is_named(dense, tmp_path):
    task, place = classifier(dense), saved(classifier(), tmp_path)
    before = {name: value.clone() for name, value in task.module.scores.state_dict().items()}
    (said,) = others(task, place)
    assert said.startswith("Of other dense (other ")
    assert said.endswith(f"so left as they were: {HEAD}.")
    assert all(torch.equal(v, before[n]) for n, v in task.module.scores.state_dict().items())


def test_nothing_is_said_where_no_layer_that_reads_them_would_be_taken(tmp_path):
    place = saved(classifier(), tmp_path)
    assert others(classifier(SWAPPED), place, text="text") == []
    assert others(classifier(Numbers("dense", [3.0] * 3, [1.0] * 3)), place, text="text") == []


def test_the_text_there_is_read_once_and_before_a_weight_is_copied(tmp_path, monkeypatch):
    place, task, reads = saved(classifier(), tmp_path), classifier(SWAPPED), []
    monkeypatch.setattr(initial, "text_of", lambda path: (reads.append(path), text_of(path))[1])
    begun = Initial(str(place), {}, task=task)
    begun.check()
    assert reads == [place]
    shutil.rmtree(place)
    assert HEAD in "".join(begun.load())
    assert reads == [place]
