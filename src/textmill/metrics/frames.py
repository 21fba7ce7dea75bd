"""Frames, an intent with its slots: how many are right as a whole, and how well their parts are."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from typing_extensions import override

from textmill.errors import DataError
from textmill.metrics.classification import ConfusionCounts, LabelCounts, micro
from textmill.metrics.metric import (
    Count,
    Direction,
    HigherIsBetter,
    MetricError,
    aligned,
    nan_without,
    share_error,
    share_of,
)
from textmill.text.features.tree_tags import MARK, check_mark, not_a_tree

INVALID_TREE = "IN:INVALID_TREE"
"""The intent of a prediction that is not a tree, as in PyText."""

Slot = tuple[str, int, int]
"""(label, start, end), end exclusive, in the same unit as gold."""


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


def nodes(tree: Node, *, whole: bool) -> tuple[list[Node], list[Node]]:
    """The intents and the slots of a tree, which alternate from the root (an intent) down.

    Nodes that are not ``whole`` are without their children: equal if label and span are.
    """
    levels: tuple[list[Node], list[Node]] = [], []
    level, depth = [tree], 0
    while level:
        levels[depth % 2].extend(node if whole else node._replace(children=()) for node in level)
        level, depth = [child for node in level for child in node.children], depth + 1
    return levels


def depth_of(tree: Node) -> int:
    """The most intents and slots that stand in one another; 1 for a tree without slots."""
    return 1 + max(map(depth_of, tree.children), default=0)


def read_tree(text: str) -> Node:
    """Reads ``[IN:LABEL words [SL:LABEL words ] ]`` (Gupta et al. 2018).

    Spans are places in the words joined by one space. The root is an intent; in an intent stand
    words and slots, in a slot words and intents.
    """
    open_nodes: list[tuple[str, int, list[Node]]] = []
    root: Node | None = None
    place = 0  # where the next word begins
    for mark in MARK.findall(text):
        if root is not None or not (open_nodes or mark.startswith("[IN:")):
            raise not_a_tree(text, f"{mark!r} stands outside of the one outermost intent")
        if mark == "]":
            label, start, children = open_nodes.pop()
            node = Node(label, start, max(place - 1, start), tuple(sorted(children)))
            if open_nodes:
                open_nodes[-1][2].append(node)
            else:
                root = node
        elif mark.startswith(("[IN:", "[SL:")):
            check_mark(text, mark, len(open_nodes))
            open_nodes.append((mark[1:], place, []))
        else:
            place += len(mark) + 1
    if root is None:
        raise not_a_tree(
            text, f"{len(open_nodes)} brackets stay open" if text.strip() else "it is empty"
        )
    return root


DEEP = 5
"""Trees of this depth and deeper ones are counted together."""
_PARTS = ("intent", "slot")
_WAYS = ("bracket", "tree")


class FrameCounts(HigherIsBetter):
    """Base of metrics of frames; all have the values of PyText's, from 0 to 1.

    ``intent_accuracy`` is the share of frames whose (outermost) intent is right;
    ``frame_accuracy``, the share that is right as a whole; ``slot_precision``, ``slot_recall`` and
    ``slot_f1`` are over all slots, and a slot is right if its label and span are. Further values
    are ``bracket/intent_precision`` and so on, for ``bracket`` and ``tree``, and ``intent``,
    ``slot`` and ``overall`` (both together). By ``bracket`` an intent or slot is right if the gold
    frame has one of its label and span; by ``tree``, if everything in it is right too. Values of
    slots are NaN if there are none.
    """

    def __init__(self) -> None:
        self._frames = defaultdict[str, Count](int)
        self._counts = {(way, part): LabelCounts() for way in _WAYS for part in _PARTS}

    def add_trees(self, pairs: Iterable[tuple[Node, Node]]) -> None:
        for gold, predicted in pairs:
            found = {
                "all": True,
                "right": gold == predicted,
                "right_intents": gold.label == predicted.label,
                "invalid": predicted.label == INVALID_TREE,
            }
            for name, is_so in found.items():
                self._frames[name] += is_so * self.weight
            for way in _WAYS:
                both = (nodes(tree, whole=way == "tree") for tree in (gold, predicted))
                for part, expected, given in zip(_PARTS, *both, strict=True):
                    self._counts[way, part].add(expected, given, attrgetter("label"), self.weight)

    @property
    def count(self) -> Count:
        return self._frames["all"]

    @override
    def compute(self) -> dict[str, float]:
        frames = self._frames
        slots = micro(self.tallies("bracket", "slot").values()).shares()
        values = {
            "intent_accuracy": share_of(frames["right_intents"], frames["all"]),
            "frame_accuracy": share_of(frames["right"], frames["all"]),
            **{f"slot_{name}": share for name, share in slots.items()},
        }
        for way in _WAYS:
            parts = {part: micro(self.tallies(way, part).values()) for part in _PARTS}
            parts["overall"] = micro(parts.values())
            values |= {
                f"{way}/{part}_{name}": value
                for part, tally in parts.items()
                for name, value in tally.shares().items()
            }
        return nan_without(frames["all"], values)

    @override
    def errors(self) -> dict[str, float]:
        frames = self._frames
        shares = {"intent_accuracy": frames["right_intents"], "frame_accuracy": frames["right"]}
        every = frames["all"]
        return {
            **{name: share_error(share_of(right, every), every) for name, right in shares.items()},
            "slot_f1": micro(self.tallies("bracket", "slot").values()).f1_error,
        }

    def tallies(self, way: str, part: str) -> dict[str, ConfusionCounts]:
        """The counts of each label; ``way`` is bracket or tree, ``part`` intent or slot."""
        return self._counts[way, part].tallies()


class Frames(FrameCounts):
    """One intent a row, with slots that do not nest. Values: see ``FrameCounts``."""

    @override
    def update(
        self,
        gold: Sequence[tuple[str, Collection[Slot]]],
        predicted: Sequence[tuple[str, Collection[Slot]]],
    ) -> None:
        """Adds rows: the right intent of each, with its slots, and what it was given.

        A slot is a label, a start and an end, in any unit; one given twice counts once.
        """
        self.add_trees([(flat_tree(*a), flat_tree(*b)) for a, b in aligned(self, gold, predicted)])


class Trees(FrameCounts):
    """One nested parse a row, written ``[IN:LABEL words [SL:LABEL words ] ]``.

    Values: those of ``FrameCounts``, and ``invalid_trees``, the share of predictions that are no
    tree. Such a prediction counts as the intent ``IN:INVALID_TREE`` without slots. Spans are those
    of ``read_tree``, as in PyText: words count only by their length and place, so for parses whose
    words are generated, see ``ExactMatch`` too.

    Of rows whose right tree has a depth (the most intents and slots that stand in one another; 1
    without slots) of 1 to 4, or of 5 or more, there are ``depth/2/frame_accuracy``, and of intents
    and slots together ``depth/2/bracket_f1`` and ``depth/2/tree_f1``, and how many such rows there
    are, ``depth/2/num_examples``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._by_depth = {str(depth): Frames() for depth in range(1, DEEP)} | {f"{DEEP}+": Frames()}

    @override
    def add_trees(self, pairs: Iterable[tuple[Node, Node]]) -> None:
        pairs = list(pairs)
        super().add_trees(pairs)
        for gold, predicted in pairs:
            depth = depth_of(gold)
            name = str(depth) if depth < DEEP else f"{DEEP}+"
            self._by_depth[name].weight = self.weight
            self._by_depth[name].add_trees([(gold, predicted)])

    @override
    def update(self, gold: Sequence[str], predicted: Sequence[str]) -> None:
        """Adds rows: the right parse of each, and what it was given, which may be any text."""
        pairs = []
        for row, (right, given) in enumerate(aligned(self, gold, predicted)):
            try:
                tree = read_tree(right)
            except DataError as error:
                raise MetricError(f"Row {row + 1} of {len(gold)}: {error}") from error
            try:
                answer = read_tree(given)
            except DataError:
                answer = Node(INVALID_TREE, tree.start, tree.end)
            pairs.append((tree, answer))
        self.add_trees(pairs)

    @override
    def compute(self) -> dict[str, float]:
        frames = self._frames
        share = {"invalid_trees": share_of(frames["invalid"], frames["all"])}
        values = {**super().compute(), **nan_without(frames["all"], share)}
        for depth, frames_there in self._by_depth.items():
            found = frames_there.compute()
            there = {
                "frame_accuracy": found["frame_accuracy"],
                **{f"{way}_f1": found[f"{way}/overall_f1"] for way in _WAYS},
                "num_examples": float(frames_there.count) if frames["all"] else math.nan,
            }
            values |= {f"depth/{depth}/{name}": value for name, value in there.items()}
        return values

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {**super().directions(), "invalid_trees": "lower"}
