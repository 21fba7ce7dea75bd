"""What a search starts from and what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.memory import Memory, State

__all__ = ["Generator", "Hypothesis", "read_prefix"]


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark."""
    score: float
    """Log-probability (natural logarithm) of the ids and the end mark, divided by their number to
    the power of the length penalty; higher is better."""


@runtime_checkable
class Generator(Protocol):
    """A model that decodes one token at a time, such as :class:`Transformer`."""

    training: bool

    def train(self, mode: bool = True) -> object:
        """Switches training mode, as ``torch.nn.Module`` does."""
        ...

    @property
    def max_length(self) -> int:
        """Longest target it has positions for, in tokens."""
        ...

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> Memory:
        """Runs the encoder."""
        ...

    def start(self, memory: Memory) -> State:
        """A state in which nothing was read."""
        ...

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Reads a token of each row; returns the next one's logits."""
        ...


def read_prefix(model: Generator, state: State, prefix: Sequence[int]) -> Tensor:
    """Reads the ids every target starts with; returns the logits after. *Shape:* :math:`(B,V)`."""
    if not prefix:
        raise UserError("Decoding needs a prefix of at least one id, the start mark.")
    logits = torch.empty(0)
    for token in prefix:
        tokens = torch.full((len(state),), token, dtype=torch.int64, device=state.device)
        logits = model.step(tokens, state)
    return logits
