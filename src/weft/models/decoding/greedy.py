"""Greedy search: the likeliest token, again and again."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from weft.models.decoding.hypothesis import Generator, Hypothesis, read_prefix
from weft.models.decoding.settings import Decoding

__all__ = ["greedy"]

DROP_SHARE: Final = 0.25
"""Finished rows are dropped once they are this share of the batch: dropping copies the cache."""


@torch.inference_mode()
def greedy(
    model: Generator,
    source: Tensor,
    source_lengths: Tensor | None,
    decoding: Decoding,
    *,
    prefix: Sequence[int],
    eos_idx: int,
) -> list[list[Hypothesis]]:
    """Takes the likeliest next token until it is the end mark.

    Args:
        model: The model, in evaluation mode.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        decoding: The settings; those of beams do not matter.
        prefix: Ids every target starts with: the start mark, and a language tag where there is one.
        eos_idx: Id of the end mark.

    Returns:
        One hypothesis a row, in a list, in the order of ``source``.
    """
    # The last id generated is never read, so it needs no position.
    longest = model.max_length - len(prefix) + 1
    limits = decoding.limits(source, source_lengths, longest=longest)
    state = model.start(model.encode(source, source_lengths))
    found = _Found(limits)
    rows = torch.arange(len(source), device=source.device)
    open_ = torch.ones_like(rows, dtype=torch.bool)  # of the rows still in the batch
    logits = read_prefix(model, state, prefix)
    for length in range(1, int(limits.max()) + 1):
        best, tokens = logits.float().max(dim=-1)
        log_probs = best - logits.float().logsumexp(dim=-1)
        found.add(rows[open_], tokens[open_], log_probs[open_])
        open_ &= (tokens != eos_idx) & (limits[rows] > length)
        num_open = int(open_.sum())
        if not num_open:
            break
        if num_open <= (1 - DROP_SHARE) * len(rows):
            kept = open_.nonzero()[:, 0]
            state.select(kept)
            rows, tokens, open_ = rows[kept], tokens[kept], open_[kept]
        logits = model.step(tokens, state)
    return found.hypotheses(eos_idx, decoding.length_penalty)


class _Found:
    """Ids and log-probabilities by input row."""

    def __init__(self, limits: Tensor) -> None:
        self.ids = limits.new_zeros((len(limits), int(limits.max())))
        self.lengths = torch.zeros_like(limits)
        self.log_probs = torch.zeros_like(limits, dtype=torch.float32)

    def add(self, rows: Tensor, tokens: Tensor, log_probs: Tensor) -> None:
        self.ids[rows, self.lengths[rows]] = tokens
        self.lengths[rows] += 1
        self.log_probs[rows] += log_probs

    def hypotheses(self, eos_idx: int, length_penalty: float) -> list[list[Hypothesis]]:
        scores = (self.log_probs / self.lengths**length_penalty).tolist()
        found = []
        for ids, length, score in zip(
            self.ids.tolist(), self.lengths.tolist(), scores, strict=True
        ):
            ended = ids[length - 1] == eos_idx
            found.append([Hypothesis(ids[: length - ended], score)])
        return found
