"""Dictionaries of a source's words: what they tell decides the target, in beams and once saved."""

import json

import pytest

from tests.tasks.rows import data_of, evaluated, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.decoding import Decoding
from textmill.models.lstm_seq2seq import LstmSeq2Seq
from textmill.tasks.generation import SemanticParsing
from textmill.text.columns.dictionary import FittedKinds, Phrases
from textmill.text.processors.text_processor import load_text_processor
from textmill.text.tokenizers.word_tokenizer import FittedWords


def row(kinds, target):
    found = [{"tokenIdx": place, "features": {kind: 1}} for place, kind in kinds.items()]
    return {"source": "play it", "dictionary": json.dumps(found), "target": target}


ROWS = [
    row({1: "song"}, "music it"), row({1: "film"}, "video it"), row({}, "what"),
    row({0: "film", 1: "song"}, "both it"),
]  # fmt: skip
"""One source: only what is known of its words tells the target."""
Data = data_of(ROWS, batch_size=4)


def make(dictionary=True, model=LstmSeq2Seq, **settings):
    words = FittedWords.Config(columns=("source", "target"), marks=True, min_count=1)
    known = FittedKinds.Config().build(train_data=ROWS) if dictionary is True else dictionary
    given = {"tokenizer": words.build(train_data=ROWS), **({"dictionary": known} if known else {})}
    module = model.Config(dim=16, dropout=0.0).build(**given)
    return SemanticParsing.Config(**settings).build(module=module, **given)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_target_is_what_the_dictionary_says(beam_size, tmp_path):
    task = make(decoding=Decoding(beam_size=beam_size))
    learn(task, task.batches(Data(), train=True, seed=1), epochs=120, lr=0.02)
    found = evaluated(task, Data(batch_size=3))
    assert found.values["exact_match"] == 1
    asked = [task.asked(each) for each in ROWS]
    assert list(asked[0]) == ["source", "dictionary"]
    assert [str(answer) for answer in Predictor(task)(asked)] == [each["target"] for each in ROWS]
    task.text.save(tmp_path)
    task.use_text(load_text_processor(tmp_path))
    assert str(Predictor(task)(asked[1])) == "video it"
    without = make(dictionary=None)
    learn(without, without.batches(Data(), train=True, seed=1), epochs=120, lr=0.02)
    assert evaluated(without, Data()).values["exact_match"] == 0.25


def test_phrases_are_found_in_the_source_itself():
    task = make(Phrases([("film", "play")], column="source"))
    encoded = task.text.encode(ROWS, with_targets=False)
    assert task.text.input_columns == ("source",)
    assert encoded["dictionary"][0].tolist() == [0, 1, 1]


def test_what_cannot_be_is_refused():
    two = r"column 'dictionary': has kinds of the word at 2 \(from 0\), but the text in 'source'"
    with pytest.raises(DataError, match=two):
        Predictor(make())(row({2: "song"}, "none"))
    with pytest.raises(UserError, match=r"must be those of the text in 'source'"):
        make(Phrases([("film", "play")], column="text"))
    with pytest.raises(UserError, match=r"task\.source_prefix must be empty"):
        make(source_prefix="parse: ")
