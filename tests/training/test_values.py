"""Intervals, limits, schedules, selection and parameter groups against brute force and torch."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.errors import UserError
from textmill.training import Every, InverseSquareRoot, Progress, Selection, Until

COUNTS = st.integers(0, 10_000)


@given(st.integers(1, 50), COUNTS, st.integers(0, 200), st.sampled_from(["steps", "examples"]))
def test_due_is_crossing_a_multiple(count, before, more, unit):
    now = before + more
    crossed = any(n % count == 0 for n in range(before + 1, now + 1))
    due = Every(count, unit).due(Progress(**{unit: before}), Progress(**{unit: now}))
    assert due == crossed


@given(st.integers(1, 5), st.floats(0, 1e5), st.floats(0, 1e4))
def test_minutes_are_due_by_the_clock(count, before, more):
    due = Every(count, "min").due(Progress(seconds=before), Progress(seconds=before + more))
    assert due == ((before + more) // (60 * count) > before // (60 * count))


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_first_limit_ends(steps, epochs, most_steps, most_epochs):
    now = Progress(steps=steps, epochs=epochs, seconds=5.0)
    assert Until(most_steps, most_epochs).reached(now) == (
        steps >= most_steps or epochs >= most_epochs
    )
    assert Until(time=timedelta(seconds=5)).reached(now)
    assert not Until().reached(now)


def test_warm_up_and_inverse_square_root():
    schedule = InverseSquareRoot.Config(warmup_steps=10).build()
    for step in range(1, 200):
        assert schedule(step, None) == pytest.approx(min(step / 10, math.sqrt(10 / step)))


VALUES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, math.nan]), min_size=1, max_size=12)
PATIENCE = st.none() | st.integers(1, 4)


@given(
    VALUES,
    st.sampled_from(["higher", "lower"]),
    PATIENCE,
    st.sampled_from([0.0, 0.6, 2.0]),
    st.sampled_from([0.0, 1.0, 1.5]),
)
def test_selection_is_brute_force(values, way, patience, error, min_delta):
    config = Selection.Config(patience=patience, min_delta=min_delta)
    selection, sign = config.build(directions={"loss": way}), 1 if way == "higher" else -1

    for step, value in enumerate(values):
        is_best = selection.see(step, {"loss": value}, errors={"loss": error})
        numbers = [(n, v) for n, v in enumerate(values[: step + 1]) if not math.isnan(v)]
        top = max((sign * v for _, v in numbers), default=None)
        peak = next((pair for pair in numbers if sign * pair[1] == top), None)
        near = [pair for pair in numbers if sign * pair[1] >= top - error]
        best = near[-1] if near else None
        assert (selection.best, selection.peak) == (best, peak)
        assert is_best == (best is not None and best[0] == step)
        last = None
        for number, seen in numbers:
            last = number if last is None or sign * (seen - values[last]) > min_delta else last
        since = step + 1 if last is None else step - last
        assert selection.stalled() == (patience is not None and since >= patience)
        again = config.build(directions={"loss": way})
        again.load_state_dict(selection.state_dict())
        assert (again.best, again.peak) == (selection.best, selection.peak)
        assert repr(again.history) == repr(selection.history)  # as text, where NaN is itself


def test_the_error_that_counts_is_that_of_the_best_value():
    selection = Selection.Config(metric="f1").build(directions={"f1": "higher"})
    assert selection.see(1, {"f1": 0.8}, errors={"f1": 0.01})
    assert not selection.see(2, {"f1": 0.7}, errors={"f1": 0.2})
    assert selection.state_dict()["history"] == [[1, 0.8, 0.01], [2, 0.7, 0.2]]


def test_a_value_without_an_error_is_compared_as_it_is_and_saved_alone():
    plain = Selection.Config().build(directions={"loss": "lower"})
    plain.see(4, {"loss": 2.0})
    assert not plain.see(5, {"loss": 2.0001})
    assert plain.state_dict() == {"history": [[4, 2.0], [5, 2.0001]], "best": 4}


def test_a_metric_that_is_not_measured_is_refused_before_training():
    with pytest.raises(UserError, match=r"\.metric is 'blue'.*mean 'bleu'.*: loss, bleu"):
        Selection.Config(metric="blue").build(directions={"loss": "lower", "bleu": "higher"})
    measured = {"loss": "lower", "macro_f1": "higher", "label/ham/f1": "higher"}
    with pytest.raises(UserError, match=r"not measure\. It measures: loss, macro_f1\.$"):
        Selection.Config(metric="zzz").build(directions=measured)
    with pytest.raises(
        UserError, match=r"Did you mean 'label/ham/f1'\? It measures: loss, macro_f1"
    ):
        Selection.Config(metric="label/ham/f2").build(directions=measured)


def test_vectors_are_not_decayed(bench):
    groups = bench.make().optimizer.param_groups
    assert [{p.ndim for p in group["params"]} for group in groups] == [{2}, {1}]
    assert [group["weight_decay"] for group in groups] == [0.0, 0.0]
    assert groups[1]["weight_decay"] == 0.0
