"""The transition system of a shift-reduce parser: stacks that actions change, and what may come."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from textmill.errors import UserError

SHIFT, REDUCE = "SHIFT", "REDUCE"
"""The names of two actions; the others are labels."""


class Transitions(nn.Module):
    """The actions by their numbers, and which of them make a tree.

    The outermost node is an intent with all words; in an intent stand words and slots, in a slot
    words and intents, and none is empty.

    Args:
        actions: ``SHIFT``, ``REDUCE``, and the labels ``IN:...`` and ``SL:...`` that open a node.
        max_depth: Most nodes that may be open at once.
    """

    intents: Tensor
    """True at actions that open an intent. *Shape:* :math:`(A+1)`."""
    slots: Tensor

    def __init__(self, actions: Sequence[str], *, max_depth: int) -> None:
        super().__init__()
        if not {SHIFT, REDUCE} <= {*actions}:
            raise UserError(
                "A parser over a stack needs the actions that build trees for its labels: set "
                "labels.type=tree_actions."
            )
        self.max_depth = max_depth
        self.shift, self.reduce = (list(actions).index(name) for name in (SHIFT, REDUCE))
        self.boundary = len(actions)
        """What comes before the first action and after the last one."""
        for name, mark in (("intents", "IN:"), ("slots", "SL:")):
            opens = [action.startswith(mark) for action in actions]
            self.register_buffer(name, torch.tensor([*opens, False]), persistent=False)


class Stacks:
    """The stack of each row, and every node that was ever on it.

    Each action pushes one node, so the newest node is the top: an open intent or slot, a word, or
    what was reduced, for which the open node and all above it leave the stack. Below all lies one
    that never leaves it. An action that does not fit a row does no harm to others.
    """

    kept: ClassVar[tuple[str, ...]] = ("lengths", "place", "actions", "on_stack", "is_open")

    def __init__(self, transitions: Transitions, lengths: Tensor) -> None:
        self.transitions, self.lengths = transitions, lengths
        self.place = torch.zeros_like(lengths)
        """The next word. *Shape:* :math:`(R)`, as ``lengths``, the words of each row."""
        self.actions = torch.full_like(lengths, transitions.boundary)[:, None]
        """What pushed each node. *Shape:* :math:`(R,N)`, as the next two."""
        self.on_stack = torch.ones_like(self.actions, dtype=torch.bool)
        self.is_open = torch.zeros_like(self.on_stack)

    def push(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Takes an action of each row. *Shape:* :math:`(R)`.

        Returns:
            The number of the node on which the new one lies, :math:`(R)`; that of the innermost
            open node before the action, 0 if there is none, :math:`(R)`; and True at the nodes that
            the action reduces, without the open one, :math:`(R,N)`.
        """
        moves, nodes = self.transitions, self._numbers()
        innermost, reduces = self._last(self.is_open), (actions == moves.reduce)[:, None]
        children = self.on_stack & (nodes > innermost[:, None]) & reduces
        left = self.on_stack & ~((nodes >= innermost[:, None]) & reduces)
        below = self._last(left)
        opens = moves.intents[actions] | moves.slots[actions]
        self.place = torch.minimum(self.place + (actions == moves.shift), self.lengths)
        self.actions = torch.cat([self.actions, actions[:, None]], dim=1)
        self.on_stack = pad(left, (0, 1), value=True)
        self.is_open = torch.cat([self.is_open & left, opens[:, None]], dim=1)
        return below, innermost, children

    def allowed(self) -> Tensor:
        """True at the actions that may come next, one at least. *Shape:* :math:`(R,A+1)`."""
        moves, depth, more = self.transitions, self.is_open.sum(dim=1), self.place < self.lengths
        innermost = self.actions.gather(1, self._last(self.is_open)[:, None])
        opening = torch.where(moves.intents[innermost], moves.slots, moves.intents)
        allowed = opening & (more & (depth < moves.max_depth))[:, None]
        allowed[:, moves.shift] = more & (depth > 0)
        allowed[:, moves.reduce] = ~self.is_open[:, -1] & ((depth > 1) | ((depth == 1) & ~more))
        allowed[:, moves.boundary] = ~allowed.any(dim=1)
        return allowed

    def repeat(self, times: int) -> None:
        rows = torch.arange(len(self.place), device=self.place.device)
        self.select(rows.repeat_interleave(times))

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these numbers, in their order; a number may repeat."""
        for name in self.kept:
            setattr(self, name, getattr(self, name)[indices])

    def _numbers(self) -> Tensor:
        return torch.arange(self.actions.shape[1], device=self.actions.device)

    def _last(self, nodes: Tensor) -> Tensor:
        """The number of the last node that is True; 0 if none is. *Shape:* (R,N) to (R)."""
        return (nodes * self._numbers()).amax(dim=1)
