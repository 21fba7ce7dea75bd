"""The settings of a search."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from weft.errors import UserError

__all__ = ["Decoding"]

LARGEST_BEAM = 1_000
"""Over this no search of text has gained, and a typing error would take all memory."""


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How targets are searched.

    Example:
        >>> Decoding(beam_size=4, n_best=2).early_stopping
        'heuristic'
        >>> Decoding(n_best=2)
        Traceback (most recent call last):
        weft.errors.UserError: decoding.n_best must be from 1 to beam_size, but is 2 of 1.
    """

    beam_size: int = 1
    """Sequences followed at once; 1 is greedy search, the fastest; 4 or 5 are usual for quality."""
    length_penalty: float = 1.0
    """Power of the length that log-probabilities are divided by to compare sequences; 0 compares
    them as they are, which favours short ones. 1 is transformers' default."""
    n_best: int = 1
    """Hypotheses for a source, at most ``beam_size``."""
    early_stopping: Literal["heuristic", "first", "never"] = "heuristic"
    """When a source with ``beam_size`` finished sequences stops: when no unfinished one would be
    better if it ended at this length (``heuristic``; transformers' False), at once (``first``;
    True), or when none can become better at any length allowed (``never``)."""
    max_length_a: float = 2.0
    """At most ``max_length_a * S + max_length_b`` tokens, the end mark included, are generated for
    a source of S tokens, and no more than the model has positions for. Translations rarely
    double."""
    max_length_b: int = 10
    """See ``max_length_a``; room for sources of a few tokens."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam_size:
            raise UserError(
                "decoding.n_best must be from 1 to beam_size, "
                f"but is {self.n_best} of {self.beam_size}."
            )
        if self.beam_size > LARGEST_BEAM:
            raise UserError(
                f"decoding.beam_size must be at most {LARGEST_BEAM}, but is {self.beam_size}."
            )
        if not math.isfinite(self.length_penalty):
            raise UserError(
                f"decoding.length_penalty must be a number, but is {self.length_penalty}."
            )
        if not 0 <= self.max_length_a < math.inf or self.max_length_b < 1:
            raise UserError(
                "decoding.max_length_a must be at least 0 and max_length_b at least 1, "
                f"but they are {self.max_length_a} and {self.max_length_b}."
            )

    def limits(self, source: Tensor, source_lengths: Tensor | None, *, longest: int) -> Tensor:
        """The most ids to generate for each source.

        Args:
            source: Token ids. *Shape:* :math:`(B,S)`.
            source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
            longest: What the model has positions for.

        Returns:
            Numbers, int64. *Shape:* :math:`(B)`.

        Example:
            >>> Decoding().limits(torch.zeros(2, 9), torch.tensor([9, 4]), longest=20)
            tensor([20, 18])
        """
        if source_lengths is None:
            source_lengths = torch.full(source.shape[:1], source.shape[1], device=source.device)
        factor = min(self.max_length_a, float(longest))  # of a source of one token it is enough
        wanted = (factor * source_lengths).long() + min(self.max_length_b, longest)
        return wanted.clamp(max=longest)
