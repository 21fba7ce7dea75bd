"""What a search starts from and what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from weft.errors import UserError
from weft.models.memory import Memory, State

__all__ = ["Generator", "Hypothesis", "length_limits", "read_prefix"]


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark."""
    score: float
    """Log-probability (natural logarithm) of the ids and the end mark, divided by their number to the power
    of the length penalty; higher is better."""


class Generator(Protocol):
    """A model that decodes one token at a time; :class:`weft.models.transformer.Transformer` is one."""

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
    """Reads the ids that every target starts with; returns the next token's logits. *Shape:* :math:`(B,V)`."""
    if not prefix:
        raise UserError(
            "Decoding needs a prefix of at least one id (the start mark), but it is empty."
        )
    logits = torch.empty(0)
    for token in prefix:
        tokens = torch.full((len(state),), token, dtype=torch.int64, device=state.device)
        logits = model.step(tokens, state)
    return logits


def length_limits(
    max_length: int | Tensor, *, model: Generator, source: Tensor, prefix: Sequence[int]
) -> Tensor:
    """The most ids each row may get, bounded by what the model has positions for. *Shape:* :math:`(B)`."""
    limits = torch.as_tensor(max_length, dtype=torch.int64, device=source.device)
    if limits.ndim and limits.shape != source.shape[:1]:
        raise UserError(
            f"max_length must be one number or one a row of source, but its shape is "
            f"{tuple(limits.shape)} and source's {tuple(source.shape)}."
        )
    if bool((limits < 1).any()):
        raise UserError(f"max_length must be at least 1, but is {int(limits.min())}.")
    # The last generated id is never read, so it needs no position.
    return limits.clamp(max=model.max_length - len(prefix) + 1).expand(source.shape[0])
