"""What holds for every task from sequence to sequence, whatever its settings and module."""

import math

import pytest
import torch

from tests.tasks.conftest import ROWS
from tests.tasks.rows import data_of, learn
from textmill.inference import Predictor
from textmill.models.decoding import Decoding
from textmill.tasks import Loss, Seq2Seq, Translation, evaluate
from textmill.tasks.generation import SemanticParsing, Summarization

Data = data_of(ROWS)


class Focal(Translation):
    """A user's own loss by one overridden method."""

    def loss(self, logits, targets):
        log_probs = logits.log_softmax(-1).gather(1, targets[:, None])[:, 0]
        nll = -log_probs
        return Loss(
            ((1 - log_probs.exp()) ** 2 * nll).sum(),
            torch.tensor(float(len(targets))),
            {"nll": nll.detach().sum()},
        )


VARIANTS = {
    "seq2seq": (Seq2Seq, {}),
    "translation": (Translation, {}),
    "unsmoothed": (Translation, {"label_smoothing": 0.0}),
    "loss alone": (Translation, {"generate": False}),
    "beam": (Translation, {"decoding": Decoding(beam_size=3, n_best=2)}),
    "own loss": (Focal, {}),
    "parsing": (SemanticParsing, {}),
    "summarization": (Summarization, {"decoding": Decoding(max_length_b=20)}),
    "plain module": (Translation, {"generate": False}),
}


SLOW = {"unsmoothed", "loss alone"}  # translation, but for a setting


@pytest.fixture(
    params=[pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in VARIANTS]
)
def task(request, make_task, make_module):
    kind, settings = VARIANTS[request.param]
    return make_task(kind, make_module(plain=request.param == "plain module"), **settings)


def batch_of(task, rows, **batching):
    batching = batching or {"batch_size": 100}
    (batch,) = task.batches(Data(rows, **batching), train=True, seed=1)
    return batch


def test_the_loss_is_a_sum_with_a_count_so_two_halves_are_the_whole(task):
    whole = task.training_step(batch_of(task, ROWS))
    halves = [task.training_step(batch_of(task, ROWS[i::2])) for i in range(2)]
    assert whole.count == sum(half.count for half in halves)
    assert whole.count == sum(
        len(task.text.encode([row], with_targets=True)["target"][0]) - 1 for row in ROWS
    )
    assert torch.allclose(whole.total, sum(half.total for half in halves), rtol=1e-5)
    for name, value in whole.sums.items():
        assert torch.allclose(value, sum(half.sums[name] for half in halves), rtol=1e-5)


def test_so_are_the_gradients(task):
    def gradients(batches):
        task.module.zero_grad()
        for batch in batches:
            task.training_step(batch).total.backward()
        return [p.grad.clone() for p in task.module.parameters()]

    whole = gradients([batch_of(task, ROWS)])
    halves = gradients([batch_of(task, ROWS[:4]), batch_of(task, ROWS[4:])])
    for one, two in zip(whole, halves, strict=True):
        assert torch.allclose(one, two, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("batching", [{"max_tokens": 40}, {"batch_size": 1}, {"shuffle": True}])
def test_evaluation_is_that_of_one_batch_whatever_the_batching(task, batching):
    whole = evaluate(task, task.batches(Data(batch_size=100), train=False, seed=1))
    parts = evaluate(task, task.batches(Data(**batching), train=False, seed=1))
    assert parts.values == pytest.approx(whole.values, rel=1e-5, abs=1e-5, nan_ok=True)
    assert [row["row"] for row in parts.rows] == [row["row"] for row in whole.rows]
    for one, two in zip(parts.rows, whole.rows, strict=True):
        assert one["prediction"] == two["prediction"]
        assert one["score"] == pytest.approx(two["score"], abs=2e-6)


def test_rows_come_in_the_order_of_the_data(task):
    rows = evaluate(task, task.batches(Data(shuffle=True), train=False, seed=1)).rows
    generates = isinstance(task, Seq2Seq) and task.generates
    # The same source on other rows is another reference of a translation.
    every = [0, 1, 3, 4, 6, 8] if isinstance(task, Translation) else list(range(len(ROWS)))
    assert [row["row"] for row in rows] == (every if generates else [])
    assert all(row["source"] == ROWS[row["row"]]["source"] for row in rows)


def test_the_predictor_answers_as_the_evaluation_did(task):
    rows = evaluate(task, task.batches(Data(max_tokens=60), train=False, seed=1)).rows
    if not rows:
        pytest.skip("this variant generates nothing")
    answers = Predictor(task)([row["source"] for row in rows])
    assert [answer.text for answer in answers] == [row["prediction"] for row in rows]
    alone = [Predictor(task)(row["source"]) for row in rows]
    assert [answer.text for answer in alone] == [row["prediction"] for row in rows]
    assert [answer.score for answer in alone] == pytest.approx(
        [row["score"] for row in rows], abs=2e-6
    )


def test_all_values_are_known_before_training_each_with_its_direction(task):
    known = {
        name: way for metric in task.metrics().values() for name, way in metric.directions().items()
    }
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    assert found.directions == known
    assert set(found.values) == set(known)
    assert not any(math.isnan(value) for value in found.values.values())
    assert {known["loss"], known["perplexity"], known["accuracy"]} == {"lower", "higher"}


def test_evaluation_leaves_the_mode_and_the_weights_as_they_were(task):
    before = {name: value.clone() for name, value in task.module.state_dict().items()}
    for mode in (True, False):
        task.module.train(mode)
        evaluate(task, task.batches(Data(), train=False, seed=1))
        assert task.module.training is mode
    assert all(torch.equal(before[name], v) for name, v in task.module.state_dict().items())


def test_every_parameter_is_in_one_group_and_vectors_are_not_decayed(task):
    groups = task.parameter_groups()
    grouped = [p for group in groups for p in group["params"]]
    assert {id(p) for p in grouped} == {id(p) for p in task.module.parameters()}
    assert len(grouped) == len({id(p) for p in grouped})
    assert [group.get("weight_decay") for group in groups] == [None, 0.0]
    assert all(p.ndim > 1 for p in groups[0]["params"])
    assert all(p.ndim == 1 for p in groups[1]["params"])


def test_ready_batches_are_trained_on_and_evaluated(task):
    ready = list(task.batches(Data(max_tokens=60), train=True, seed=1))
    batches = task.batches(ready, train=True, seed=1)
    losses = [task.training_step(batch) for batch in batches]
    assert (batches.epoch, len(losses)) == (1, len(ready))
    rows = evaluate(task, task.batches(Data(batch_size=9), train=False, seed=1))
    found = evaluate(task, task.batches(ready, train=False, seed=1))
    for name in ("loss", "perplexity", "accuracy"):
        assert found.values[name] == pytest.approx(rows.values[name], rel=1e-5)
    read = [row for batch in ready for row in batches.examples(batch)]
    assert sorted(map(str, read)) == sorted(map(str, ROWS))


def test_some_steps_lower_the_loss(task):
    whole = batch_of(task, ROWS)
    before = task.training_step(whole).total
    learn(task, task.batches(Data(batch_size=3), train=True, seed=1), epochs=4, lr=0.03)
    assert task.training_step(whole).total < 0.85 * before
