"""Sequence to sequence: the loss against torch, lengths, and data that is not as it should be."""

import logging

import pytest
import torch

from tests.tasks.conftest import ROWS
from tests.tasks.test_conformance import Data, batch_of
from textmill.data.pipeline import from_sequence
from textmill.errors import DataError, UserError
from textmill.models.decoding import Decoding
from textmill.tasks import Seq2Seq, evaluate
from textmill.tasks.batches.user_batches import ReadyBatches


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_the_loss_is_torchs_smoothed_cross_entropy(make_task, smoothing):
    task = make_task(label_smoothing=smoothing)
    batch = batch_of(task, ROWS)
    loss = task.training_step(batch)
    logits = task.module(batch.source, batch.source_lengths, batch.target[:, :-1]).detach()
    labels = batch.target[:, 1:].masked_fill(batch.target[:, 1:] == task.pad_idx, -100)
    oracle = torch.nn.functional.cross_entropy
    expected = oracle(
        logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing, reduction="sum"
    )
    assert torch.allclose(loss.total, expected, rtol=1e-5)
    nll = oracle(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    assert torch.allclose(loss.sums["nll"], nll, rtol=1e-5)
    assert loss.count == (labels != -100).sum()
    found = evaluate(task, task.batches(Data(batch_size=100), train=False, seed=1)).values
    assert found["loss"] == pytest.approx(float(expected / loss.count), rel=1e-5)
    assert found["perplexity"] == pytest.approx(float((nll / loss.count).exp()), rel=1e-5)


def test_a_plain_module_has_the_loss_of_its_logits(make_task, make_module):
    plain = make_module(plain=True)
    task = make_task(Seq2Seq, plain, label_smoothing=0.0)
    batch = batch_of(task, ROWS)
    logits = plain(batch.source, batch.source_lengths, batch.target[:, :-1])
    labels = batch.target[:, 1:]
    nll = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=task.pad_idx, reduction="sum"
    )
    assert torch.allclose(task.training_step(batch).total, nll, rtol=1e-5)


def test_logits_of_another_shape_are_named(make_task, make_module):
    plain = make_module(plain=True)
    plain.forward = lambda source, source_lengths, target_in: torch.zeros(2, 3)
    task = make_task(Seq2Seq, plain)
    batch = batch_of(task, ROWS[:2])
    with pytest.raises(UserError) as caught:
        task.training_step(batch)
    assert str(caught.value).startswith("Plain(source, source_lengths, target_in) must give logits")


def test_rows_over_the_length_are_an_error_that_lists_them(make_task):
    task = make_task(max_source_length=12, max_target_length=20)
    lengths = task.text.encode(ROWS, with_targets=True)
    over = [
        i
        for i in range(len(ROWS))
        if len(lengths["source"][i]) > 12 or len(lengths["target"][i]) > 20
    ]
    assert 0 < len(over) < len(ROWS)
    with pytest.raises(DataError) as caught:
        task.batches(Data(), train=True, seed=1)
    most = "12 tokens of 'source' or 20 tokens of 'target'"
    assert str(caught.value).startswith(f"{len(over)} of 9 rows have more than {most}: rows ")


def test_rows_over_the_length_are_left_out_and_counted(make_task, caplog):
    task = make_task(max_source_length=12, max_target_length=20, over_length="skip")
    with caplog.at_level(logging.WARNING, logger="textmill"):
        batches = task.batches(Data(batch_size=100), train=True, seed=1)
    over = task.text.encode(ROWS, with_targets=True).over_length.tolist()
    most = "12 tokens of 'source' or 20 tokens of 'target'"
    note = f"{len(over)} of 9 rows left out: more than {most}."
    assert (caplog.messages, task.notes) == ([note], [note])
    (batch,) = batches
    kept = [i for i in range(9) if i not in over]
    assert sorted(row["row"] for row in batches.examples(batch)) == kept
    assert all(ROWS[row["row"]]["source"] == row["source"] for row in batches.examples(batch))


def test_an_answer_has_its_alternatives_best_first(make_task):
    task = make_task(decoding=Decoding(beam_size=4, n_best=3))
    (answer,) = task.predict([{"source": "Go."}])
    scores = [answer.score, *(one.score for one in answer.alternatives)]
    assert len(answer.alternatives) == 2
    assert scores == sorted(scores, reverse=True)
    row = task.answer_row(answer)
    assert row["alternatives"] == [
        {"prediction": one.text, "score": round(one.score, 6)} for one in answer.alternatives
    ]
    assert str(answer) == answer.text == row["prediction"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([], "The data, a list, is empty: wanted rows or batches."),
        (iter(ROWS), "The data is a list_iterator, which can be read only once, but training"),
        ([{"source": "Go."}], "Row 0 has no column 'target'; its columns: source."),
        ([{"target": "Va !"}], "Row 0 has no column 'source'; its columns: target."),
    ],
)
def test_data_that_cannot_be_trained_on(make_task, data, error):
    with pytest.raises(DataError) as caught:
        make_task().batches(data, train=True, seed=1)
    assert str(caught.value).startswith(error)


def test_looking_at_data_with_a_place_of_its_own_loses_no_batch(make_task):
    task = make_task()
    ready = list(task.batches(Data(batch_size=2), train=True, seed=1))
    pipeline = from_sequence(ready).and_return()
    batches = task.batches(pipeline, train=True, seed=1)
    assert isinstance(batches, ReadyBatches)
    assert not batches.replayed
    assert len(list(batches)) == len(ready) == 5
    assert [len(list(batches)) for _ in range(2)] == [5, 5]


def test_prediction_keeps_the_order_and_names_an_input_that_is_too_long(make_task):
    task = make_task()
    rows = [{"source": row["source"]} for row in ROWS]
    together = [answer.text for answer in task.predict(rows)]
    assert together == [task.predict([row])[0].text for row in rows]
    assert task.predict([]) == []
    long = {"source": "The cat sleeps. " * 50}
    count = len(task.text.encode([long], with_targets=False)["source"][0])
    with pytest.raises(DataError) as caught:
        task.predict([rows[0], long])
    assert str(caught.value).startswith(f"Row 1, column 'source': has {count} tokens; the model")


@pytest.mark.parametrize("decoding", [{}, {"beam_size": 3}, {"sample": True}])
def test_an_answer_begins_with_the_prefix_of_its_row(make_task, decoding):
    task = make_task(decoding=Decoding(**decoding))
    prefixes = ["Elle habite", "", "Va", "Elle habite"]
    rows = [{"source": source} for source in ("Go.", "The cat sleeps.", "A dog runs.", "Go.")]
    free = task.predict(rows)
    asked = [{**row, "prefix": prefix} for row, prefix in zip(rows, prefixes, strict=True)]
    found = task.predict(asked)
    for answer, prefix in zip(found, prefixes, strict=True):
        assert answer.text.startswith(prefix)
    assert found[1].text == free[1].text
    assert [a.text for a in found] != [a.text for a in free]
    assert [task.predict([row])[0].text for row in asked] == [a.text for a in found]


def test_a_prefix_of_the_task_holds_where_a_row_has_none(make_task):
    task = make_task(answer_prefix="Un chien")
    found = task.predict([{"source": "Go."}, {"source": "Go.", "prefix": "Va"}])
    assert found[0].text.startswith("Un chien")
    assert found[1].text.startswith("Va")
    answers = task.generate(torch.full((2, 3), 7), torch.tensor([3, 2]))
    assert all(answer.text.startswith("Un chien") for answer in answers)


def test_a_prefix_that_is_no_text_or_too_long_is_refused(make_task):
    task = make_task(max_target_length=12)
    with pytest.raises(DataError, match=r"^'prefix' must be a string; found int\.$"):
        task.check({"source": "Go.", "prefix": 7})
    with pytest.raises(DataError) as error:
        task.check({"source": "Go.", "prefix": "Elle " * 30})
    assert str(error.value).startswith(f"The prefix '{('Elle ' * 12)}' has 90 tokens; an answer")
