"""Trees and tags of words say the same, whatever tags make a tree, and a bad tree is refused."""

import random

import pytest

from textmill.errors import DataError, UserError
from textmill.metrics.frames import read_tree
from textmill.text.features.tree_tags import FittedTreeTags, TreeTags, tags_of_tree, tree_of_tags

NESTED = "[IN:A x [SL:B [IN:C y ] z ] [SL:B w ] ]"


def drawn(draw, depth=0):
    """A tree at random, every node of which holds a word."""
    kind = "[SL:" if depth % 2 else "[IN:"
    parts = [draw.choice("uvwxyz[(")] if depth > 3 else []
    for _ in range(draw.randint(1, 3)):
        deeper = depth < 4 and draw.random() < 0.5
        parts.append(drawn(draw, depth + 1) if deeper else draw.choice("uvwxyz[("))
    return f"{kind}{draw.choice('ABC')} {' '.join(parts)} ]"


def test_a_tag_is_what_opens_before_a_word_and_closes_behind_it():
    words, tags = tags_of_tree(NESTED)
    assert words == ["x", "y", "z", "w"]
    assert tags == ["[IN:A", "[SL:B[IN:C]", "]", "[SL:B"]


def test_tags_of_a_tree_make_that_tree():
    draw = random.Random(4)
    for _ in range(300):
        tree = drawn(draw)
        words, tags = tags_of_tree(tree)
        assert words == [mark for mark in tree.split() if mark != "]" and ":" not in mark]
        assert tree_of_tags(words, tags, root="IN:NONE") == tree
        # White space around brackets is no part of a tree.
        assert tags_of_tree(tree.replace(" ]", "]")) == (words, tags)


def test_any_tags_make_a_tree_of_the_words():
    draw, tags = (
        random.Random(5),
        ["O", "]", "]]]", "[IN:A", "[SL:B[IN:C", "[SL:B]", "[IN:A[SL:B]]"],
    )
    for _ in range(500):
        words = draw.choices("uvwxyz", k=draw.randint(0, 9))
        tree = tree_of_tags(words, draw.choices(tags, k=len(words)), root="IN:R")
        assert read_tree(tree).label in ("IN:A", "IN:R")
        assert [mark for mark in tree.split() if mark in set("uvwxyz")] == words


def test_no_tree_has_more_levels_than_are_read():
    tree = tree_of_tags("w" * 300, ["[IN:A", *["[SL:B[IN:C"] * 299], root="IN:R")
    assert read_tree(tree).label == "IN:A"
    assert tags_of_tree(tree)[0] == ["w"] * 300


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ("", "it is empty"),
        ("[IN:A", "1 brackets stay open"),
        ("[IN:A x ] y", "'y' stands behind the outermost intent"),
        ("x", "'x' stands outside of the one outermost intent"),
        ("[SL:A x ]", r"'\[SL:A' stands where only \[IN: or a word may"),
        ("[IN:A [IN:B x ] ]", r"'\[IN:B' stands where only \[SL: or a word may"),
        ("[IN:A ]", "a bracket closes where no word stands in it"),
        ("[IN:A x [SL:B ] ]", "a bracket closes where no word stands in it"),
        ("[IN: x ]", r"'\[IN:' has no label"),
        ("[IN:A [SL:B " * 51 + "x" + " ]" * 102, "it has over 100 levels"),
    ],
)
def test_what_is_no_tree_is_refused(tree, why):
    with pytest.raises(DataError, match=why):
        tags_of_tree(tree)


def test_tags_are_those_of_the_training_rows():
    rows = [{"target": NESTED}, {"target": "[IN:D x y ]"}]
    tags = FittedTreeTags.Config().build(train_data=rows)
    assert list(tags) == ["[IN:A", "[SL:B[IN:C]", "]", "[SL:B", "[IN:D", "O"]
    assert tags.root == "IN:A"


@pytest.mark.parametrize("row", [{"target": "[IN:A x"}, {"target": 7}, {}])
def test_a_training_row_without_a_tree_is_named(row):
    with pytest.raises(DataError, match=r"^Row 1"):
        FittedTreeTags.Config().build(train_data=[{"target": NESTED}, row])


def test_without_an_intent_there_is_no_tree():
    with pytest.raises(UserError, match="No label opens an intent"):
        TreeTags(["O", "]"])
    with pytest.raises(DataError, match="No row of train_data has a tree"):
        FittedTreeTags.Config().build(train_data=[])
