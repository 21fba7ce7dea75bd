"""What is built with other labels, characters, affixes, kinds or numbers there is not taken."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from textmill.checkpoint import Checkpoints
from textmill.config.component import Component
from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import IntentSlotModel, Tagger
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.intent_slots import IntentSlots
from textmill.tasks.tagging import WordTagging
from textmill.text.columns.dictionary import GivenKinds
from textmill.text.columns.numbers import Numbers
from textmill.text.features.labels import Labels
from textmill.text.features.slots import Slots
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training import initial_weights as initial
from textmill.training.initial_weights import Initial, built_with, text_of

SMALL = {"embedding": WordEmbedding.Config(dim=8), "encoder": LstmEncoder.Config(hidden_dim=6)}
AFFIXES = Affixes([["ab", "cd"], ["ef"], ["xx"]], prefixes=[2], suffixes=[3], column="text")
SAME = {
    "labels": Labels(["go", "stop"]),
    "slots": Slots(["day", "time"]),
    "characters": Characters("abc", column="text"),
    "affixes": AFFIXES,
    "dictionary": GivenKinds(["drink", "song"], column="found"),
}
OTHERS = {
    "labels": (Labels(["stop", "go"]), "other names", ["intents.weight", "intents.bias"]),
    "slots": (
        Slots(["time", "day"]),
        "other names",
        ["tags.weight", "tags.bias", "crf.transitions"],
    ),
    "characters": (
        Characters("abd", column="text"),
        "other known",
        [
            "characters.characters.weight",
            "characters.filters.0.weight",
            "characters.filters.0.bias",
        ],
    ),
    "affixes": (
        Affixes([["ab", "cd"], ["ef"], ["xx"]], prefixes=[3], suffixes=[3], column="text"),
        "other prefixes",
        ["affixes.affixes.weight"],
    ),
    "dictionary": (
        GivenKinds(["song", "drink"], column="found"),
        "other kinds",
        ["dictionary.kinds.weight"],
    ),
}


def tokenizer():
    return WordTokenizer.Config(words=("a", "b")).build()


def joint(**changes):
    given = {"tokenizer": tokenizer(), **SAME, **changes}
    module = IntentSlotModel.Config(**SMALL, crf=True).build(**given)
    return IntentSlots.Config().build(module=module, **given)


def tagger(*labels):
    given = {"tokenizer": tokenizer(), "labels": Labels(labels, column="tags", multiple=True)}
    module = Tagger.Config(**SMALL, crf=True).build(**given)
    return WordTagging.Config().build(module=module, **given)


def saved(task, folder):
    """A checkpoint with numbers that no new module has."""
    with torch.no_grad():
        for value in task.module.parameters():
            value.copy_(torch.randn_like(value) + 10)
    store = Checkpoints(folder / "checkpoints")
    return str(store.save(1, {"model": task.module}, write_text=task.text.save))


def left(task, place, **names):
    """The lines of the report, and what kept its numbers."""
    before = {key: value.clone() for key, value in task.module.state_dict().items()}
    lines = Initial(place, names, task=task).load()
    after = task.module.state_dict()
    return lines, [key for key, value in before.items() if torch.equal(value, after[key])]


def test_the_same_are_taken(tmp_path):
    lines, kept = left(joint(), saved(joint(), tmp_path))
    assert (len(lines), kept) == (1, [])


@pytest.mark.parametrize("name", OTHERS)
def test_what_stands_for_another_stays_and_is_named(name, tmp_path):
    made, said, tensors = OTHERS[name]
    lines, kept = left(joint(**{name: made}), saved(joint(), tmp_path))
    assert kept == tensors
    assert lines[1:] == [f"Of other {name} ({said}), so left as they were: {', '.join(tensors)}."]


def test_labels_in_another_order_are_not_taken_for_each_other(tmp_path):
    place = saved(tagger("N", "V"), tmp_path)
    lines, kept = left(tagger("V", "N"), place)
    assert kept == ["scores.weight", "scores.bias", "crf.transitions"]
    assert lines[1].startswith("Of other labels (other names), so left")
    assert left(tagger("N", "V"), place, scores="scores")[1][-1] == "crf.transitions"


def test_what_is_named_is_refused_and_its_neighbour_is_not(tmp_path):
    place, here = saved(tagger("N", "V"), tmp_path), tagger("V", "N")
    with pytest.raises(UserError) as caught:
        Initial(place, {"scores": "scores", "encoder": "encoder"}, task=here).check()
    said = "'scores', but scores.weight, scores.bias would be taken from "
    assert said in str(caught.value)
    assert "which has other labels (other names). Set labels as they are" in str(caught.value)
    lines, _ = left(here, place, encoder="encoder")
    assert not any("other labels" in line for line in lines)
    kept = left(tagger("V", "N"), place, **{"": ""})[1]
    assert kept == ["scores.weight", "scores.bias", "crf.transitions"]


def test_a_source_of_which_nothing_else_fits_is_refused(tmp_path):
    place = saved(tagger("N", "V"), tmp_path)
    here = tagger("V", "N")
    here.module = nn.ModuleDict({"scores": here.module.scores})
    with pytest.raises(
        UserError, match=r"taken but scores\.weight, scores\.bias, and it has other"
    ):
        Initial(place, {}, task=here).check()


def test_a_text_path_without_such_has_none(tmp_path):
    given = {k: v for k, v in SAME.items() if k != "dictionary"}
    here, there = joint(), joint()
    there.text = (
        IntentSlots.Config().build(module=there.module, tokenizer=tokenizer(), **given).text
    )
    lines, kept = left(here, saved(there, tmp_path))
    assert kept == ["dictionary.kinds.weight"]
    assert lines[1].startswith("Of other dictionary (none there), so left as they were: ")


def test_a_model_of_ones_own_is_looked_through():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 3)
            self.head = nn.Linear(3, 2)

    state = Own().state_dict()
    characters, labels = Characters("abc"), Labels(["a", "b"])
    assert built_with(Own(), "characters", characters, state) == ("table.weight",)
    assert built_with(Own(), "labels", labels, state) == ("head.weight", "head.bias")


def test_a_table_of_a_vocabulary_is_built_with_it_whoever_has_it():
    class Pieces(Component, nn.Module):
        """Takes the size alone."""

        def __init__(self):
            nn.Module.__init__(self)
            self.characters, self.filters = nn.Embedding(7, 3), nn.Conv1d(3, 2, 2)

    module = nn.ModuleDict({"sentences": Pieces(), "scores": nn.Linear(2, 1)})
    words = WordTokenizer.Config(words=("a", "b", "c", "d", "e")).build()
    assert words.vocab_info.size == 7
    state = module.state_dict()
    assert set(built_with(module, "pieces", words, state)) == {*state}


PRICES = Numbers("dense", [50.0, 3.0], [10.0, 1.0])
SWAPPED = Numbers("dense", [3.0, 50.0], [1.0, 10.0])
HEAD = "scores.1.weight, scores.1.bias"


def classifier(dense=PRICES, *, labels=("go", "stop")):
    given = {"tokenizer": tokenizer(), "labels": Labels(labels), "dense": dense}
    config = Classifier.Config(
        embedding=WordEmbedding.Config(dim=8), encoder=AveragingEncoder.Config()
    )
    return DocumentClassification.Config().build(module=config.build(**given), **given)


def others(task, place, **names):
    """The lines of the report on other ingredients."""
    return [x for x in Initial(place, names, task=task).load() if x.startswith("Of other ")]


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
    begun = Initial(place, {}, task=task)
    begun.check()
    assert reads == [Path(place)]
    shutil.rmtree(place)
    assert HEAD in "".join(begun.load())
    assert reads == [Path(place)]
