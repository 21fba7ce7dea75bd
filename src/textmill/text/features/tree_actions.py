"""Trees of intents and slots as the actions that build them over a stack, and back.

In ``[IN:CALL call [SL:PERSON my mom ] now ]`` the actions are ``IN:CALL SHIFT SL:PERSON SHIFT SHIFT
REDUCE SHIFT REDUCE``: a label opens an intent or a slot, ``SHIFT`` takes the next word, and
``REDUCE`` closes what was opened last.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from textmill.config.component import Component
from textmill.errors import UserError
from textmill.text import registries
from textmill.text.features.labels import Labels
from textmill.text.features.tree_tags import OPENED, FittedTreeTags

SHIFT = "SHIFT"
REDUCE = "REDUCE"


def actions_of_tags(tags: Sequence[str]) -> list[str]:
    """The actions that build a tree, of which each word has a tag (``tree_tags``)."""
    actions, depth = list[str](), 0
    for tag in tags:
        opened, closed = OPENED.findall(tag), tag.count("]")
        actions += [*opened, SHIFT, *[REDUCE] * closed]
        depth += len(opened) - closed
    return [*actions, *[REDUCE] * depth]


def tree_of_actions(words: Sequence[str], actions: Sequence[str], *, root: str) -> str:
    """The tree that actions build of words; without any, an empty one of the intent ``root``."""
    rest, parts = iter(words), list[str]()
    for action in actions:
        if action == SHIFT:
            parts.append(next(rest))
        else:
            parts.append("]" if action == REDUCE else f"[{action}")
    return " ".join(parts) or f"[{root} ]"


class TreeActions(Labels):
    """The actions that build trees: ``SHIFT``, ``REDUCE``, and the labels of intents and slots."""

    def __init__(self, names: Iterable[str], *, column: str = "target") -> None:
        super().__init__(names, column=column, multiple=True)
        intent = next((name for name in self.names if name.startswith("IN:")), None)
        if intent is None:
            raise UserError(f"No action opens an intent, such as IN:CALL. {self.listed}")
        self.root = intent
        """The intent of a sentence without a word."""


@registries.labels.register("tree_actions")
class FittedTreeActions(Component):
    """The actions of the trees in ``train_data``, in the order of their first row."""

    class Config(FittedTreeTags.Config):
        """The same settings."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> TreeActions:
            tags = FittedTreeTags.Config(column=self.column).build(train_data=train_data)
            return TreeActions(dict.fromkeys(actions_of_tags(tags.names)), column=self.column)
