"""A fitted tokenizer: its text is read when it must be; of a small one all pieces are taken."""

import itertools
import logging
import re
import tracemalloc

import pytest

from textmill.data import TextPairs
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.text import FittedTokenizer
from textmill.text.tokenizers import fitted_tokenizer as fitted
from textmill.text.tokenizers.fitted_tokenizer import Kind, ModelType, TrainingText

KINDS = [kind for kind in Kind.__args__ if kind != "bytes"]
WORDS = re.findall(
    "[a-z]+", "the cat saw a dog run by old red house and big green tree on cold days"
)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    lines = (
        f"{WORDS[i % len(WORDS)]} {WORDS[i // len(WORDS)]}\t{WORDS[i // 3 % len(WORDS)]} x\n"
        for i in range(289)
    )
    path.write_text("".join(lines), encoding="utf-8")
    return lambda: TextPairs.Config(path=path).build()


def fit(kind, data, tmp_path, **more):
    size = {"byte_bpe": 280, "sentencepiece": 40}.get(kind, 60)
    config = {"kind": kind, "vocab_size": size, "cache_dir": tmp_path / "cache"} | more
    return FittedTokenizer.Config(**config).build(train_data=data)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_fitted_already_reads_no_row(kind, pairs, tmp_path, monkeypatch):
    read = []
    rows = TextPairs.rows
    monkeypatch.setattr(TextPairs, "rows", lambda self: read.append(1) or rows(self))
    first = fit(kind, pairs(), tmp_path)
    assert read
    read.clear()
    assert fit(kind, pairs(), tmp_path).fingerprint() == first.fingerprint()
    assert not read


@pytest.mark.parametrize("kind", ["bpe"])
def test_data_with_and_without_a_fingerprint_give_the_same(kind, pairs, tmp_path):
    known = fit(kind, pairs(), tmp_path)
    unknown = fit(kind, list(pairs()), tmp_path / "other")
    assert unknown.fingerprint() == known.fingerprint()


class Own(list):
    """A user's own data, whose fingerprint textmill cannot vouch for."""

    def fingerprint(self):
        return "always the same"


def test_the_fingerprint_of_a_users_own_data_is_not_trusted(tmp_path):
    first = fit("words", Own([{"source": "a b"}]), tmp_path)
    assert fit("words", Own([{"source": "a c"}]), tmp_path).fingerprint() != first.fingerprint()


def test_rows_that_can_be_read_only_once_are_kept_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(fitted, "HELD_BYTES", 1000)
    texts = ["a\nb", "", "é☃", "\ud800", "x" * 3000, *map(str, range(9000))]
    with fitted.training_text({"source": text} for text in texts) as text:
        assert list(text) == texts
        both = list(zip(text, text, strict=True))  # two readers at once
    assert both == [(text, text) for text in texts]


def test_no_more_than_a_part_of_the_text_is_held():
    rows = ({"source": f"{i} " * 500} for i in range(2_500))  # 6 million characters
    tracemalloc.start()
    try:
        before = fitted.HELD_BYTES
        fitted.HELD_BYTES = 1 << 20
        with fitted.training_text(rows) as text:
            assert sum(map(len, text)) > 5_000_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        fitted.HELD_BYTES = before
        tracemalloc.stop()


def test_more_text_than_fits_into_memory_is_sampled(pairs, tmp_path, monkeypatch, caplog):
    whole = fit("sentencepiece", pairs(), tmp_path)
    monkeypatch.setattr(fitted, "MOST_CHARACTERS", 2000)
    caplog.set_level(logging.INFO)
    some = fit("sentencepiece", pairs(), tmp_path / "some")
    assert some.fingerprint() != whole.fingerprint()
    said = [message for message in caplog.messages if "spread over" in message]
    assert said == [
        "The tokenizer is fitted on 320 of 578 texts, spread over all of them: more do not fit "
        "into memory, and change little."
    ]


def test_a_sample_is_spread_evenly():
    text = TrainingText("key", lambda: map(str, range(1000, 2000)))
    found = list(map(int, text.at_most(400)))
    assert len(found) == 100
    assert {b - a for a, b in itertools.pairwise(found)} == {10}
    assert list(text.at_most(1)) == ["1999"]
    assert text.at_most(4000) is text


@pytest.mark.parametrize("kind", ["characters"])
@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "no sum", "another sum"])
def test_what_is_damaged_is_made_again(kind, damage, pairs, tmp_path, caplog):
    first = fit(kind, pairs(), tmp_path)
    assert not caplog.messages
    (beside,) = (tmp_path / "cache" / "tokenizers").glob("*.sha256")
    path = beside.with_suffix("")
    content, digest = path.read_bytes(), beside.read_bytes()
    if damage == "no sum":
        beside.unlink()
    elif damage == "another sum":
        beside.write_text("\xff")
    else:  # the cut alphabet is still one, of another vocabulary
        cut = content[: len(content) // 2]
        path.write_bytes({"empty": b"", "cut": cut, "changed": content[:-1] + b"?"}[damage])
    assert fit(kind, pairs(), tmp_path).fingerprint() == first.fingerprint()
    assert caplog.messages == [f"{path} is not what was written there: it is made again."]
    assert (path.read_bytes(), beside.read_bytes()) == (content, digest)
    fit(kind, pairs(), tmp_path)
    assert len(caplog.messages) == 1


def test_only_the_named_columns_are_taken():
    rows = [{"label": "ham", "text": "a", "n": 3}, {"label": "spam", "text": "b", "n": 4}]
    with fitted.training_text(rows, ["text"]) as text:
        assert list(text) == ["a", "b"]
    with (
        pytest.raises(DataError, match=r"Row 0, column 'n': wanted text to .*, found int"),
        fitted.training_text(rows) as text,
    ):
        list(text)
    with (
        pytest.raises(DataError, match=r"Row 0 of train_data has no column 'words' to fit the"),
        fitted.training_text(rows, ["words"]) as text,
    ):
        list(text)


def test_other_columns_of_a_file_are_another_tokenizer(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("ham\tsee you\nspam\tcash\n")
    data = TextRows.Config(path=path).build()
    found = {}
    for columns in ((), ("text",), ("label", "text")):
        with fitted.training_text(data, columns) as text:
            found[text.key] = list(text)
    assert list(found.values()) == [
        ["ham", "see you", "spam", "cash"], ["see you", "cash"], ["ham", "see you", "spam", "cash"],
    ]  # fmt: skip


SMALL = [{"text": "the cat sat on the mat"}, {"text": "a dog ran by the old red house"}] * 3
SIZED = [
    *({"kind": kind} for kind in ("bpe", "byte_bpe", "words")),
    *({"model_type": model_type} for model_type in ModelType.__args__),
    {"kind": "characters"},
]


def small(folder, **settings):
    return FittedTokenizer.Config(cache_dir=folder, **settings).build(train_data=SMALL)


@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: next(iter(kind.values())))
def test_all_pieces_of_a_small_text_are_taken(kind, tmp_path):
    most = small(tmp_path / "a", vocab_size=5000, **kind)
    size = most.vocab_info.size
    assert 4 < size < 400
    assert most.fingerprint() == small(tmp_path / "b", vocab_size=size, **kind).fingerprint()
    assert small(tmp_path / "c", vocab_size=size - 1, **kind).vocab_info.size <= size - 1


@pytest.mark.parametrize("kind", ["sentencepiece", "bpe"])
def test_a_line_says_how_many_there_are(kind, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    size = small(tmp_path, kind=kind, vocab_size=5000).vocab_info.size
    said = f"the training text gives {size} pieces, fewer than vocab_size=5,000: all are taken"
    assert said in caplog.messages
    caplog.clear()
    small(tmp_path, kind=kind, vocab_size=size)
    assert "all are taken" not in caplog.text


def test_an_empty_text_is_still_refused(tmp_path):
    with pytest.raises(UserError, match="training text is empty"):
        FittedTokenizer.Config(cache_dir=tmp_path).build(train_data=[{"text": " "}])
