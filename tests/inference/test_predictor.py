"""A predictor: whatever text comes in, an answer or an error in its place, in order."""

import itertools
import tracemalloc

import pytest

import textmill
from tests.trained_run import library_run
from textmill.errors import DataError
from textmill.exported.row_predictor import CHUNK_CHARACTERS
from textmill.tasks import Translated

ODD = {
    "empty": "", "space": "   ", "newlines": "The cat\nsleeps.\r\n\n", "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "right to left": "\u202eabc\u202c שלום", "combining": "e" + "\u0301" * 20,
    "NFKC grows": "\ufdfa", "private use": "\ue000\U0010ffff\ufffe",
    "control": "".join(map(chr, range(1, 32))), "special pieces": "<pad> <unk> <s> </s> ▁ <0x00>",
    "unknown": "漢字仮名交じり文",
}  # fmt: skip


@pytest.fixture(scope="module")
def predictor():
    return textmill.load(library_run())


def test_any_text_has_an_answer_the_same_in_a_list(predictor):
    alone = [predictor(text) for text in ODD.values()]
    for answer in alone:
        assert isinstance(answer, Translated)
        assert answer.score <= 0
        answer.text.encode()
    assert [answer.text for answer in predictor(ODD.values())] == [one.text for one in alone]


def test_a_string_a_mapping_and_lists_of_them(predictor):
    one = predictor("Go.")
    assert predictor({"source": "Go."}) == predictor({"source": "Go.", "id": "7"}) == one
    both = predictor(["Go.", {"source": "Go."}])
    assert [answer.text for answer in both] == [one.text] * 2
    assert predictor(("Go.",)) == predictor(row for row in ["Go."]) == [one]
    assert predictor([]) == [*predictor.stream([])] == []
    assert predictor([["Go.", "Go."]]) == [predictor({"source": ["Go.", "Go."]})]


LONG = "x" * 100_000
BAD = [
    ("\ud800", "holds half of a surrogate pair"), ("a\0b", "NUL at character 1"),
    ("The cat sleeps. " * 50, "'source' is longer than the 64 tokens the model takes."),
    (LONG, "'source' is longer than the 64 tokens the model takes."),
    ({"text": "Go."}, "'source' is missing. Found: text."),
    ({"source": None}, "'source' must be a string; found NoneType."),
    ({"source": []}, "'source' is an empty list"), (None, "found NoneType"),
    (b"Go.", "found bytes"),
]  # fmt: skip


def test_what_is_no_row_is_an_error(predictor):
    for bad, _ in BAD:
        if bad != LONG:  # of which its tokenizer makes one token
            with pytest.raises(DataError):
                predictor(bad)


@pytest.mark.parametrize("size", [1, 3, 256])
def test_a_stream_keeps_the_order_with_an_error_row_for_each_bad_row(predictor, size):
    good = ["Go.", {"source": "The cat sleeps.", "id": "a", "error": "mine"}]
    mixed = list(itertools.chain(*zip(itertools.cycle(good), [bad for bad, _ in BAD])))
    rows = list(predictor.stream(mixed, size=size))
    assert len(rows) == len(mixed)
    for given, row in zip(mixed[::2], rows[::2], strict=True):
        text = given if isinstance(given, str) else given["source"]
        assert (row["source"], row["prediction"]) == (text, predictor(text).text)
        assert row.get("id") == (None if isinstance(given, str) else "a")
    for (_, error), row in zip(BAD, rows[1::2], strict=True):
        assert error in row["error"]
        assert "prediction" not in row


def test_a_stream_reads_no_more_than_it_needs_and_keeps_nothing(predictor):
    """A generator in, a generator out: rows are drawn a chunk at a time from an endless source."""
    drawn = itertools.count()
    rows = predictor.stream((f"Go {next(drawn)}." for _ in itertools.repeat(0)), size=8)
    first = [next(rows)["source"] for _ in range(20)]
    assert first == [f"Go {i}." for i in range(20)]
    assert next(drawn) == 24


def test_long_rows_are_answered_in_smaller_chunks(predictor):
    drawn = itertools.count()
    long = "x" * (CHUNK_CHARACTERS // 2)
    rows = predictor.stream(f"{long}{next(drawn)}" for _ in range(1000))
    tracemalloc.start()
    for _ in range(12):
        assert "longer than" in next(rows)["error"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert next(drawn) <= 14
    assert peak < 20 * CHUNK_CHARACTERS
