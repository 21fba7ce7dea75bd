"""Trees of intents and slots as a tag for each word, and back.

A word's tag is what opens before it and what closes after it, as the tree is written: in
``[IN:CALL call [SL:PERSON my mom ] now ]`` the words have ``[IN:CALL``, ``[SL:PERSON``, ``]`` and
``O``. After the last word everything closes, so its tag does not say so. Each tree is thus one
sequence of tags, and each sequence of tags makes a tree.

Source: Gomez-Rodriguez and Vilares 2018, "Constituent Parsing as Sequence Labeling", whose tags say
how many levels two neighbouring words share; with absolute openings a tag is readable by itself.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import read_training
from textmill.text.features.labels import Labels, names_in

NOTHING = "O"
"""The tag of a word before which nothing opens and after which nothing closes."""
DEEPEST = 100
"""Levels of a tree: people's have below ten."""
MARK = re.compile(r"\[(?:IN|SL):[^\s\[\]]*|\]|[^\s\]]+")
"""The marks and words of a tree as it is written."""
OPENED = re.compile(r"\[([^\[\]]+)")
"""Finds the labels of what a tag opens."""
INTENT = re.compile(r"\[?(IN:[^\[\]]+)")
"""Finds the intent that a tag, or an action, opens first."""


def tags_of_tree(text: str) -> tuple[list[str], list[str]]:
    words, opened, closed = list[str](), list[str](), list[int]()
    waiting, depth = "", 0
    for mark in MARK.findall(text):
        if words and not depth:
            raise not_a_tree(text, f"{mark!r} stands behind the outermost intent")
        if mark == "]":
            if waiting or not words:
                raise not_a_tree(text, "a bracket closes where no word stands in it")
            closed[-1] += 1
            depth -= 1
        elif mark.startswith(("[IN:", "[SL:")):
            check_mark(text, mark, depth)
            depth += 1
            waiting += mark
        else:
            if not depth:
                raise not_a_tree(text, f"{mark!r} stands outside of the one outermost intent")
            words.append(mark)
            opened.append(waiting)
            closed.append(0)
            waiting = ""
    if depth or not words:
        raise not_a_tree(text, f"{depth} brackets stay open" if depth else "it is empty")
    closed[-1] = 0
    tags = [f"{o}{']' * n}" or NOTHING for o, n in zip(opened, closed, strict=True)]
    return words, tags


def tree_of_tags(words: Sequence[str], tags: Sequence[str], *, root: str) -> str:
    """The tree that tags make of words.

    An intent stands in a slot, and a slot in an intent: what opens elsewhere is left out, with
    what it holds. The outermost intent closes after the last word.
    """
    parts, depth = list[str](), 0
    for number, (word, tag) in enumerate(zip(words, tags, strict=True)):
        opened = OPENED.findall(tag)
        if not number and not "".join(opened[:1]).startswith("IN:"):
            opened = [root]
        for label in opened:
            if depth == DEEPEST or not f"[{label}".startswith(_kind(depth)):
                break
            parts.append(f"[{label}")
            depth += 1
        parts.append(word)
        closes = depth if number == len(words) - 1 else min(tag.count("]"), depth - 1)
        parts += ["]"] * closes
        depth -= closes
    return " ".join(parts) if parts else f"[{root} ]"


class TreeTags(Labels):
    """The tags that words of trees can have."""

    def __init__(self, names: Iterable[str], *, column: str = "target") -> None:
        super().__init__(names, column=column, multiple=True)
        opens = (match for match in map(INTENT.match, self.names) if match)
        if (first := next(opens, None)) is None:
            raise UserError(f"No label opens an intent, such as IN:CALL. {self.listed}")
        self.root = first[1]
        """The outermost intent of a tree that has none, such as that of no word."""

    @staticmethod
    def of_tags(tags: Iterable[str]) -> list[str]:
        """The labels of a tree, of which each word has a tag."""
        return list(tags)

    def tree(self, words: Sequence[str], names: Sequence[str]) -> str:
        """The tree of words that labels stand for."""
        return tree_of_tags(words[: len(names)], names, root=self.root)


@registries.labels.register("trees")
class FittedTreeTags(Component):
    """The tags of words in the trees of ``train_data``, in the order of their first row."""

    class Config(BaseConfig):
        column: str = "target"
        """The column of the rows."""
        made: ClassVar[type[TreeTags]] = TreeTags

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> TreeTags:
            tags = read_training(
                train_data,
                [self.column],
                lambda row, cell: read_cell(cell, column=self.column, row=row)[1],
                purpose="to take trees from",
                setting="labels.column",
            )
            names = self.made.of_tags(names_in(tags, "tree", self.column))
            return self.made(dict.fromkeys(names), column=self.column)


def read_cell(value: Any, *, column: str, row: int) -> tuple[list[str], list[str]]:
    if not isinstance(value, str):
        raise DataError(f"Row {row}, column '{column}': wanted a tree, found {value!r:.80}.")
    try:
        return tags_of_tree(value)
    except DataError as error:
        raise DataError(f"Row {row}, column '{column}': {error}") from None


def check_mark(text: str, mark: str, depth: int) -> None:
    """Refuses an opening bracket of a tree that may not stand at this depth, with a DataError."""
    if mark in ("[IN:", "[SL:"):
        raise not_a_tree(text, f"{mark!r} has no label")
    if not mark.startswith(wanted := _kind(depth)):
        raise not_a_tree(text, f"{mark!r} stands where only {wanted} or a word may")
    if depth == DEEPEST:
        raise not_a_tree(text, f"it has over {DEEPEST} levels")


def _kind(depth: int) -> str:
    return "[SL:" if depth % 2 else "[IN:"


def not_a_tree(text: str, why: str) -> DataError:
    return DataError(
        f"A tree is written [IN:LABEL words [SL:LABEL words ] ], but {why}: {text!r:.200}."
    )
