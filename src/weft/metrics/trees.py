"""Frames as trees: intents that hold slots that hold intents, each over a span of the text."""

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from weft.metrics.metric import MetricError

__all__ = ["INVALID_TREE", "Node", "Slot", "flat_tree", "nodes", "read_tree"]

INVALID_TREE = "IN:INVALID_TREE"
"""The intent that stands for a prediction that is no tree, as in PyText."""

Slot = tuple[str, int, int]
"""A slot's label, its start and the end before which it ends, in whatever unit gold has too."""

_MARK = re.compile(r"\[(?:IN|SL):[^\s\[\]]*|\]|[^\s\]]+")
_DEEPEST = 100  # levels: people's parses have below ten; a hostile text would overflow the stack


class Node(NamedTuple):
    """An intent or a slot: its label, its span, and what stands in it, sorted."""

    label: str
    start: int
    end: int
    children: tuple["Node", ...] = ()


def flat_tree(intent: str, slots: Collection[Slot]) -> Node:
    """The tree of an intent over the whole text with slots in it, each of which counts once."""
    children = sorted({Node(label, int(start), int(end)) for label, start, end in slots})
    return Node(intent, 0, 0, tuple(children))  # any span: both sides have the whole text's


def nodes(tree: Node, *, whole: bool) -> tuple[Counter[Node], Counter[Node]]:
    """The intents and the slots of a tree, which alternate from the root (an intent) down.

    Args:
        tree: The root.
        whole: Whether a node is what it is with everything in it, or label and span alone.
    """
    levels: tuple[Counter[Node], Counter[Node]] = Counter(), Counter()
    level, depth = [tree], 0
    while level:
        levels[depth % 2].update(node if whole else node._replace(children=()) for node in level)
        level, depth = [child for node in level for child in node.children], depth + 1
    return levels


def read_tree(text: str) -> Node:
    """Reads ``[IN:LABEL words [SL:LABEL words ] ]`` (Gupta et al. 2018).

    Spans are places in the words joined by one space. The root is an intent; in an intent stand
    words and slots, in a slot words and intents.

    Raises:
        MetricError: The text is not that; it says why.

    Example:
        >>> tree = read_tree("[IN:CALL call [SL:PERSON my mom ] now ]")
        >>> tree.label, tree.end, tree.children
        ('IN:CALL', 15, (Node(label='SL:PERSON', start=5, end=11, children=()),))
    """
    open_nodes: list[tuple[str, int, list[Node]]] = []
    root: Node | None = None
    place = 0  # where the next word begins
    for mark in _MARK.findall(text):
        if root is not None or not (open_nodes or mark.startswith("[IN:")):
            raise _not_a_tree(text, f"{mark!r} stands outside of the one outermost intent")
        if mark == "]":
            label, start, children = open_nodes.pop()
            node = Node(label, start, max(place - 1, start), tuple(sorted(children)))
            if open_nodes:
                open_nodes[-1][2].append(node)
            else:
                root = node
        elif mark.startswith(("[IN:", "[SL:")):
            _check_mark(text, mark, len(open_nodes))
            open_nodes.append((mark[1:], place, []))
        else:
            place += len(mark) + 1
    if root is None:
        raise _not_a_tree(
            text, f"{len(open_nodes)} brackets stay open" if text.strip() else "it is empty"
        )
    return root


def _check_mark(text: str, mark: str, depth: int) -> None:
    wanted = "[SL:" if depth % 2 else "[IN:"
    if mark in ("[IN:", "[SL:"):
        raise _not_a_tree(text, f"{mark!r} has no label")
    if not mark.startswith(wanted):
        raise _not_a_tree(text, f"{mark!r} stands where only {wanted} or a word may")
    if depth == _DEEPEST:
        raise _not_a_tree(text, f"it has over {_DEEPEST} levels")


def _not_a_tree(text: str, why: str) -> MetricError:
    brief = text if len(text) <= 200 else f"{text[:200]}..."
    return MetricError(
        f"A parse is written [IN:LABEL words [SL:LABEL words ] ], but {why}: {brief!r}."
    )
