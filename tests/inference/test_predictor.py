"""A predictor: whatever text comes in, an answer or an error in its place, in order."""

import itertools
import tracemalloc

import pytest

from textmill.errors import DataError
from textmill.exported.row_predictor import CHUNK_CHARACTERS
from textmill.models.decoding import Decoding
from textmill.tasks import Translated

ODD = {
    "empty": "",
    "space": "   ",
    "newlines": "The cat\nsleeps.\r\n\n",
    "tab": "The\tcat",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "right to left": "\u202eabc\u202c שלום",
    "combining": "e" + "\u0301" * 20,
    "NFKC grows": "\ufdfa",
    "private use": "\ue000\U0010ffff\ufffe",
    "control": "".join(map(chr, range(1, 32))),
    "special pieces": "<pad> <unk> <s> </s> ▁ <0x00>",
    "unknown": "漢字仮名交じり文",
}


@pytest.mark.parametrize("name", ODD)
def test_any_text_has_an_answer(predictor, name):
    answer = predictor(ODD[name])
    assert isinstance(answer, Translated)
    assert isinstance(answer.text, str)
    assert answer.score <= 0
    answer.text.encode()


def test_a_string_a_mapping_and_lists_of_them(predictor):
    one = predictor("Go.")
    assert predictor({"source": "Go."}) == one
    assert predictor({"source": "Go.", "id": "7"}) == one
    both = predictor(["Go.", {"source": "Go."}])
    assert [answer.text for answer in both] == [one.text] * 2
    assert [answer.score for answer in both] == pytest.approx([one.score] * 2, abs=1e-6)
    assert predictor(("Go.",)) == predictor(row for row in ["Go."]) == [one]
    assert predictor([]) == []


def test_a_list_is_answered_in_its_order_as_one_by_one(predictor):
    texts = [text for text in ODD.values() if text] + ["Go.", "She lives in the garden."]
    assert [a.text for a in predictor(texts)] == [predictor(text).text for text in texts]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("a\0b", "Column 'source': NUL at character 1. Take it out."),
        (
            {"text": "Go.", "id": "1"},
            "A row needs the columns source; 'source' is missing. Found: text, id.",
        ),
        ({}, "A row needs the columns source; 'source' is missing. Found: none."),
        (["Go.", 7], "A row is a string or a mapping of columns (source); found int."),
        (None, "Wanted a string, a mapping of columns, or a list of these; found NoneType."),
        (b"Go.", "Wanted a string, a mapping of columns, or a list of these; found bytes."),
        (
            "half \ud800",
            "Row 0, column 'source': is not text, or holds half of a surrogate pair: "
            "'half \\ud800'. Give strings decoded as UTF-8.",
        ),
        (
            {"source": 7},
            "Row 0, column 'source': is not text, or holds half of a surrogate pair: 7. "
            "Give strings decoded as UTF-8.",
        ),
    ],
)
def test_what_is_no_row_is_an_error(predictor, given, error):
    with pytest.raises(DataError) as caught:
        predictor(given)
    assert str(caught.value) == error


def test_a_very_long_input_is_an_error_that_names_its_length(predictor):
    with pytest.raises(
        DataError, match=r"^Row 1, column 'source': has \d+ tokens; the model takes at most 64\.$"
    ):
        predictor(["Go.", "The cat sleeps. " * 10_000])


def test_n_best_alternatives(predictor, monkeypatch):
    config = predictor.task.config
    changed = type(config)(decoding=Decoding(beam_size=4, n_best=3))
    monkeypatch.setattr(predictor.task, "config", changed)
    answer = predictor("Go.")
    scores = [answer.score, *(a.score for a in answer.alternatives)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    (row,) = predictor.stream(["Go."])
    assert [a["score"] for a in row["alternatives"]] == [round(s, 6) for s in scores[1:]]


BAD = [
    ("\ud800", "holds half of a surrogate pair"),
    ("The cat sleeps. " * 50, "'source' is longer than the 64 tokens the model takes."),
    ("x" * 100_000, "'source' is longer than the 64 tokens the model takes."),
    ({"text": "Go."}, "A row needs the columns source; 'source' is missing. Found: text."),
    ({"source": None}, "'source' must be a string; found NoneType."),
    ({"source": []}, "'source' is an empty list; give at least one sentence."),
    (None, "A row is a string or a mapping of columns (source); found NoneType."),
    (b"Go.", "A row is a string or a mapping of columns (source); found bytes."),
]


@pytest.mark.parametrize("size", [1, 3, 256])
def test_a_stream_keeps_the_order_with_an_error_row_for_each_bad_row(predictor, size):
    good = ["Go.", "She lives in the garden.", {"source": "The cat sleeps.", "id": "a"}]
    mixed = list(itertools.chain(*zip(itertools.cycle(good), [bad for bad, _ in BAD])))
    rows = list(predictor.stream(mixed, size=size))
    assert len(rows) == len(mixed)
    for given, row in zip(mixed[::2], rows[::2], strict=True):
        text = given if isinstance(given, str) else given["source"]
        assert row["source"] == text
        assert row["prediction"] == predictor(text).text
        assert row.get("id") == (None if isinstance(given, str) else "a")
        assert "error" not in row
    for (_, error), row in zip(BAD, rows[1::2], strict=True):
        assert error in row["error"]
        assert "prediction" not in row


def test_a_column_called_error_moves_no_answer(predictor):
    rows = list(predictor.stream([{"source": "Go.", "error": "mine"}, "Why are you late?"]))
    assert rows[1]["source"] == "Why are you late?"
    assert rows[1]["prediction"] == predictor("Why are you late?").text
    assert rows[0]["prediction"] == predictor("Go.").text


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


def test_an_empty_stream(predictor):
    assert list(predictor.stream([])) == []


def test_errors_of_the_source_itself_go_through(predictor):
    def broken():
        yield "Go."
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(predictor.stream(broken(), size=1))


def test_a_list_in_a_list_is_one_text_of_its_sentences(predictor):
    assert predictor([["Go.", "Go."]]) == [predictor({"source": ["Go.", "Go."]})]
    (row,) = predictor.stream([["Go.", "Go."]])
    assert row["prediction"] == predictor([["Go.", "Go."]])[0].text
