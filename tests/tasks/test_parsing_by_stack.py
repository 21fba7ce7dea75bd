"""Trees by a parser over a stack: learnt by heart, of any depth, and what is refused."""

import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.inference.export.folder import refuse_unsupported
from textmill.metrics.frames import Trees
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.parsers.rnng import Rnng
from textmill.models.tagger import Tagger
from textmill.tasks import evaluate
from textmill.tasks.parsing import ShiftReduceParsing
from textmill.text.features.tree_actions import FittedTreeActions
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
VARIANTS = {"greedy": {}, "beams": {"beam_size": 3}}


def make(rows=ROWS, model=Rnng.Config, labels=FittedTreeActions, **settings):
    torch.manual_seed(0)
    given = {
        "tokenizer": FittedWords.Config(columns=("source",)).build(train_data=rows),
        "labels": labels.Config().build(train_data=rows),
    }
    module = model(
        embedding=WordEmbedding.Config(dim=8), encoder=LstmEncoder.Config(hidden_dim=6),
        dropout=0.0, **({"dim": 8} if model is Rnng.Config else {}),
    ).build(**given)  # fmt: skip
    return ShiftReduceParsing.Config(**settings).build(module=module, **given)


def evaluated(task, rows=ROWS, **batching):
    return evaluate(task, task.batches(Data(rows, **batching), train=False, seed=1))


def test_it_learns_trees_by_heart_and_answers_with_them():
    task = make()
    learn(task, task.batches(Data(batch_size=9), train=True, seed=1), epochs=30, lr=0.08)
    values = evaluated(task).values
    assert values["exact_match"] == values["frame_accuracy"] == 1.0
    assert values["depth/4/tree_f1"] == values["depth/1/frame_accuracy"] == 1.0
    assert values["loss"] < 0.05
    answers = Predictor(task)([row["source"] for row in ROWS])
    wanted = [row["target"].replace("p]", "p ]") for row in ROWS]
    assert [str(answer) for answer in answers] == wanted
    assert all(0.5 < answer.score <= 1 for answer in answers)
    assert str(Predictor(task)("")) == "[IN:CALL ]"
    # A score is the probability of the whole tree.
    batch = next(iter(task.batches(Data(ROWS[:1]), train=False, seed=1)))
    loss = task.loss(task.scores(batch), batch)
    assert loss.count == 8
    assert answers[0].score == pytest.approx(float((-loss.total).exp().detach()), abs=1e-5)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_values_are_those_of_the_trees(settings):
    task = make(**settings)
    found = evaluated(task)
    trees = Trees()
    trees.update([row["target"] for row in ROWS], [row["prediction"] for row in found.rows])
    for name, value in trees.compute().items():
        assert found.values[name] == pytest.approx(value, nan_ok=True), name
    assert found.values["invalid_trees"] == 0
    assert evaluated(task, batch_size=1).values == pytest.approx(found.values, nan_ok=True)


def test_a_label_that_training_has_not_seen_counts_as_wrong_and_in_no_loss():
    task = make()
    new = {"source": "stop it now", "target": "[IN:STOP stop [SL:WHAT it ] now ]"}
    known, both = evaluated(task).values, evaluated(task, [*ROWS, new])
    assert both.values["loss"] == pytest.approx(known["loss"])
    assert both.values["exact_match"] == pytest.approx(known["exact_match"] * 4 / 5)
    assert "'SL:WHAT' 1" in both.details["unseen_labels"]
    # Opened and closed at the same words as another label was, it is no new combination.
    mixed = {"source": "call it", "target": "[IN:CALL [SL:PERSON call ] [SL:AT it ] ]"}
    assert evaluated(task, [mixed]).values["loss"] > 0


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"labels": FittedTreeTags}, r"^A parser over a stack .* set labels.type=tree_actions"),
        ({"model": Tagger.Config}, r"^shift_reduce_parsing .* a Tagger .*set model.type=rnng"),
    ],
)
def test_other_parts_are_refused(told, why):
    with pytest.raises(UserError, match=why):
        make(**told)


def test_long_sentences_are_refused_or_left_out_but_never_cut_in_training():
    with pytest.raises(DataError, match=r"^2 of 4 rows have more than 3 tokens of 'source'"):
        make(max_length=3).batches(Data(), train=True, seed=1)
    task = make(max_length=3, over_length="skip")
    assert evaluated(task).details["over_length"].startswith("2 of 4 rows left out")
    assert Predictor(task)("call my mom now").tree.split()[-2] != "now"
    with pytest.raises(UserError, match="truncate"):
        ShiftReduceParsing.Config(over_length="truncate")


def test_an_export_is_refused_in_a_sentence():
    with pytest.raises(UserError, match=r"cannot be exported to onnx:\n  it chooses actions one"):
        refuse_unsupported(make(), "onnx")
