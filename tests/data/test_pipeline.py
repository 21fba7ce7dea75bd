"""What each verb means, against plain Python, and what its errors say."""

import gc
import itertools
import threading
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import torch

from textmill import data
from textmill.data import (
    concat_pipelines,
    from_sequence,
    read_text,
    round_robin_pipelines,
    sample_pipelines,
    zip_pipelines,
)
from textmill.data.pipeline import collate
from textmill.errors import DataError, UserError

TEN = from_sequence(range(10))


def given(chain):
    return list(chain.and_return())


def test_simple_verbs_do_what_plain_python_does():
    assert given(TEN.map(str)) == list(map(str, range(10)))
    assert given(TEN.filter(lambda n: n % 3)) == [n for n in range(10) if n % 3]
    assert given(TEN.take(4)) == list(itertools.islice(range(10), 4))
    assert given(TEN.skip(4)) == list(itertools.islice(range(10), 4, None))
    assert given(TEN.skip(40)) == []
    assert given(TEN.shard(1, 4)) == list(range(10))[1::4]
    assert given(TEN.repeat(2)) == [*range(10), *range(10)]
    assert given(TEN.bucket(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert given(TEN.bucket(4, drop_remainder=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert given(TEN.prefetch(2)) == list(range(10))
    assert given(concat_pipelines([TEN, from_sequence("ab")])) == [*range(10), "a", "b"]
    assert given(zip_pipelines([TEN, TEN])) == list(zip(range(10), range(10), strict=True))
    robin = round_robin_pipelines([from_sequence("abc"), from_sequence("x"), from_sequence("12")])
    assert given(robin) == ["a", "x", "1", "b", "2", "c"]


def test_bucket_by_length_gives_each_list_when_it_is_full_and_the_rest_at_the_end():
    words = from_sequence(["a", "bbb", "cc", "dddd", "e", "ff", "g"])
    assert given(words.bucket_by_length([(2, 4), (3, 2)])) == [
        ["bbb", "dddd"],
        ["a", "cc", "e"],
        ["ff", "g"],
    ]


def test_bucket_by_length_names_an_item_that_is_too_long():
    chain = from_sequence(["a", "bbb"]).bucket_by_length([(2, 2)])
    with pytest.raises(DataError, match=r"item 2 has length 3, .* skip_long=True"):
        given(chain)


def test_shuffle_keeps_to_its_windows_and_changes_with_epoch_and_seed():
    pipeline = from_sequence(range(100)).shuffle(40).and_return()
    first, second = list(pipeline), list(pipeline)
    other = given(from_sequence(range(100)).shuffle(40, seed=1))
    for items in (first, second, other):
        assert [sorted(items[a:b]) for a, b in ((0, 40), (40, 80), (80, 100))] == [
            list(range(40)),
            list(range(40, 80)),
            list(range(80, 100)),
        ]
    assert len({tuple(first), tuple(second), tuple(other)}) == 3


def test_repeat_gives_each_round_an_order_of_its_own():
    items = given(from_sequence(range(50)).shuffle(50).repeat(2))
    assert sorted(items[:50]) == sorted(items[50:])
    assert items[:50] != items[50:]


def test_sample_draws_by_weight_and_gives_everything():
    a, b = from_sequence(["a"] * 6000), from_sequence(["b"] * 6000)
    items = given(sample_pipelines([a, b], weights=[3, 1]))
    assert Counter(items) == {"a": 6000, "b": 6000}
    share = items[:6000].count("a") / 6000
    assert abs(share - 0.75) < 0.02  # 3.6 standard deviations


def test_zip_of_unequal_lengths_is_an_error():
    with pytest.raises(DataError, match=r"pipeline 2 ended after 4 items, .* shortest=True"):
        given(zip_pipelines([TEN, TEN.take(4)]))
    assert len(given(zip_pipelines([TEN, TEN.take(4)], shortest=True))) == 4


def test_read_text_strips_what_it_says(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfhead\na \t\r\nb\rc\r\n\n\xc3\xa9")
    assert given(read_text(path)) == ["head", "a", "b\rc", "", "é"]
    assert given(read_text(path, rtrim=False, skip_header=1)) == ["a \t", "b\rc", "", "é"]


def test_the_state_of_a_file_that_has_become_shorter_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\nb\n")
    pipeline = read_text(path).and_return()
    assert list(itertools.islice(pipeline, 2)) == ["a", "b"]
    pipeline.load_state_dict(pipeline.state_dict())
    path.write_text("a\n")
    with pytest.raises(DataError, match="2 items of the epoch were given before"):
        next(iter(pipeline))


def test_an_error_in_map_names_verb_item_and_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("head\n1\nx\n")

    def second(line):
        return int(line)

    with pytest.raises(DataError) as error:
        given(read_text(path, skip_header=1).map(second))
    assert str(error.value) == (
        f"map(second): item 2 ({path}:3): ValueError: invalid literal for int() with base 10: 'x'"
    )
    assert isinstance(error.value.__cause__, ValueError)


def test_an_error_names_its_line_through_shuffle_zip_and_prefetch(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\nx\n3\n")
    lines = read_text(path).shuffle(3).prefetch(2)
    with pytest.raises(DataError, match=rf"\({path}:2\): ZeroDivisionError: "):
        given(zip_pipelines([lines, lines]).filter(lambda pair: 1 / (pair[0] != "x")))


def test_a_stop_iteration_in_map_does_not_end_the_epoch_quietly():
    with pytest.raises(DataError, match=r"^map\(next\): item 1: StopIteration: $"):
        given(from_sequence([iter(())]).map(next))


def test_the_state_of_another_pipeline_is_refused():
    state = TEN.shuffle(5).bucket(2).and_return().state_dict()
    with pytest.raises(DataError, match=r"wanted one of .*map.*, found one of .*shuffle"):
        TEN.map(str).bucket(2).and_return().load_state_dict(state)


def test_prefetch_works_ahead_and_its_state_does_not():
    made = []
    pipeline = TEN.map(lambda n: made.append(n) or n).prefetch(3).and_return()
    stream = iter(pipeline)
    assert next(stream) == 0
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert made == [0, 1, 2, 3]  # one given, three waiting
    assert pipeline.state_dict()["items"] == 1
    pipeline.reset()


def test_prefetch_hands_on_an_error_at_its_item():
    pipeline = TEN.map(lambda n: 6 // (3 - n)).prefetch(2).and_return()
    stream = iter(pipeline)
    assert list(itertools.islice(stream, 3)) == [2, 3, 6]
    with pytest.raises(DataError, match=r"^map\(<lambda>\): item 4: ZeroDivisionError"):
        next(stream)


def test_prefetch_leaves_no_thread_behind():
    def threads():
        return {t for t in threading.enumerate() if t.name.startswith("textmill-prefetch")}

    before = threads()  # other tests' pipelines, if they are not collected yet
    given(TEN.prefetch(2))
    assert threads() <= before
    forgotten = TEN.repeat().prefetch(2).and_return()
    next(iter(forgotten))
    (thread,) = threads() - before
    del forgotten
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_two_iterations_at_once_share_the_epoch():
    pipeline = TEN.and_return()
    a, b = iter(pipeline), iter(pipeline)
    assert [next(a), next(b), next(a)] == [0, 1, 2]
    assert list(b) == list(range(3, 10))
    assert list(a) == []
    assert pipeline.epoch == 1


def test_collate():
    ids = [np.array([1, 2], dtype=np.int32), torch.tensor([3]), [], [4, 5, 6]]
    wanted = torch.tensor([[1, 2, 9], [3, 9, 9], [9, 9, 9], [4, 5, 6]])
    assert torch.equal(collate(ids, pad_idx=9), wanted)
    assert collate(ids, pad_idx=9).dtype == torch.int64
    assert collate([1, 2]).tolist() == [1, 2]
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([["a"], ["b", "c"]]) == [["a"], ["b", "c"]]
    both = collate([{"x": [1], "y": "a"}, {"x": [2], "y": "b"}])
    assert both["x"].tolist() == [[1], [2]]
    assert both["y"] == ["a", "b"]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 16, 17, 40])
def test_packed_blocks_are_the_ids_in_their_order(length):
    random = np.random.default_rng(length)
    rows = [random.integers(1, 99, n, dtype=np.int32).tolist() for n in random.integers(0, 12, 20)]
    everything = list(itertools.chain.from_iterable(rows))
    blocks = [block.tolist() for block in from_sequence(rows).pack(length).and_return()]
    wanted = [everything[i : i + length] for i in range(0, len(everything), length)]
    assert blocks == wanted
    whole = from_sequence(rows).pack(length, drop_remainder=True).and_return()
    assert [block.tolist() for block in whole] == [b for b in wanted if len(b) == length]


def test_a_packed_block_is_its_own():
    source = np.arange(6)
    first, second = from_sequence([source]).pack(3).and_return()
    first += 100
    assert (second.tolist(), source.tolist()) == ([3, 4, 5], [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("item", ["text", [1.5], [[1], [2]], [[1], [2, 3]], 7, {"a": 1}, None])
def test_pack_takes_sequences_of_ids_only(item):
    with pytest.raises(DataError, match="wanted sequences of ids, but item 2"):
        list(from_sequence([[1, 2], item]).pack(2).and_return())


def test_pack_names_the_line_of_what_is_no_ids(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("12\nxy\n", encoding="utf-8")
    chain = read_text(path).map(lambda line: [int(line)] if line.isdigit() else line)
    with pytest.raises(DataError, match=r"item 2 \(.*a\.txt:2\) is 'xy'\. Encode with map before"):
        list(chain.pack(2).and_return())
    with pytest.raises(UserError, match="pack: length must be"):
        chain.pack(0)


def test_every_reader_gives_its_rows(tmp_path):
    path = tmp_path / "rows"
    path.write_text("en\tfr\na\tb\n", encoding="utf-8")
    chain = data.read_tsv(path, {"source": "en"}, header=True)
    assert list(chain.and_return()) == [{"source": "a"}]
    path.write_text('"a;1";b\n', encoding="utf-8")
    pair = data.read_csv(path, separator=";").map(lambda row: (row["source"], row["target"]))
    assert list(pair.and_return()) == [("a;1", "b")]
    path.write_text("# c\na X\nb Y\n\n", encoding="utf-8")
    assert list(data.read_conll(path, comment="#").and_return()) == [
        {"words": "a b", "tags": "X Y"}
    ]
    table = pa.table({"text": ["a", "b"]})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    assert list(data.read_arrow(path, ["text"]).take(1).and_return()) == [{"text": "a"}]


def test_a_bad_row_is_an_error_with_its_place(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n[]\n', encoding="utf-8")
    rows = iter(data.read_jsonl(path, ["text"]).and_return())
    assert next(rows) == {"text": "a"}
    with pytest.raises(DataError, match=rf"^read_jsonl: {path}:2: wanted an object, found a list"):
        next(rows)
