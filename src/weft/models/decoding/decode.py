"""The settings of a search, and the search they ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from weft.errors import UserError
from weft.models.decoding.beam import beam_search
from weft.models.decoding.greedy import greedy
from weft.models.decoding.hypothesis import Generator, Hypothesis

__all__ = ["Decoding", "decode"]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How targets are searched.

    Example:
        >>> Decoding(beam_size=4, n_best=2).max_length_b
        10
        >>> Decoding(n_best=2)
        Traceback (most recent call last):
        weft.errors.UserError: decoding.n_best must be from 1 to beam_size, but n_best is 2 and beam_size 1.
    """

    beam_size: int = 1
    """Sequences followed at once; 1 is greedy search, the fastest. 4 or 5 gain about a BLEU point."""
    length_penalty: float = 1.0
    """Power of the length that log-probabilities are divided by to compare sequences; over 0 favours long."""
    n_best: int = 1
    """Hypotheses a source, at most ``beam_size``."""
    early_stopping: Literal["heuristic", "first", "never"] = "heuristic"
    """When a full beam stops: when no sequence would be better if it ended now (``heuristic``), at once
    (``first``), or when none can become better at any length (``never``)."""
    max_length_a: float = 2.0
    """At most ``max_length_a * source length + max_length_b`` tokens are generated for a source."""
    max_length_b: int = 10
    """See ``max_length_a``."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_best <= self.beam_size:
            raise UserError(
                f"decoding.n_best must be from 1 to beam_size, "
                f"but n_best is {self.n_best} and beam_size {self.beam_size}."
            )
        if self.max_length_a < 0 or self.max_length_b < 1:
            raise UserError(
                f"decoding.max_length_a must be at least 0 and max_length_b at least 1, "
                f"but they are {self.max_length_a} and {self.max_length_b}."
            )


def decode(
    model: Generator,
    source: Tensor,
    source_lengths: Tensor | None,
    decoding: Decoding,
    *,
    prefix: Sequence[int],
    eos_idx: int,
) -> list[list[Hypothesis]]:
    """Searches targets for sources; a model in training mode is put in evaluation mode meanwhile.

    Args:
        model: The model.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        decoding: The settings.
        prefix: Ids every target starts with: the start mark, and a language tag where there is one.
        eos_idx: Id of the end mark.

    Returns:
        For each row of ``source``, in order, up to ``n_best`` hypotheses, the best first.
    """
    if not len(source):
        return []
    max_length = _length_limits(source, source_lengths, decoding)
    training = isinstance(model, nn.Module) and model.training
    if training:
        model.eval()
    try:
        if decoding.beam_size == 1:
            return greedy(
                model,
                source,
                source_lengths,
                prefix=prefix,
                eos_idx=eos_idx,
                max_length=max_length,
                length_penalty=decoding.length_penalty,
            )
        return beam_search(
            model,
            source,
            source_lengths,
            prefix=prefix,
            eos_idx=eos_idx,
            max_length=max_length,
            beam_size=decoding.beam_size,
            length_penalty=decoding.length_penalty,
            n_best=decoding.n_best,
            early_stopping=decoding.early_stopping,
        )
    finally:
        if training:
            model.train()


def _length_limits(source: Tensor, source_lengths: Tensor | None, decoding: Decoding) -> Tensor:
    if source_lengths is None:
        source_lengths = torch.full(source.shape[:1], source.shape[1], device=source.device)
    return (decoding.max_length_a * source_lengths).long() + decoding.max_length_b
