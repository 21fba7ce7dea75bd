"""The token store gives what encoding gives, whatever happened while it was written."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from textmill.data import text_pairs
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.rows import Rows, StoredRows
from textmill.data.seq2seq_batch import collate_seq2seq
from textmill.data.store import encoding, tokens
from textmill.data.store.arrays import ArrayWriter
from textmill.data.store.encoding import encode_chunks
from textmill.data.store.tokens import (
    TokenStore,
    chunks_of,
    encoded_rows,
    kept_fingerprint,
    text_fingerprint,
)
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, StorageError, UserError
from textmill.text.processors.text_processor import Seq2SeqText, load_text_processor
from textmill.text.tokenizers.multilingual import MultilingualTokenizer

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
    assert first.startswith(f"Tokenizing 500 rows, once, into {folder} (about ")
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
    monkeypatch.setattr(encoding, "WORKER_CHARACTERS", 100)
    monkeypatch.setattr(encoding, "usable_cores", lambda: 2)
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


def test_only_files_that_are_new_are_encoded_again(text, cache, tmp_path, monkeypatch, caplog):
    """One is changed, one is new, one has moved in the order, and one is there as it was."""
    caplog.set_level(logging.INFO, "textmill")
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    folder = tmp_path / "shards"
    folder.mkdir()

    def write(name, word, count):
        lines = [f"{word} chat {'le ' * (n % 9)}\t{word} cat\n" for n in range(count)]
        (folder / name).write_text("".join(lines))

    def opened():
        data = TextPairs.Config(path=folder).build()
        found = encoded_rows(text, data.rows(), kept_fingerprint(data, text))
        assert same(found, text.encode([*data.rows()], with_targets=True))
        return len(data)

    for name, word, count in (("b", "le", 70), ("c", "la", 130), ("d", "est", 5)):
        write(name, word, count)
    opened()
    (folder / "b").rename(folder / "e")
    write("d", "gare", 9)
    write("a", "la", 3)
    seen = []
    encode = type(text).encode

    def counted(self, rows, **how):
        seen.append(len(rows))
        return encode(self, rows, **how)

    with monkeypatch.context() as patch:
        patch.setattr(type(text), "encode", counted)
        data = TextPairs.Config(path=folder).build()
        store = TokenStore.of(text, data.fingerprint())
        monkeypatch.setattr(TokenStore, "_room", lambda self, text, rows: 0)
        store.get(text, data.rows(), workers=0)
    assert sum(seen) == 3 + 9
    assert "Of files that did not change the ids are there: of 200 rows." in caplog.messages
    assert opened() == 212
    for array in cache.glob("tokens/*/source.values"):
        array.write_bytes(array.read_bytes()[:-2])  # damaged: nothing is taken from these
    write("f", "le", 4)
    assert opened() == 216


def test_every_list_of_rows_can_be_kept(text, rows, encoded, cache):
    assert same(encoded_rows(text, [*rows], MARK), encoded)
    lacking = [{"source": "le chat"}] * 99
    with pytest.raises(UserError, match=r"^Row 0 has no column 'target'; its columns: source\.$"):
        encoded_rows(text, lacking, MARK)


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


def test_another_encoding_of_ours_is_another_store(text, cache, monkeypatch):
    before = TokenStore.of(text, MARK)
    monkeypatch.setattr(tokens, "ENCODING", tokens.ENCODING + 1)
    assert TokenStore.of(text, MARK).folder != before.folder


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


@pytest.mark.parametrize("words", [1, 40])
def test_the_room_said_is_about_what_is_taken(text, cache, words, monkeypatch):
    """Also where a character is an id, or several: é is none of this tokenizer's pieces."""
    rows = Rows({side: ["zé" * (words + n % 5) for n in range(3_000)] for side in COLUMNS})
    asked = []
    monkeypatch.setattr(tokens, "check_room", lambda folder, needed: asked.append(needed))
    store = TokenStore.of(text, MARK)
    store.get(text, rows)
    taken = sum(path.stat().st_size for path in store.folder.iterdir()) - 2_000  # its manifest
    assert asked[0] == pytest.approx(taken, rel=0.05)


def test_rows_are_compared_all_over_and_few_where_they_are_long(rows):
    numbers, some = tokens.spread_rows(rows, 3)
    assert [rows[i] for i in numbers] == some
    assert (len(some), numbers[0], numbers[-1]) == (3 * tokens.PLACES, 0, len(rows) - 1)

    class Long(StoredRows):
        def __len__(self):
            return len(rows)

        def read(self, start, stop):
            return rows[start:stop]

        place_of = None

    long = Long(COLUMNS, 500 * tokens.CHUNK_CHARACTERS)
    numbers, some = tokens.spread_rows(long, 3)
    assert len(numbers) == len(some) == tokens.PLACES
    assert tokens.spread_rows([], 3)[1] == []


def test_a_saved_text_path_is_the_same(text, tmp_path):
    text.save(tmp_path)
    assert text_fingerprint(load_text_processor(tmp_path)) == text_fingerprint(text)


@pytest.mark.parametrize("appended", [0, 1, 2, 7])
def test_what_was_killed_goes_on_from_whole_chunks(
    text, rows, encoded, cache, monkeypatch, caplog, appended
):
    caplog.set_level(logging.INFO, "textmill")
    append, count = ArrayWriter.append, []

    def dying(self, arrays, place):
        if len(count) == appended:  # after the first array was written
            name, values = next(iter(arrays.items()))
            with (self.part / name).open("ab") as file:
                file.write(np.asarray(values).tobytes() + b"half")
            raise KeyboardInterrupt
        count.append(place)
        append(self, arrays, place)

    with monkeypatch.context() as patch:
        patch.setattr(ArrayWriter, "append", dying)
        with pytest.raises(KeyboardInterrupt):
            encoded_rows(text, rows, MARK)
    caplog.clear()
    assert same(encoded_rows(text, rows, MARK), encoded)
    done = max(0, appended - 1) * 64
    assert (f"going on at row {done:,}" in caplog.messages[0]) == (done > 0)
    assert caplog.messages[1].startswith(f"Tokenized {500 - done} rows in ")


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
    assert same(encoded_rows(text, rows, MARK), encoded)
    (warning,) = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.startswith(str(path))
    assert warning.endswith(". The tokens are made again.")
    assert same(store.open(whole=True)[1], encoded)


def test_a_copied_store_is_read_whole_once_and_used(text, rows, encoded, cache, caplog):
    encoded_rows(text, rows, MARK)
    store = TokenStore.of(text, MARK)
    for path in store.folder.iterdir():
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    assert same(encoded_rows(text, rows, MARK), encoded)
    assert caplog.records == []


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
    assert k > 40


def test_what_a_killed_process_had_yet_to_delete_is_deleted(
    text, rows, encoded, cache, monkeypatch
):
    """Of this store only: another's may be at work."""
    encoded_rows(text, rows, MARK)
    folder = TokenStore.of(text, MARK).folder
    (folder / "source.values").write_bytes(b"")
    other = folder.with_name(".other.tmp-1")
    other.mkdir()

    def killed(path, **_):
        if f".{folder.name}.tmp-" in str(path):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            encoded_rows(text, rows, MARK)
    assert len(list(folder.parent.glob(f".{folder.name}.tmp-*"))) == 1
    assert same(encoded_rows(text, rows, MARK), encoded)
    assert list(folder.parent.glob(".*")) == [other]


def test_too_little_room_is_said_before_anything_is_written(text, rows, cache, monkeypatch):
    monkeypatch.setattr("textmill.data.store.arrays.operations.free", lambda _: 10)
    with pytest.raises(StorageError) as error:
        TokenStore.of(text, MARK).get(text, rows)
    assert str(error.value).startswith(f"{cache / 'tokens'} needs about ")
    assert str(error.value).endswith(
        " bytes, and 10 are free. Make room, or name another folder with the environment variable "
        "TEXTMILL_CACHE."
    )
    assert not list((cache / "tokens").glob("*.part"))


TWO = """
import sys, logging
from textmill.data.rows import Rows, StoredRows
from textmill.data.store import encoding, tokens
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


def test_chunks_are_bounded_and_whole(monkeypatch):
    monkeypatch.setattr(tokens, "CHUNK_ROWS", 10)
    monkeypatch.setattr(tokens, "CHUNK_CHARACTERS", 100)
    texts = ["x" * n for n in (3, 300, 1, 1, 99, 99, 0, 5, 7, 250, 1, 1, 1)]
    rows = Rows({"a": texts, "b": texts})
    for start in range(len(texts) + 1):
        parts = list(chunks_of(rows, ["a", "b"], start))
        assert [row["a"] for part in parts for row in part] == texts[start:]
        assert all(len(part) <= 10 for part in parts)
    assert len(list(chunks_of(rows, ["a"]))) > 4
