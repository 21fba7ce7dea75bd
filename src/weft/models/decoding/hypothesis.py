"""What a search reads from, and what it finds."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from weft.models.memory import Memory

__all__ = ["Generator", "Hypothesis", "Reading"]


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark; forced ids are among them."""
    score: float
    """Log-probability (natural logarithm) of the ids and the end mark, divided by their number to
    the power of the length penalty; higher is better. It is the model's own, but in beam search,
    which ranks by it, bans and penalties count."""


class Reading(Protocol):
    """What a generator keeps of the tokens it read, such as :class:`weft.models.memory.State`."""

    def __len__(self) -> int:
        """Number of rows."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it is."""
        ...

    def repeat(self, times: int) -> None:
        """Makes each row a group of ``times`` equal rows."""
        ...

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these indices; after ``repeat``, ``groups`` are the groups kept."""
        ...


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

    def start(self, memory: Memory) -> Any:
        """A :class:`Reading` in which nothing was read."""
        ...

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Reads a token of each row; returns the next one's logits, which may be changed."""
        ...
