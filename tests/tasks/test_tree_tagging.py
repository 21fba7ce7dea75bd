"""Trees by the tags of words: learnt by heart, scored as parses are, and of their rows' words."""

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import DataError
from textmill.inference import Predictor
from textmill.metrics.frames import Trees
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import Tagger
from textmill.tasks import evaluate
from textmill.tasks.tagging import TreeTagging
from textmill.text.features.tree_tags import FittedTreeTags
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"source": "call my mom now", "target": "[IN:CALL call [SL:PERSON my mom ] now ]"},
    {"source": ["stop"], "target": "[IN:STOP stop]"},
    {"source": "stop it now", "target": "[IN:STOP stop it now ]"},
    {
        "source": "snooze it until 8",
        "target": "[IN:SNOOZE snooze it [SL:TIME [IN:GET_TIME [SL:AT until 8 ] ] ] ]",
    },
]
Data = data_of(ROWS, batch_size=2)


VARIANTS = {"softmax": {}, "crf": {"crf": True}}


def make(rows=ROWS, *, crf=False, **settings):
    torch.manual_seed(0)
    given = {
        "tokenizer": FittedWords.Config(columns=("source",)).build(train_data=rows),
        "labels": FittedTreeTags.Config().build(train_data=rows),
    }
    module = Tagger.Config(
        embedding=WordEmbedding.Config(dim=8), encoder=LstmEncoder.Config(hidden_dim=6),
        dropout=0.0, crf=crf,
    ).build(**given)  # fmt: skip
    return TreeTagging.Config(**settings).build(module=module, **given)


def evaluated(task, rows=ROWS, **batching):
    return evaluate(task, task.batches(Data(rows, **batching), train=False, seed=1))


@pytest.fixture(params=[False, True], ids=["softmax", "crf"])
def learnt(request):
    task = make(crf=request.param)
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=80, lr=0.05)
    return task


def test_it_learns_trees_by_heart_and_answers_with_them(learnt):
    values = evaluated(learnt).values
    assert values["exact_match"] == values["frame_accuracy"] == 1.0
    assert values["loss"] < 0.1
    answers = Predictor(learnt)([row["source"] for row in ROWS])
    assert [str(answer) for answer in answers] == [
        row["target"].replace("p]", "p ]") for row in ROWS
    ]
    assert all(0.5 < answer.score <= 1 for answer in answers)
    assert str(Predictor(learnt)("")).startswith("[IN:")


def test_values_are_those_of_the_trees(learnt):
    torch.nn.init.normal_(learnt.module.scores.weight, generator=torch.Generator().manual_seed(1))
    found = evaluated(learnt)
    trees = Trees()
    trees.update([row["target"] for row in ROWS], [row["prediction"] for row in found.rows])
    for name, value in trees.compute().items():
        assert found.values[name] == pytest.approx(value, nan_ok=True), name
    assert evaluated(learnt, batch_size=1).values == pytest.approx(found.values, nan_ok=True)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("[IN:STOP halt ]", r"^Row 1: the tree in 'target' is not of the words in 'source': word"),
        ("[IN:STOP stop now ]", r"^Row 1: the tree .* word 1 \(from 0\) is None, but in the tree"),
    ],
)
def test_a_tree_of_other_words_is_named_before_step_1(target, why):
    task = make()
    with pytest.raises(DataError, match=why):
        task.batches(Data([ROWS[0], {"source": "stop", "target": target}]), train=True, seed=1)
