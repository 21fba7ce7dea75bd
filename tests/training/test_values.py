"""Intervals, limits, schedules, selection and parameter groups against brute force and torch."""

import math
from datetime import timedelta

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from textmill.errors import UserError
from textmill.training import Cosine, Every, InverseSquareRoot, Linear, Progress, Selection, Until

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


@pytest.mark.parametrize("text", ["0", "-1 steps", "1.5 epochs", "2 fortnights", "", "steps"])
def test_what_is_no_interval_is_refused(text):
    with pytest.raises(ValueError, match=f"20 min'; found '{text}'$"):
        Every.parse(text)


def test_cosine_and_linear_are_torchs():
    parameter = torch.nn.Parameter(torch.zeros(1))
    lrs = torch.optim.lr_scheduler
    for mine, theirs in (
        (Cosine.Config(), lambda o: lrs.CosineAnnealingLR(o, 20)),
        (Linear.Config(), lambda o: lrs.LinearLR(o, 1.0, 0.0, 20)),
    ):
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        scheduler, schedule = theirs(optimizer), mine.build()
        for step in range(1, 21):
            assert schedule(step, 20) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-9)
            optimizer.step()
            scheduler.step()


def test_warm_up_and_inverse_square_root():
    schedule = InverseSquareRoot.Config(warmup_steps=10).build()
    for step in range(1, 200):
        assert schedule(step, None) == pytest.approx(min(step / 10, math.sqrt(10 / step)))


def test_a_schedule_that_needs_a_length_says_so():
    with pytest.raises(UserError) as caught:
        Cosine.Config().build()(1, None)
    assert str(caught.value) == (
        "The cosine schedule needs the length of the run in steps; it is not known. "
        "Set trainer.max_steps or trainer.max_epochs, or choose "
        "lr_scheduler.type=inverse_square_root."
    )


VALUES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, math.nan]), min_size=1, max_size=12)


@given(VALUES, st.sampled_from(["higher", "lower"]), st.none() | st.integers(1, 4))
def test_selection_is_brute_force(values, way, patience):
    selection = Selection.Config(patience=patience).build(directions={"loss": way})
    numbers = []
    for step, value in enumerate(values):
        sign = 1 if way == "higher" else -1
        is_best = not math.isnan(value) and all(sign * value > sign * n for _, n in numbers)
        assert selection.see(step, {"loss": value}) == is_best
        if not math.isnan(value):
            numbers.append((step, value))
        best = (max if way == "higher" else min)((n for _, n in numbers), default=None)
        first = next((pair for pair in numbers if pair[1] == best), None)
        assert selection.best == first
        since = step - first[0] if first else step + 1
        assert selection.stalled() == (patience is not None and since >= patience)
    again = Selection.Config(patience=patience).build(directions={"loss": way})
    again.load_state_dict(selection.state_dict())
    assert again.best == selection.best


EVALUATIONS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, math.nan]), st.sampled_from([1.0, 2.0, math.nan, math.inf])
    ),
    min_size=1,
    max_size=12,
)


@given(EVALUATIONS, st.integers(1, 4))
def test_at_an_equal_metric_the_lower_loss_is_best_and_patience_is_the_metrics(found, patience):
    config = Selection.Config(metric="exact_match", patience=patience)
    directions = {"exact_match": "higher", "loss": "lower"}
    selection, numbers = config.build(directions=directions), []
    for step, (value, loss) in enumerate(found):
        is_best = selection.see(step, {"exact_match": value, "loss": loss})
        if not math.isnan(value):
            numbers.append((-value, math.inf if math.isnan(loss) else loss, step))
        best = min(numbers, default=None)
        assert is_best == (best is not None and best[2] == step)
        assert selection.best == (best and (best[2], -best[0]))
        oldest = min(((value, step) for value, _, step in numbers), default=(None, -1))[1]
        assert selection.stalled() == (step - oldest >= patience)
        again = config.build(directions=directions)
        again.load_state_dict(selection.state_dict())
        assert repr(again.history) == repr(selection.history)  # as text, where NaN is itself


def test_an_older_runs_evaluation_stays_the_best_where_its_loss_is_not_known():
    directions = {"f1": "higher", "loss": "lower"}
    selection = Selection.Config(metric="f1").build(directions=directions)
    selection.load_state_dict({"history": [[5, 0.25], [6, 0.5]], "best": 6})
    assert selection.best == (6, 0.5)
    assert not selection.see(7, {"f1": 0.5, "loss": 3.0})  # that of step 6 may have been lower
    assert not selection.see(8, {"f1": 0.5, "loss": 2.0})
    assert selection.see(9, {"f1": 0.75, "loss": math.nan})
    assert selection.see(10, {"f1": 0.75, "loss": 2.0})
    older = [[5, 0.25], [6, 0.5]]
    newer = [[7, 0.5, 3.0], [8, 0.5, 2.0], [9, 0.75, math.inf], [10, 0.75, 2.0]]
    assert selection.state_dict() == {"history": older + newer, "best": 10}


def test_a_loss_that_was_no_number_is_beaten_after_a_resume_as_before():
    directions = {"f1": "higher", "loss": "lower"}
    selection = Selection.Config(metric="f1").build(directions=directions)
    assert selection.see(4, {"f1": 0.5, "loss": math.nan})
    again = Selection.Config(metric="f1").build(directions=directions)
    again.load_state_dict(selection.state_dict())
    for each in (selection, again):
        assert each.see(5, {"f1": 0.5, "loss": 3.0})


def test_a_run_of_the_loss_saves_it_once():
    plain = Selection.Config().build(directions={"loss": "lower"})
    plain.see(4, {"loss": 2.0})
    assert plain.state_dict() == {"history": [[4, 2.0]], "best": 4}


def test_a_lower_loss_does_not_take_back_a_difference_that_min_delta_does_not_count():
    config = Selection.Config(metric="f1", min_delta=0.1)
    selection = config.build(directions={"f1": "higher", "loss": "lower"})
    for step, values in enumerate([(0.5, 2.0), (0.55, 1.0), (0.45, 1.0)]):
        selection.see(step, dict(zip(("f1", "loss"), values, strict=True)))
    assert selection.best == (0, 0.5)


def test_a_value_is_found_by_the_name_that_an_older_run_has_of_it():
    config = Selection.Config(metric="subset_accuracy")
    selection = config.build(directions={"accuracy": "higher", "loss": "lower"})
    assert config.metric == "subset_accuracy"  # it is in the key of the run
    assert selection.see(1, {"accuracy": 0.5, "loss": 1.0})
    assert selection.config.metric == "accuracy"
    own = {"subset_accuracy": "higher", "accuracy": "higher"}
    assert config.build(directions=own).config.metric == "subset_accuracy"
    with pytest.raises(UserError, match="'subset_accuracy', which this task does not measure"):
        config.build(directions={"loss": "lower"})


def test_a_metric_that_is_not_measured_is_refused_before_training():
    with pytest.raises(UserError) as caught:
        Selection.Config(metric="blue").build(directions={"loss": "lower", "bleu": "higher"})
    assert str(caught.value) == (
        "trainer.selection.metric is 'blue', which this task does not measure. "
        "Did you mean 'bleu'? It measures: loss, bleu."
    )
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
