"""A cell that is a list: its text to those who want text, its parts to those who want them."""

import pytest

from textmill.errors import DataError
from textmill.text.cells import ListCell, unlisted, words_in
from textmill.text.features.slots import read_slots


def test_a_list_equals_its_text_and_parts_tell_lists_apart():
    one, other = ListCell(["a b", "c"]), ListCell(["a", "b c"])
    assert one == other == "a b c"
    assert hash(one) == hash(other) == hash("a b c")
    assert one.parts != other.parts
    assert unlisted(one) != unlisted(other)
    assert ListCell([]) == ""


def test_words_of_a_list_are_its_parts():
    assert words_in(ListCell(["wake", "me"]), "words", 0) == ["wake", "me"]
    assert words_in(ListCell([]), "words", 0) == []
    for parts, shown in ((["in", "New York"], "'New York' at 1"), (["", "a"], "'' at 0")):
        with pytest.raises(DataError, match=rf"^Row 3, column 'words': wanted a list .* {shown}"):
            words_in(ListCell(parts), "words", 3)


def test_tags_of_a_list_are_its_parts():
    spans = read_slots(ListCell(["O", "B-city"]), "in Rome", "tags", column="tags", row=0)
    assert [span.label for span in spans] == ["city"]
    with pytest.raises(DataError, match="found 'B-big city' at 1"):
        read_slots(ListCell(["O", "B-big city"]), "in Rome", "tags", column="tags", row=0)
