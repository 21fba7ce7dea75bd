"""What a parser may do next, by a list of all trees, and by PyText's own sets."""

import random

import pytest
import torch

from textmill.metrics.frames import depth_of, read_tree
from textmill.models.parsers.transitions import Stacks, Transitions
from textmill.text.features.tree_actions import actions_of_tags, tree_of_actions
from textmill.text.features.tree_tags import tags_of_tree

ACTIONS = ["IN:A", "SHIFT", "SL:C", "REDUCE", "IN:B"]
SHIFT, REDUCE, BOUNDARY = 1, 3, 5
WORDS = ["x", "y", "z"]


def spans(words):
    """Every way to cut words into one part or more."""
    if not words:
        yield []
    for end in range(1, len(words) + 1):
        for rest in spans(words[end:]):
            yield [words[:end], *rest]


def nodes(words, kind, depth):
    """Every node of intents ``IN`` or of slots over words, of at most this depth."""
    other = "SL" if kind == "IN" else "IN"
    for parts in spans(words) if depth else ():
        bodies = [""]
        for part in parts:
            inner = [*part] * (len(part) == 1) + [*nodes(part, other, depth - 1)]
            bodies = [f"{body} {one}" for body in bodies for one in inner]
        labels = ["IN:A", "IN:B"] if kind == "IN" else ["SL:C"]
        yield from (f"[{label}{body} ]" for label in labels for body in bodies)


def searched(words, max_depth):
    """Every tree that the allowed actions lead to."""
    stacks = Stacks(Transitions(ACTIONS, max_depth=max_depth), torch.tensor([len(words)]))
    open_ = [[]]
    while open_:
        goes_on, chosen = [], []
        for row, allowed in enumerate(stacks.allowed()):
            for action in allowed.nonzero()[:, 0].tolist():
                if action == BOUNDARY:
                    assert allowed.sum() == 1
                    yield tree_of_actions(words, [ACTIONS[n] for n in open_[row]], root="IN:A")
                else:
                    goes_on.append(row)
                    chosen.append(action)
        stacks.select(torch.tensor(goes_on, dtype=torch.int64))
        stacks.push(torch.tensor(chosen, dtype=torch.int64))
        open_ = [[*open_[row], action] for row, action in zip(goes_on, chosen, strict=True)]


@pytest.mark.parametrize(("count", "depth"), [(1, 1), (1, 4), (2, 3), (3, 2), (3, 3)])
def test_the_allowed_actions_lead_to_every_tree_and_to_nothing_else(count, depth):
    words = WORDS[:count]
    wanted, found = [*nodes(words, "IN", depth)], [*searched(words, depth)]
    assert len(found) == len({*found})
    assert sorted(found) == sorted(wanted)
    assert max(depth_of(read_tree(tree)) for tree in found) == depth


def test_a_tree_is_its_actions():
    for tree in nodes(WORDS, "IN", 3):
        words, tags = tags_of_tree(tree)
        assert tree_of_actions(words, actions_of_tags(tags), root="IN:A") == tree


def test_the_sets_of_pytext():
    # pytext/models/test/rnng_test.py, test_valid_actions_constraint_insl: two words.
    names = ["IN:A", "IN:B", "IN:UNSUPPORTED", "REDUCE", "SHIFT", "SL:C", "SL:D"]
    stacks = Stacks(Transitions(names, max_depth=10), torch.tensor([2]))
    intents, slots, shift, reduce = [0, 1, 2], [5, 6], 4, 3
    found = [stacks.allowed()[0].nonzero()[:, 0].tolist()]
    for action in (0, 5, shift, shift, reduce, reduce):
        stacks.push(torch.tensor([action]))
        found.append(stacks.allowed()[0].nonzero()[:, 0].tolist())
    after_a_word = [*intents, reduce, shift]  # which PyText's test does not ask
    assert found == [
        *(intents, [shift, *slots], [*intents, shift], after_a_word, [reduce], [reduce]),
        [len(names)],
    ]


def test_what_an_action_lies_on_and_reduces():
    stacks = Stacks(Transitions(ACTIONS, max_depth=9), torch.tensor([3]))
    # Node 1 is the intent, 2 a word, 3 a slot, 4 and 5 its words, 6 the slot closed, 7 the whole.
    found = [
        [x[0].tolist() for x in stacks.push(torch.tensor([action]))]
        for action in (0, SHIFT, 2, SHIFT, SHIFT, REDUCE, REDUCE)
    ]
    assert [below for below, *_ in found] == [0, 1, 2, 3, 4, 2, 0]
    assert [innermost for _, innermost, _ in found] == [0, 1, 1, 3, 3, 3, 1]
    reduced = [[n for n, is_one in enumerate(row) if is_one] for *_, row in found]
    assert reduced == [[], [], [], [], [], [4, 5], [2, 6]]


def test_rows_that_an_action_does_not_fit_break_nothing():
    lengths = torch.tensor([0, 1, 2, 5])
    stacks = Stacks(Transitions(ACTIONS, max_depth=2), lengths)
    rng = random.Random(1)
    for _ in range(60):
        assert stacks.allowed().any(dim=1).all()
        below, innermost, _ = stacks.push(torch.tensor([rng.randrange(6) for _ in lengths]))
        assert (below >= 0).all()
        assert (innermost >= 0).all()
        assert (stacks.place <= lengths).all()
