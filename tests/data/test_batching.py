"""The plan of an epoch: every row once, within the budget, with little padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.data.batching import Batching, plan_epoch, plan_statistics, split
from textmill.errors import UserError

columns = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=0, max_size=200).map(
    lambda rows: [np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1)]
)
batchings = st.one_of(
    st.builds(Batching, max_tokens=st.integers(1, 400), shuffle=st.booleans()),
    st.builds(Batching, batch_size=st.integers(1, 50), shuffle=st.booleans()),
)


def flat(plan):
    return [int(i) for batch in plan for i in batch]


@given(columns, batchings, st.integers(-(2**70), 2**70), st.integers(0, 9))
def test_every_row_is_in_one_batch(lengths, batching, seed, epoch):
    plan = plan_epoch(lengths, batching, seed=seed, epoch=epoch)
    assert sorted(flat(plan)) == list(range(len(lengths[0])))
    assert all(len(batch) for batch in plan)


@given(columns, st.integers(1, 400), st.booleans())
def test_only_single_rows_are_over_the_budget(lengths, max_tokens, shuffle):
    batching = Batching(max_tokens=max_tokens, shuffle=shuffle)
    plan = plan_epoch(lengths, batching, seed=3, epoch=0)
    cells = [len(batch) * sum(int(c[batch].max()) for c in lengths) for batch in plan]
    over = [batch.tolist() for batch, size in zip(plan, cells, strict=True) if size > max_tokens]
    assert sorted(over) == [[row] for row in np.flatnonzero(sum(lengths) > max_tokens)]


@given(columns, st.integers(20, 400))
def test_batches_are_filled(lengths, max_tokens):
    """No batch of an unshuffled plan could take the row after it: the greedy loop, done by hand."""
    plan = plan_epoch(lengths, Batching(max_tokens=max_tokens, shuffle=False), seed=3, epoch=0)
    order, expected = flat(plan), []
    for row in order:
        longer = [*expected[-1], row] if expected else [row]
        cells = len(longer) * sum(int(column[longer].max()) for column in lengths)
        if expected and cells <= max_tokens:
            expected[-1].append(row)
        else:
            expected.append([row])
    assert [batch.tolist() for batch in plan] == expected


@pytest.mark.parametrize("batching", [Batching(max_tokens=200), Batching(batch_size=8)])
def test_seed_and_epoch_change_it(batching):
    lengths = [np.random.default_rng(i).integers(1, 12, 300) for i in (0, 1)]
    plans = {
        tuple(flat(plan_epoch(lengths, batching, seed=seed, epoch=epoch)))
        for seed in (1, 2)
        for epoch in (0, 1)
    }
    assert len(plans) == 4


def test_without_shuffle_epochs_are_alike_and_go_from_short_to_long():
    lengths = [np.array([5, 1, 3, 1]), np.array([5, 1, 3, 1])]
    batching = Batching(batch_size=2, shuffle=False)
    plans = [plan_epoch(lengths, batching, seed=s, epoch=e) for s, e in ((1, 0), (2, 5))]
    assert [[b.tolist() for b in plan] for plan in plans] == [[[1, 3], [2, 0]]] * 2


def test_batch_size_is_exact_but_for_the_last_rows():
    lengths = [np.arange(1, 104)]
    sizes = [len(b) for b in plan_epoch(lengths, Batching(batch_size=10), seed=1, epoch=0)]
    assert sorted(sizes) == [3] + [10] * 10


def test_ties_mix_from_epoch_to_epoch():
    lengths = [np.full(400, 5), np.full(400, 5)]
    first, second = (
        {frozenset(b.tolist()) for b in plan_epoch(lengths, Batching(100), seed=1, epoch=e)}
        for e in (0, 1)
    )
    assert not first & second


@given(st.lists(st.integers(), unique=True, max_size=30), st.integers(1, 8))
def test_shares_of_ranks_are_the_step(rows, world_size):
    batch = np.array(rows[:30], dtype=object)
    shares = [split(batch, rank, world_size) for rank in range(world_size)]
    assert sorted(int(i) for share in shares for i in share) == sorted(rows)
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_statistics_are_those_of_a_plain_count():
    rng = np.random.default_rng(5)
    lengths = [rng.integers(1, 30, 500) for _ in range(2)]
    plan = plan_epoch(lengths, Batching(max_tokens=300), seed=1, epoch=0)
    stats = plan_statistics(lengths, plan)
    assert (stats.batches, stats.rows) == (len(plan), 500)
    assert stats.tokens == sum(int(c.sum()) for c in lengths)
    assert stats.cells == sum(len(b) * int(c[b].max()) for b in plan for c in lengths)
    assert stats.padding == (stats.cells - stats.tokens) / stats.cells
    assert plan_statistics([np.zeros(0, np.int64)], []).padding == 0.0


def test_auto_is_a_number_that_is_still_to_be_found():
    batching = Batching(max_tokens="auto")
    assert batching.is_auto
    lengths = [np.array([2, 3])]
    message = (
        "max_tokens=auto is found when textmill train starts a run, and this is not a run. Give a "
        "number."
    )
    with pytest.raises(UserError) as caught:
        plan_epoch(lengths, batching, seed=1, epoch=0)
    assert str(caught.value) == message
    with pytest.raises(UserError) as caught:
        Batching(max_tokens="auto", batch_size=8)
    assert str(caught.value) == (
        "max_tokens=auto finds a number that would not be used, since batch_size is 8. Set "
        "batch_size=null, or leave max_tokens=auto out."
    )
    with pytest.raises(UserError) as caught:
        Batching(max_tokens="most")
    assert str(caught.value) == "Batching.max_tokens: wanted int | 'auto' | None, found 'most'."


def test_rows_of_any_length_share_a_batch_where_length_says_much():
    lengths = [np.arange(1, 65)]
    mixed = Batching(batch_size=8, by_length=False)
    plan = plan_epoch(lengths, mixed, seed=1, epoch=0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(64))
    assert min(np.ptp(lengths[0][batch]) for batch in plan) > 20
    alike = plan_epoch(lengths, Batching(batch_size=8), seed=1, epoch=0)
    assert {np.ptp(lengths[0][batch]) for batch in alike} == {7}
    evaluated = Batching(batch_size=8, by_length=False, shuffle=False)
    told = plan_epoch(lengths, evaluated, seed=1, epoch=0)
    assert {np.ptp(lengths[0][batch]) for batch in told} == {7}
