"""Weights that were trained with other numbers, or another ingredient of a recipe's own."""

import json

import pytest

from weft.checkpoint import Checkpoints
from weft.models.classifier import Classifier
from weft.models.encoders.averaging import AveragingEncoder
from weft.models.layers.words import WordEmbedding
from weft.tasks.classification import DocumentClassification
from weft.text.columns.column import Column, columns
from weft.text.columns.number import Numbers
from weft.text.labels import Labels
from weft.text.words import WordTokenizer
from weft.training.initial import Initial
from weft.training.other_fitted import other_fitted

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


def test_an_ingredient_of_ones_own_is_compared_by_what_is_saved_of_it(tmp_path, monkeypatch):
    there, here, same = secretive(3), secretive(4), secretive(3)
    place = saved(there, tmp_path)
    monkeypatch.setattr("weft.training.other_fitted.text_of", lambda source: there.text)
    taken = here.module.state_dict()
    said = ["dense is here not what it is there"]
    assert other_fitted(here.module, here.text, place, taken) == said
    assert other_fitted(same.module, same.text, place, taken) == []
