"""Trees of intents and slots as the actions that build them over a stack, and back.

In ``[IN:CALL call [SL:PERSON my mom ] now ]`` the actions are ``IN:CALL SHIFT SL:PERSON SHIFT SHIFT
REDUCE SHIFT REDUCE``: a label opens an intent or a slot, ``SHIFT`` takes the next word, and
``REDUCE`` closes what was opened last.
"""

from collections.abc import Iterable, Sequence

from typing_extensions import override

from textmill.text import registries
from textmill.text.features.tree_tags import OPENED, FittedTreeTags, TreeTags

SHIFT = "SHIFT"
REDUCE = "REDUCE"


def actions_of_tags(tags: Iterable[str]) -> list[str]:
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


class TreeActions(TreeTags):
    """The actions that build trees: ``SHIFT``, ``REDUCE``, and the labels of intents and slots."""

    @staticmethod
    @override
    def of_tags(tags: Iterable[str]) -> list[str]:
        return actions_of_tags(tags)

    @override
    def tree(self, words: Sequence[str], names: Sequence[str]) -> str:
        return tree_of_actions(words, names, root=self.root)


@registries.labels.register("tree_actions")
class FittedTreeActions(FittedTreeTags):
    """The actions of the trees in ``train_data``, in the order of their first row."""

    class Config(FittedTreeTags.Config):
        """The same settings."""

        made = TreeActions
