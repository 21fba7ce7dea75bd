from pathlib import Path

import pytest

from textmill.errors import DataError
from textmill.metrics.frames import Node, flat_tree, nodes, read_tree


def test_the_trees_of_pytext() -> None:
    # pytext/metric_reporters/tests/compositional_metric_reporter_test.py
    assert read_tree(
        "[IN:alarm/set_alarm  repeat the [SL:datetime 3 : 00 pm ] "
        "[SL:alarm/name alarm ]  [SL:datetime for Sunday august 12th ]  ] "
    ) == Node(
        "IN:alarm/set_alarm",
        0,
        49,
        (
            Node("SL:alarm/name", 21, 26),
            Node("SL:datetime", 11, 20),
            Node("SL:datetime", 27, 49),
        ),
    )
    assert read_tree(
        "[IN:GET_DIRECTIONS I need [SL:ANCHOR directions] to [SL:DESTINATION "
        "[IN:GET_EVENT the jazz festival]]]"
    ) == Node(
        "IN:GET_DIRECTIONS",
        0,
        38,
        (
            Node("SL:ANCHOR", 7, 17),
            Node("SL:DESTINATION", 21, 38, (Node("IN:GET_EVENT", 21, 38),)),
        ),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("call mom", "'call' stands outside of the one outermost intent"),
        ("[SL:A x ]", "'[SL:A' stands outside of the one outermost intent"),
        ("[IN:A x ] ]", "']' stands outside of the one outermost intent"),
        ("[IN:A x ] [IN:B y ]", "'[IN:B' stands outside of the one outermost intent"),
        ("[IN:A [SL:B x ]", "1 brackets stay open"),
        ("[IN:A [IN:B x ] ]", "'[IN:B' stands where only [SL: or a word may"),
        ("[IN:A [SL:B [SL:C x ] ] ]", "'[SL:C' stands where only [IN: or a word may"),
        ("]", "']' stands outside of the one outermost intent"),
        ("[IN: x ]", "'[IN:' has no label"),
    ],
)
def test_what_is_no_tree_says_why(text: str, why: str) -> None:
    with pytest.raises(DataError) as error:
        read_tree(text)
    assert str(error.value) == (
        f"A tree is written [IN:LABEL words [SL:LABEL words ] ], but {why}: {text!r}."
    )


def test_a_hostile_text_costs_neither_stack_nor_patience() -> None:
    with pytest.raises(DataError, match=r"over 100 levels: .{180,230}$"):
        read_tree("[IN:A [SL:B " * 50_000)
    with pytest.raises(DataError):
        read_tree("[IN:A " + "[SL:B ] " * 20_000)


def test_empty_nodes_and_equal_siblings_are_kept() -> None:
    tree = read_tree("[IN:A [SL:B ] [SL:B ] ]")
    assert tree == Node("IN:A", 0, 0, (Node("SL:B", 0, 0), Node("SL:B", 0, 0)))
    assert nodes(tree, whole=True)[1].total() == 2


def test_a_flat_slot_given_twice_counts_once() -> None:
    tree = flat_tree("a", [("b", 1, 2), ("b", 1, 2), ("c", 0, 1)])
    assert [slot.label for slot in tree.children] == ["b", "c"]


def test_every_parse_of_top_is_a_tree_over_its_words(shared_data: Path) -> None:
    for line in (shared_data / "top-en" / "dev.tsv").read_text(encoding="utf-8").splitlines():
        _, text, parse = line.split("\t")
        assert read_tree(parse).end == len(" ".join(text.split()))
