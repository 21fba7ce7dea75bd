"""Slots: tags and spans of characters are read, made of each other, and refused where they lie."""

import random

import pytest

from tests.text.saved import change
from textmill.errors import DataError, UserError
from textmill.text.columns.column import Column
from textmill.text.columns.labels import SlotsColumn
from textmill.text.features.slots import FittedSlots, Slots, SlotSpan, places_of, spans_of, tags_of
from textmill.text.metadata import SavedTextError

TEXT = "display Tuesday's  reminders"
SPANS = Slots(["day", "noun", "so-"], format="spans")
TAGS = Slots(["day", "noun", "so-"])


def tags(cell, text=TEXT):
    return tags_of(SPANS.read(cell, text, row=0), places_of(text))


def test_spans_become_tags_of_words():
    assert tags("8:17:day,19:28:noun") == ["O", "B-day", "B-noun"]
    assert tags("19:28:noun, 0:17:day") == ["B-day", "I-day", "B-noun"]
    assert tags("") == tags("  ") == ["O", "O", "O"]


def test_a_span_off_the_boundaries_of_words_has_whole_words():
    assert tags("8:15:day") == ["O", "B-day", "O"]
    assert tags("10:21:day") == ["O", "B-day", "I-day"]
    assert tags("7:19:day") == ["O", "B-day", "O"]  # the spaces around it
    assert tags("8:10:day,12:28:noun") == ["O", "B-day", "B-noun"]  # a word of two is the first's
    assert tags("8:10:day,12:15:noun") == ["O", "B-day", "O"]


def test_tags_and_spans_say_the_same():
    draw = random.Random(3)
    for _ in range(200):
        words = ["x" * draw.randint(1, 4) for _ in range(draw.randint(1, 8))]
        text = (" " * draw.randint(1, 2)).join(words)
        places, spans, at = places_of(text), [], 0
        while at < len(words):
            size = draw.randint(1, 3)
            if draw.random() < 0.5 and at + size <= len(words):
                label = draw.choice(["day", "noun", "so-"])
                spans.append(SlotSpan(label, places[at][0], places[at + size - 1][1]))
            at += size
        marked = tags_of(spans, places)
        assert spans_of(marked, places) == spans
        assert SPANS.read(SPANS.cell(marked, text), text, row=0) == spans
        assert TAGS.read(TAGS.cell(marked, text), text, row=0) == spans


def test_tags_are_read_as_conlleval_does():
    read = TAGS.read("I-day I-noun B-noun", TEXT, row=0)
    assert read == [("day", 0, 7), ("noun", 8, 17), ("noun", 19, 28)]
    assert TAGS.read(["O", "B-day", "I-day"], TEXT, row=0) == [("day", 8, 28)]


@pytest.mark.parametrize(
    ("slots", "cell", "error"),
    [
        (SPANS, "8:17", "wanted spans of characters, as 16:24:time,39:57:day, found '8:17'"),
        (SPANS, "8:17:day,", "wanted spans of characters, as .*, found ''"),
        (SPANS, "O B-day O", "Tags of words are read with slots.format=tags"),
        (SPANS, 7, "wanted text, found int"),
        (SPANS, "8:29:day", "'8:29:day' ends after the text, which has 28 characters"),
        (SPANS, "40:29:day", "'40:29:day' ends after the text, which has 28 characters"),
        (SPANS, "9:9:day", "'9:9:day' holds no word of the text"),
        (SPANS, "17:19:day", "'17:19:day' holds no word"),
        (SPANS, "8:17:day,10:28:noun", "the slots 8:17:day and 10:28:noun overlap"),
        (SPANS, "8:17:eggs", "'eggs' is no slot. The 3 slots are 'day', 'noun', 'so-'"),
        (TAGS, "O B-eggs O", "'eggs' is no slot"),
        (TAGS, "O B-day", "has 2 tags, but the text has 3 words: wanted a tag for each"),
        (TAGS, "O B- O", "wanted O, or B- or I- with a slot, found 'B-' at 1"),
        (TAGS, "8:17:day", "as 16:24:time, are read with slots.format=spans"),
        (TAGS, 7, "wanted text or a list of words, found int"),
    ],
)
def test_cells_that_cannot_be_are_named_with_row_and_column(slots, cell, error):
    with pytest.raises(DataError, match=f"^Row 5, column 'slots': .*{error}"):
        slots.read(cell, TEXT, row=5)


def test_the_slots_of_the_training_data_in_the_order_of_their_rows():
    rows = [
        {"text": "wake me", "slots": ""},
        {"text": "at 8 tue", "slots": "5:8:day,0:4:time"},
        {"text": "tue", "slots": "0:3:day"},
    ]
    fitted = FittedSlots.Config(format="spans").build(train_data=rows)
    assert (fitted.names, fitted.format) == (("time", "day"), "spans")
    assert fitted[:3] == ("O", "B-time", "I-time")
    with pytest.raises(DataError, match="No row of train_data has a slot in its column 'slots'"):
        FittedSlots.Config(format="spans").build(train_data=rows[:1])
    with pytest.raises(DataError, match=r"Row 0 .* no column 'tags' .* Name the column by slots"):
        FittedSlots.Config(column="tags").build(train_data=rows)
    with pytest.raises(DataError, match="Row 0, column 'slots': has 0 tags, but the text has 2"):
        FittedSlots.Config().build(train_data=rows)
    declared = FittedSlots.Config(names=("x", "y")).build(train_data=[])
    assert declared.names == ("x", "y")


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ([], "one slot at least"),
        (["a", "a"], "'a' is there twice"),
        ([*map(str, range(50_000)), "7"], "'7' is there twice"),  # and at once
        (["a b"], "without white space and commas, but is 'a b'"),
        (["a,b"], "without white space and commas"),
        ([""], "without white space and commas, but is ''"),
    ],
)
def test_slots_that_cannot_be_are_refused(names, error, tmp_path):
    with pytest.raises(UserError, match=error):
        Slots(names)
    SlotsColumn(SPANS).save(tmp_path)
    change(tmp_path / "column.json", names=names)
    with pytest.raises(SavedTextError, match=error):
        Column.load(tmp_path)


def test_the_saved_format_is_one_of_the_two(tmp_path):
    SlotsColumn(SPANS).save(tmp_path)
    assert Column.load(tmp_path).slots.format == "spans"
    path = tmp_path / "column.json"
    path.write_text(path.read_text().replace('"spans"', '"eggs"'))
    with pytest.raises(SavedTextError, match="the setting 'format' cannot be 'eggs'"):
        Column.load(tmp_path)
