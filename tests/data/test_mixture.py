"""Weighted sources with epochs of their own, against lists of all rows that each would give."""

import itertools
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import textmill
from tests.data.resuming import resumed_everywhere
from textmill.data import mixture as orders
from textmill.data import text_pairs
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.data.mixture import Mixture, permuted
from textmill.data.text_rows import TextRows
from textmill.errors import UserError
from textmill.text.ragged import Ragged

SIZES = (7, 30, 4)


def mixture(sizes=SIZES, weights=(5, 1, 2)):
    names = [f"s{number}" for number in range(len(sizes))]
    return Mixture.of(names, sizes, weights=weights, temperature=None)


def brute_force(mixed, seed, epochs, *, in_order=False):
    """The rows of each epoch: every source's orders are written out, one epoch after the other."""
    starts = np.cumsum([0, *mixed.sizes]).tolist()

    def stream(source, size):
        for own in itertools.count():
            if in_order:
                yield from range(starts[source], starts[source + 1])
                continue
            yield from permuted(np.arange(size), size, [seed, own, 3, source + 1]) + starts[source]

    streams = [stream(source, size) for source, size in enumerate(mixed.sizes)]
    return [
        [int(next(s)) for s, q in zip(streams, mixed.quotas, strict=True) for _ in range(q)]
        for _ in range(epochs)
    ]


@pytest.mark.parametrize("sizes", [SIZES, (1, 100), (50, 50)])
def test_rows_are_those_of_the_sources_read_one_epoch_after_the_other(sizes):
    mixed = mixture(sizes, (5, 1, 2)[: len(sizes)])
    total = sum(sizes)
    assert sum(mixed.quotas) == total
    for epoch, wanted in enumerate(brute_force(mixed, 9, 5)):
        assert mixed.rows(np.arange(total), seed=9, epoch=epoch).tolist() == wanted
        some = np.array([total - 1, 0, total // 2])
        assert mixed.rows(some, seed=9, epoch=epoch).tolist() == [wanted[at] for at in some]


def test_a_source_gives_all_its_rows_before_one_comes_again():
    mixed, counts = mixture(), Counter()
    for epoch in range(6):
        counts.update(mixed.rows(np.arange(41), seed=3, epoch=epoch).tolist())
        ends = np.cumsum([0, *SIZES]).tolist()
        for number, (first, stop) in enumerate(itertools.pairwise(ends)):
            seen = [counts[row] for row in range(first, stop)]
            assert max(seen) - min(seen) <= 1
            own = mixed.epochs(epoch + 1)[f"s{number}"]
            assert own == pytest.approx(sum(seen) / (stop - first), abs=1e-3)


@pytest.mark.parametrize(
    ("weights", "temperature", "quotas"),
    [
        ((1, 1, 1), None, (14, 14, 13)),
        (None, 1, SIZES),
        (None, 5, (13, 17, 11)),
        ((0.2, 0.3, 0.5), None, (8, 12, 21)),
    ],
)
def test_quotas_follow_weights_or_sizes(weights, temperature, quotas):
    assert Mixture.of("abc", SIZES, weights=weights, temperature=temperature).quotas == quotas


def test_a_source_of_which_no_row_is_left_is_refused():
    rows = np.flatnonzero(np.arange(41) < SIZES[0] + SIZES[1])
    with pytest.raises(UserError, match=r"^weights: of the 37 rows .* of s2, of which 0 can be "):
        batches(rows=rows)


def batches(size=6, rows=None):
    column = Ragged.from_lists([[1] * (1 + n % 5) for n in range(41)])
    batching = Batching(batch_size=size, mixture=mixture())
    return EpochBatches({"a": column}, batching, lambda rows: rows.tolist(), seed=9, rows=rows)


@pytest.mark.parametrize("whole", [True, False])
def test_batches_have_the_rows_of_the_mixture_and_go_on_from_every_place(monkeypatch, whole):
    if not whole:
        monkeypatch.setattr(orders, "WHOLE_ROWS", 20)
        monkeypatch.setattr(orders, "WINDOW_ROWS", 12)
    straight, epochs = resumed_everywhere(batches, 3)
    assert straight.num_windows == (1 if whole else 4)
    for found, wanted in zip(epochs, brute_force(mixture(), 9, 3), strict=True):
        assert len(found) == 7
        assert sorted(row for batch in found for row in batch) == sorted(wanted)


@pytest.fixture
def folder(tmp_path, monkeypatch, caplog):
    """Sources of 40 and of 10 rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    caplog.set_level(logging.INFO, "textmill")
    Path("many").mkdir()
    for number in range(2):
        lines = [f"{'ham' if n % 2 else 'spam'}\tmany {number} {n}\n" for n in range(20)]
        Path(f"many/{number}.tsv").write_text("".join(lines))
    Path("few.tsv").write_text("".join(f"ham\tfew {n}\n" for n in range(10)))
    return tmp_path


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_entries_of_a_path_are_the_sources(folder, monkeypatch, held):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    data = TextRows.Config(path=("many", "few.tsv"), weights=(1, 1)).build()
    mixed = data.batching.mixture
    assert (mixed.names, mixed.sizes, mixed.quotas) == (("many", "few.tsv"), (40, 10), (25, 25))
    assert len(data) == 50
    config = TextRows.Config(path=("many", "few.tsv"), temperature=5, holdout=0.2)
    sides = [
        TextRows.Config(**{**vars(config), "held_out": held}).build() for held in (False, True)
    ]
    assert sides[1].batching.mixture is None
    sizes = sides[0].batching.mixture.sizes
    kept = [row["text"].split()[0] for row in sides[0]]
    assert sizes == (kept.count("many"), kept.count("few"))
    assert TextRows.Config(path="few.tsv", weights=(1, 1), shuffle=False).build().batching == (
        TextRows.Config(path="few.tsv", shuffle=False).build().batching
    )


END = 1


def blocks(**settings):
    """Blocks of 41 rows of one to six tokens, all of them others, each ended by ``END``."""
    ids = iter(range(2, 1000))
    rows = [[*(next(ids) for _ in range(n % 6)), END] for n in range(41)]
    blocking = Blocking(length=5, batch_size=3, shuffle=True, seed=9, **settings)
    text = Ragged.from_lists(rows)
    return rows, TextBlocks(text, [{}] * 41, blocking, before=END, mixture=mixture())


@pytest.mark.parametrize("streams", [True, False])
def test_blocks_are_cut_out_of_the_rows_of_the_mixture_and_go_on_from_every_place(streams):
    def plain(batch):
        return _pairs(batch), batch.begins, batch.rows.tolist()

    rows, _ = blocks(streams=streams)
    pairs = [[*zip([END, *row[:-1]], row, strict=True)] for row in rows]
    _, epochs = resumed_everywhere(lambda: blocks(streams=streams)[1], 3, plain=plain)
    orders = set()
    for found, wanted in zip(epochs, brute_force(mixture(), 9, 3, in_order=True), strict=True):
        assert [begins for _, begins, _ in found] == [True] + [False] * (len(found) - 1)
        read = [pair for pairs_read, _, _ in found for pair in pairs_read]
        assert Counter(read) == Counter(pair for row in wanted for pair in pairs[row])
        orders.add(tuple(read))
        assert {row for _, _, seen in found for row in seen} == {*wanted}
    assert len(orders) == 3


def test_what_is_counted_are_the_rows_that_are_trained_on(folder, caplog):
    """A source of which half is too long for the model is begun again twice as often."""
    long = " ".join(f"w{n}" for n in range(80))
    lines = [f"ham\t{long if n % 2 else 'few'} {n}\n" for n in range(10)]
    Path("few.tsv").write_text("".join(lines))
    words = [word for word in WORDS if not word.startswith("valid")]
    words += [
        "valid_data=null",
        "task.max_length=20",
        "task.over_length=skip",
        "trainer.max_steps=6",
    ]
    run = textmill.train("classification/averaging/local", words)
    assert run.result["sources"] == {"many": 23 / 40, "few.tsv": 22 / 5}  # 45 rows, 8 a step
    assert (
        "train_data: rows in an epoch: 23 of many (0.575 of its own), 22 of few.tsv (4.4 of its "
        "own)"
    ) in caplog.messages


WORDS = [
    *("train_data.path=[many,few.tsv]", "train_data.weights=[1,1]", "train_data.batch_size=8"),
    *("valid_data.path=few.tsv", "reporters.console=false", "lr_scheduler.type=constant"),
]


def _pairs(batch):
    """What is read and what is to be found, of the targets that count."""
    counted = np.ones(batch.inputs.shape, bool) if batch.counted is None else batch.counted.numpy()
    both = (batch.inputs.numpy()[counted], batch.targets.numpy()[counted])
    return [*zip(*(each.tolist() for each in both), strict=True)]
