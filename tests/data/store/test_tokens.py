"""The token store gives what encoding gives, whatever happened while it was written."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.rows import Rows
from textmill.data.seq2seq_batch import collate_seq2seq
from textmill.data.store import tokens
from textmill.data.store.tokens import (
    TokenStore,
    chunks_of,
    encode_chunks,
    encoded_rows,
    kept_fingerprint,
    text_fingerprint,
    workers_for,
)
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError
from textmill.text.processors.seq2seq import Seq2SeqText
from textmill.text.processors.text_processor import load_text_processor
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer

MARK = "ab" * 32
COLUMNS = ("source", "target")


def same(found, wanted):
    return all(found[name] == wanted[name] for name in wanted) and np.array_equal(
        found.over_length, wanted.over_length
    )


@pytest.fixture
def encoded(text, rows):
    return text.encode(rows, with_targets=True)


def test_what_is_kept_is_what_encoding_gives(text, rows, encoded, cache, caplog):
    caplog.set_level(logging.INFO, "textmill")
    assert same(encoded_rows(text, rows, MARK), encoded)
    (folder,) = [path for path in (cache / "tokens").iterdir() if path.suffix == ""]
    assert len(encoded.over_length) > 3  # the limit of 12 bites
    first, last = caplog.messages
    assert first == f"Tokenizing 500 rows, once, into {folder}."
    assert last.startswith("Tokenized 500 rows in ")
    caplog.clear()
    again = encoded_rows(text, rows, MARK)
    assert same(again, encoded)
    assert caplog.messages == []
    assert again["source"].values.dtype == np.uint16
    assert not again["source"].values.flags.owndata  # mapped


def test_batches_are_the_same_bit_for_bit(text, rows, encoded, cache):
    def epochs(found):
        batching = Batching(max_tokens=200)
        batches = EpochBatches(
            found.columns,
            batching,
            lambda indices: collate_seq2seq(found.columns, indices, pad_idx=0),
            seed=3,
        )
        return [batch for _ in range(2) for batch in batches]

    for one, other in zip(epochs(encoded), epochs(encoded_rows(text, rows, MARK)), strict=True):
        for name in ("source", "source_lengths", "target", "target_lengths"):
            a, b = getattr(one, name), getattr(other, name)
            assert a.dtype == b.dtype
            assert a.equal(b)
        assert np.array_equal(one.rows, other.rows)


def test_little_text_and_unknown_rows_are_not_kept(text, rows, cache):
    for some, mark in ((rows[:2], MARK), (rows, None)):
        assert same(encoded_rows(text, some, mark), text.encode(some, with_targets=True))
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("whose", ["ours", "own"])
def test_much_text_that_is_not_kept_is_encoded_by_several_processes(
    text, rows, encoded, cache, monkeypatch, whose
):
    monkeypatch.setattr(tokens, "WORKER_CHARACTERS", 100)
    monkeypatch.setattr(tokens, "usable_cores", lambda: 2)
    if whose == "own":  # which a process of ours may not know
        monkeypatch.setattr(type(text), "__module__", "mine")
    used = []

    def counted(text, chunks, *, workers=0):
        used.append(workers)
        return encode_chunks(text, chunks, workers=workers)

    monkeypatch.setattr(tokens, "encode_chunks", counted)
    found = encoded_rows(text, rows, None)
    assert same(found, encoded)
    for name in COLUMNS:
        assert found[name].values.dtype == encoded[name].values.dtype
    assert used == ([2] if whose == "ours" else [])
    assert not (cache / "tokens").exists()
    bad = Rows({"source": ["le"] * 300 + ["\ud800"], "target": ["a"] * 301})
    with pytest.raises(DataError, match=r"^Row 300, column 'source': is not text, or holds half"):
        encoded_rows(text, bad, None)


def test_data_may_say_that_nothing_is_kept(text, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("le\tla\n")
    data = [TextPairs.Config(path=path, keep_tokens=keep).build() for keep in (True, False)]
    assert [kept_fingerprint(one, text) for one in data] == [data[0].fingerprint(), None]
    assert data[1].fingerprint() == data[0].fingerprint()


def test_the_name_is_of_text_data_and_limits(text, cache):
    tokenizer = text.tokenizer
    other = MultilingualTokenizer.from_file(tokenizer.config.model, tags="always")
    made = [
        TokenStore.of(text, MARK),
        TokenStore.of(text, MARK[::-1]),
        TokenStore.of(Seq2SeqText(tokenizer, max_source_length=13), MARK),
        TokenStore.of(Seq2SeqText(other, max_source_length=12), MARK),
    ]
    assert len({store.folder for store in made}) == 4


def test_nothing_is_kept_of_what_a_users_own_code_decides(text, tmp_path):
    class OwnPairs(TextPairs):
        def rows(self):
            return Rows({name: [*map(str.upper, super().rows().column(name))] for name in COLUMNS})

    class OwnText(Seq2SeqText):
        pass

    class OwnTokenizer(MultilingualTokenizer):
        pass

    path = tmp_path / "pairs.tsv"
    path.write_text("le chat\tthe cat\n")
    data, own = (kind(TextPairs.Config(path=path)) for kind in (TextPairs, OwnPairs))
    own_tokenizer = OwnTokenizer.from_file(text.tokenizer.config.model)
    assert type(own_tokenizer) is OwnTokenizer
    assert kept_fingerprint(data, text) == data.fingerprint()
    assert kept_fingerprint(own, text) is None
    assert kept_fingerprint(data, OwnText(text.tokenizer)) is None
    assert kept_fingerprint(data, Seq2SeqText(own_tokenizer)) is None
    assert kept_fingerprint([{"source": "le chat"}], text) is None


def test_a_store_of_other_rows_is_made_again(text, rows, encoded, cache, caplog):
    """The same fingerprint, and yet not the same: in number, in ids, in what is too long."""
    folder = TokenStore.of(text, MARK).folder
    encoded_rows(text, rows, MARK)
    less = rows[:499]
    assert same(encoded_rows(text, less, MARK), text.encode(less, with_targets=True))
    other = Rows({"source": rows.column("target")[:499], "target": rows.column("source")[:499]})
    assert same(encoded_rows(text, other, MARK), text.encode(other, with_targets=True))
    told = ". The tokens are made again."
    assert caplog.messages == [
        f"{folder} has 500 rows, and the data 499{told}",
        f"{folder} has other ids than these rows get now{told}",
    ]


def test_a_saved_text_path_is_the_same(text, tmp_path):
    text.save(tmp_path)
    assert text_fingerprint(load_text_processor(tmp_path)) == text_fingerprint(text)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_failing_disk_costs_the_store_only(
    text, rows, encoded, cache, failing_disk, monkeypatch, lasting
):
    monkeypatch.setattr(tokens, "CHUNK_ROWS", 250)
    saved = text_fingerprint(text)
    k = 0
    while True:
        k += 1
        with failing_disk(k, lasting=lasting) as disk, pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "text_fingerprint", lambda _: saved)  # saving it is another test
            found = encoded_rows(text, rows, f"{lasting}{k}")
        assert same(found, encoded), disk.failed
        if not k % 5:  # what was left behind does not hinder the next attempt
            assert same(encoded_rows(text, rows, f"{lasting}{k}"), encoded)
        if disk.failed is None:
            break
    assert k > 9


TWO = """
import sys, logging
from textmill.data.rows import Rows
from textmill.data.store import tokens
from textmill.text.processors.text_processor import load_text_processor
from pathlib import Path
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
tokens.LEAST_CHARACTERS, tokens.CHUNK_ROWS = 1, 50
rows = Rows({"source": ["le chat"] * 4000, "target": ["the cat"] * 4000})
text = load_text_processor(Path(sys.argv[1]))
encoded = tokens.encoded_rows(text, rows, "two")
assert encoded["source"] == text.encode(rows, with_targets=True)["source"]
assert "torch" not in sys.modules
"""


def test_two_processes_at_once_do_it_once(text, cache, tmp_path):
    (tmp_path / "text").mkdir()
    text.save(tmp_path / "text")
    command = [sys.executable, "-c", TWO, str(tmp_path / "text")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert sum(text.count("Tokenized 4,000 rows") for text in said) == 1


@pytest.mark.parametrize("name", ["source.values", "target.offsets", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_store_is_made_again(text, rows, encoded, cache, caplog, name, damage):
    encoded_rows(text, rows, MARK)
    store = TokenStore.of(text, MARK)
    path = store.folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    if damage != "remove":
        path.write_bytes(data if damage == "flip" else data[:-1])
    caplog.clear()
    assert same(store.get(text, rows, whole=True), encoded)
    (warning,) = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.startswith(str(path))
    assert warning.endswith(". The tokens are made again.")
    assert same(store.open(whole=True)[1], encoded)


def test_what_was_killed_is_begun_anew(text, rows, encoded, cache, monkeypatch):
    """What is left half-made is deleted, but nothing of another store."""
    folder = TokenStore.of(text, MARK).folder
    (other := folder.with_name(f".other.tmp-{os.getpid()}")).mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        patch.setattr(tokens, "chunks_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            encoded_rows(text, rows, MARK)
    (half,) = folder.parent.glob(f".{folder.name}.tmp-*")
    half.rename(half.with_name(f".{folder.name}.tmp-999999"))
    assert same(encoded_rows(text, rows, MARK), encoded)
    assert [*folder.parent.glob(".*")] == [other]


CHUNKS = [slice(0, 200), slice(200, 201), slice(201, 201), slice(201, 450), slice(450, 500)]


def test_workers_give_what_one_process_gives(text, rows, monkeypatch):
    chunks = [rows[part] for part in CHUNKS]
    alone = list(encode_chunks(text, chunks))
    monkeypatch.setattr(type(text), "encode", lambda *a, **k: pytest.fail("encoded here"))
    together = list(encode_chunks(text, chunks, workers=2))
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))


def test_a_worker_that_dies_or_never_starts_costs_time_only(text, rows, monkeypatch):
    wanted = text.encode(rows[:50], with_targets=True)
    for name, broken in (
        ("textmill.data.store.tokens._start_worker", os._exit),  # it takes a number
        ("multiprocessing.spawn._python_exe", b"/bin/false"),
        ("multiprocessing.spawn._python_exe", b"/no/such/python"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, broken)
            found, again = encode_chunks(text, [rows[:50]] * 2, workers=2)
        assert same(found, wanted)
        assert same(again, wanted)


def test_a_row_that_cannot_be_encoded_is_the_same_error(text):
    rows = Rows({"source": ["le", "\ud800"], "target": ["a", "b"]})
    for workers in (0, 2):
        with pytest.raises(
            DataError, match=r"^Row 1, column 'source': is not text, or holds half of a surrogate"
        ):
            list(encode_chunks(text, [rows], workers=workers))


SCRIPT = """
import sys
from pathlib import Path
from textmill.data.store import tokens
from textmill.text.processors.text_processor import load_text_processor
print("runs")
text = load_text_processor(Path(sys.argv[1]))
(found,) = tokens.encode_chunks(text, [[{"source": "le", "target": "the"}]], workers=1)
assert found.num_rows == 1
"""


def test_a_worker_does_not_run_the_users_script(text, tmp_path):
    text.save(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "runs\n"


def test_workers_are_used_where_they_pay(monkeypatch):
    monkeypatch.setattr(tokens, "usable_cores", lambda: 64)
    assert [workers_for(n * 1_000_000) for n in (0, 31, 32, 64, 9_999)] == [0, 0, 2, 4, 8]
    monkeypatch.setattr(tokens, "usable_cores", lambda: 1)
    assert workers_for(10**12) == 0


def test_chunks_are_bounded_and_whole(monkeypatch):
    monkeypatch.setattr(tokens, "CHUNK_ROWS", 10)
    monkeypatch.setattr(tokens, "CHUNK_CHARACTERS", 100)
    texts = ["x" * n for n in (3, 300, 1, 1, 99, 99, 0, 5, 7, 250, 1, 1, 1)]
    parts = list(chunks_of(Rows({"a": texts, "b": texts}), ["a", "b"]))
    assert [row["a"] for part in parts for row in part] == texts
    assert all(len(part) <= 10 for part in parts)
    assert len(parts) > 4
