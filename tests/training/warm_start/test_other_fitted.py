"""Weights that were trained with other numbers, or another ingredient of a recipe's own."""

import json
import shutil

import pytest
import torch

from textmill.checkpoint import Checkpoints
from textmill.errors import CheckpointError
from textmill.models.classifier import Classifier
from textmill.models.encoders.averaging import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks.classification import DocumentClassification
from textmill.text.columns.column import Column, columns
from textmill.text.columns.numbers import Numbers
from textmill.text.features.labels import Labels
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training.warm_start import initial_weights as initial
from textmill.training.warm_start.initial_weights import Initial
from textmill.training.warm_start.run_differences import other_fitted, text_of

PRICES = Numbers("dense", [50.0, 3.0], [10.0, 1.0])
NEARLY = Numbers("dense", [52.0, 3.5], [14.0, 0.7])
START = "where they were trained with other settings: "
END = ". Set them alike, unless this is meant."


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


def warned(task, place, caplog, **names):
    Initial(str(place), names, task=task).load()
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("dense", [PRICES, NEARLY])
def test_numbers_that_are_nearly_the_same_are_not_spoken_of(dense, tmp_path, caplog):
    assert warned(classifier(dense), saved(classifier(), tmp_path), caplog) == []


@pytest.mark.parametrize(
    ("dense", "said"),
    [
        (
            Numbers("dense", [3.0, 50.0], [1.0, 10.0]),  # in the other order
            "dense has as number 0 one of mean 3 and deviation 1 here and mean 50 and deviation 10 "
            "there",
        ),
        (
            Numbers("dense", [0.0, 0.0], [1.0, 1.0]),  # not normalized
            "dense has as number 0 one of mean 0 and deviation 1 here and mean 50 and deviation 10 "
            "there",
        ),
        (
            Numbers("dense", [50.0, 3.0], [10.0, 2.5]),
            "dense has as number 1 one of mean 3 and deviation 2.5 here and mean 3 and deviation 1 "
            "there",
        ),
        (Numbers("sizes", [50.0, 3.0], [10.0, 1.0]), "dense.column is sizes here and dense there"),
    ],
)
def test_other_numbers_are_warned_of(dense, said, tmp_path, caplog):
    place = saved(classifier(), tmp_path)
    assert warned(classifier(dense), place, caplog) == [
        f"Weights are taken from {place} {START}{said}{END}"
    ]


def test_nothing_is_said_where_no_layer_that_reads_them_is_taken(tmp_path, caplog):
    other = Numbers("dense", [3.0, 50.0], [1.0, 10.0])
    place = saved(classifier(), tmp_path)
    assert warned(classifier(other, labels=("stop", "go")), place, caplog) == []
    assert warned(classifier(other), place, caplog, text="text") == []
    more = Numbers("dense", [3.0, 50.0, 9.0], [1.0, 10.0, 9.0])
    assert warned(classifier(more), place, caplog) == []


class Secret:
    """An ingredient that says nothing of itself."""

    dim = 2

    def __init__(self, key):
        self.key = key


@columns.register("test_secret")
class SecretColumn(Column):
    """Two numbers of a text, by a key."""

    kind = "test_secret"

    def __init__(self, name, secret):
        super().__init__(name)
        self.secret = secret

    @property
    def fitted(self):
        return {"dense": self.secret}

    def encode(self, values):
        raise NotImplementedError

    def save_files(self, folder):
        return {"name": self.name, "key": json.dumps(self.secret.key)}

    @classmethod
    def from_files(cls, folder, settings):
        return cls(settings["name"], Secret(json.loads(settings["key"])))


def secretive(key):
    task = classifier()
    task.text.inputs["dense"] = SecretColumn("dense", Secret(key))
    return task


def test_an_ingredient_of_ones_own_is_compared_by_what_is_saved_of_it():
    there, here, same = secretive(3), secretive(4), secretive(3)
    taken = here.module.state_dict()
    said = ["dense is here not what it is there"]
    assert other_fitted(here.module, here.text, lambda: there.text, taken) == said
    assert other_fitted(same.module, same.text, lambda: there.text, taken) == []


def test_the_text_there_is_read_once_and_before_a_weight_is_copied(tmp_path, monkeypatch, caplog):
    other = Numbers("dense", [3.0, 50.0], [1.0, 10.0])
    place, task, reads = saved(classifier(), tmp_path), classifier(other), []
    monkeypatch.setattr(initial, "text_of", lambda path: (reads.append(path), text_of(path))[1])
    begun = Initial(str(place), {}, task=task)
    begun.check()
    assert reads == [place]
    shutil.rmtree(place)
    begun.load()
    assert reads == [place]
    assert "dense has as number 0 one of mean 3" in caplog.text


def test_a_text_there_that_cannot_be_read_leaves_the_weights_alone(tmp_path, monkeypatch):
    place, task = saved(classifier(), tmp_path), classifier()
    before = {name: value.clone() for name, value in task.module.state_dict().items()}

    def fail(*_):
        raise CheckpointError("damaged")

    monkeypatch.setattr(initial, "other_fitted", fail)
    with pytest.raises(CheckpointError, match="damaged"):
        Initial(str(place), {}, task=task).load()
    assert all(torch.equal(v, before[name]) for name, v in task.module.state_dict().items())
