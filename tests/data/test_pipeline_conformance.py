"""What every verb and every chain must do, whatever else it does. A new verb is a line here."""

import json
from collections.abc import Callable
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from textmill.data.pipeline import (
    DataPipeline,
    PipelineBuilder,
    concat_pipelines,
    from_sequence,
    read_csv,
    read_jsonl,
    read_parquet,
    read_text,
    read_tsv,
    round_robin_pipelines,
    sample_pipelines,
    zip_pipelines,
)

EPOCHS = 3
WORDS = [f"{n}{'s' * (n % 5)}" for n in range(14)]


@pytest.fixture(scope="module", autouse=True)
def lines_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbfhead\n" + "\r\n".join(WORDS).encode())
    Chains.path = path
    Chains.jsonl = path.with_name("rows.jsonl")
    Chains.jsonl.write_text("".join(f'{{"word": "{word}"}}\n' for word in WORDS))
    Chains.parquet = path.with_name("rows.parquet")
    pq.write_table(pa.table({"word": WORDS}), Chains.parquet, row_group_size=5)
    return path


class Chains:
    path = jsonl = parquet = None


def numbers(n: int = 13) -> PipelineBuilder[int]:
    return from_sequence(range(n))


def lines() -> PipelineBuilder[str]:
    return read_text(Chains.path, skip_header=1)


def ids(seed: int = 0) -> PipelineBuilder[np.ndarray]:
    random = np.random.default_rng(seed)
    return from_sequence([random.integers(1, 99, n, dtype=np.int32) for n in (1, 5, 2, 9, 4, 4, 7)])


def tutorial() -> PipelineBuilder[torch.Tensor]:
    def column(at: int) -> DataPipeline[list[int]]:
        return lines().map(lambda word: [ord(c) + at for c in word]).and_return()

    pairs = zip_pipelines([column(0), column(1)]).shuffle(5).batch(3, pad_idx=0)
    return pairs.map(lambda st: st[0] + st[1])


BUILDS: dict[str, Callable[[], PipelineBuilder]] = {
    "from_sequence": numbers,
    "read_text": lines,
    "read_tsv": lambda: read_tsv(Chains.path, ["word"]).shuffle(4),
    "read_csv": lambda: read_csv(Chains.path, {"word": "head"}, header=True),
    "read_jsonl": lambda: read_jsonl(Chains.jsonl, ["word"]),
    "read_parquet": lambda: read_parquet(Chains.parquet, ["word"]),
    "map": lambda: numbers().map(lambda n: n * n),
    "filter": lambda: numbers().filter(lambda n: n % 3),
    "filter nothing left": lambda: numbers().filter(lambda n: False),
    "shuffle": lambda: numbers().shuffle(5, seed=3),
    "shuffle whole": lambda: numbers().shuffle(100),
    "shuffle exact windows": lambda: numbers(12).shuffle(4),
    "shuffle twice": lambda: numbers().shuffle(4).shuffle(6, seed=1),
    "shard": lambda: numbers().shard(1, 3),
    "bucket": lambda: numbers().bucket(4),
    "bucket drop": lambda: numbers().bucket(4, drop_remainder=True),
    "bucket_by_length": lambda: ids().bucket_by_length([(2, 2), (3, 5), (2, 10)]),
    "bucket_by_length skip": lambda: ids().bucket_by_length([(2, 2), (2, 5)], skip_long=True),
    "bucket_by_length long wait": lambda: (
        numbers(40).map(lambda n: "x" * (1 if n else 9)).bucket_by_length([(4, 1), (2, 9)])
    ),
    "pack": lambda: ids().pack(6),
    "pack short": lambda: ids().pack(2, drop_remainder=True),
    "pack all": lambda: lines().map(lambda word: [*map(ord, word)]).shuffle(4).pack(99),
    "pack and batch": lambda: from_sequence([[], [1], [], [2, 3, 4]]).pack(1).batch(3, pad_idx=0),
    "batch": lambda: ids().batch(3, pad_idx=0),
    "zip": lambda: zip_pipelines([numbers(7), ids()]),
    "zip shortest": lambda: zip_pipelines([numbers(9), ids()], shortest=True),
    "concat": lambda: concat_pipelines([numbers(3), numbers(0), numbers(4)]),
    "round_robin": lambda: round_robin_pipelines([numbers(3), numbers(0), numbers(6)]),
    "sample": lambda: sample_pipelines([numbers(9), lines()], weights=[3, 1], seed=5),
    "repeat": lambda: numbers(4).shuffle(3).repeat(3),
    "repeat without end": lambda: numbers(4).shuffle(3).repeat().take(9),
    "take": lambda: numbers().take(5),
    "take none": lambda: numbers().take(0),
    "skip": lambda: numbers().skip(9),
    "prefetch": lambda: numbers().shuffle(5).prefetch(3),
    "prefetch inside": lambda: lines().prefetch(2).shuffle(4).bucket(2).prefetch(2),
    "tutorial": tutorial,
    "tutorial by length": lambda: (
        zip_pipelines([lines(), lines()]).shuffle(7).bucket_by_length([(3, 3), (2, 20)]).collate()
    ),
    "mixture": lambda: (
        sample_pipelines([lines().shuffle(4).repeat(2), numbers().shuffle(9)], seed=2)
        .filter(lambda item: item != 3)
        .shuffle(6)
        .shard(0, 2)
        .bucket(3)
    ),
}

every_build = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())


def plain(item):
    """Arrays and tensors as lists, so that items compare."""
    if isinstance(item, np.ndarray | torch.Tensor):
        return item.tolist()
    if isinstance(item, list | tuple):
        return [plain(part) for part in item]
    return item


def epochs(pipeline: DataPipeline, until: int = EPOCHS) -> list[list]:
    """The items of what is left of this epoch, and of those that follow."""
    return [[plain(item) for item in pipeline] for _ in range(until - pipeline.epoch)]


@every_build
def test_a_fresh_instance_gives_the_same_epochs(build):
    assert epochs(build().and_return()) == epochs(build().and_return())


@every_build
def test_resumes_exactly_at_every_position(build):
    first = build().and_return()
    wanted = epochs(build().and_return())
    for epoch in range(EPOCHS):
        stream = iter(first)
        for position in range(len(wanted[epoch]) + 1):
            state = json.loads(json.dumps(first.state_dict()))
            second = build().and_return()
            second.load_state_dict(state)
            assert second.state_dict() == state
            rest = epochs(second)
            assert rest == [wanted[epoch][position:], *wanted[epoch + 1 :]], (epoch, position)
            assert plain(next(stream, None)) == next(iter(wanted[epoch][position:]), None)


@every_build
def test_a_state_does_not_change_later(build):
    pipeline = build().and_return()
    for _ in islice(pipeline, 2):
        pass
    state = pipeline.state_dict()
    before = json.dumps(state)
    list(pipeline)
    assert json.dumps(state) == before


@every_build
def test_an_epoch_left_in_the_middle_is_gone_on_with(build):
    wanted = epochs(build().and_return())
    pipeline = build().and_return()
    begun = [plain(item) for item in islice(pipeline, min(2, len(wanted[0])))]
    assert [begun + [plain(item) for item in pipeline], *epochs(pipeline)] == wanted


@every_build
def test_a_chain_can_be_opened_twice_at_once(build):
    chain = build()
    first, second = chain.and_return(), chain.and_return()
    assert all(plain(a) == plain(b) for a, b in zip(first, second, strict=True))


@every_build
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_partition(build, count):
    whole = epochs(build().and_return(), until=2)
    shards = [epochs(build().shard(i, count).and_return(), until=2) for i in range(count)]
    for epoch, items in enumerate(whole):
        assert [items[i::count] for i in range(count)] == [shard[epoch] for shard in shards]


@every_build
def test_reset_starts_anew(build):
    pipeline = build().and_return()
    wanted = epochs(pipeline)
    for _ in islice(pipeline, 1):
        pass
    pipeline.reset()
    assert epochs(pipeline) == wanted
