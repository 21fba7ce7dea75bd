"""Sequences that grow on their own, a token at a time: greedy search, what sampling shares."""

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from weft.models.decoding.search_state import (
    DROP_SHARE,
    Begun,
    EncodedSource,
    Generator,
    Hypothesis,
    Request,
)
from weft.models.decoding.topk import argmax, log_sums

__all__ = ["Choose", "greedy", "grow"]

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""A token of each row from its scores :math:`(N,V)`, the rows' numbers :math:`(N)`, and how many
ids were generated."""


def grow(model: Generator, request: Request, begun: Begun, choose: Choose) -> list[Hypothesis]:
    """Adds chosen tokens to each begun row until its end mark or its limit."""
    found = _Found(request, begun.limits)
    state: EncodedSource = begun.state
    logits, limits = begun.logits, begun.limits
    rows = torch.arange(len(limits), device=limits.device)
    open_ = torch.ones_like(rows, dtype=torch.bool)  # of the rows still in the batch
    for length in range(int(limits.max())):
        scores = logits = logits.float()
        totals = log_sums(logits)
        if begun.scores.change(length):
            # A chosen score was not banned: where all others are as they were, no copy is needed.
            scores = logits if begun.scores.only_ban else logits.clone()
            scores = begun.scores(scores, found.so_far(rows), found.start, rows=rows)
        tokens = choose(scores, rows, length)
        found.add(rows, tokens, logits.gather(1, tokens[:, None])[:, 0] - totals, open_)
        open_ = open_ & (tokens != request.eos_idx) & (limits[rows] > length + 1)
        num_open = int(open_.sum())
        if not num_open:
            break
        if num_open <= (1 - DROP_SHARE) * len(rows):
            kept = open_.nonzero()[:, 0]
            state.select(kept)
            rows, tokens, open_ = rows[kept], tokens[kept], open_[kept]
        logits = model.step(tokens, state)
    return found.hypotheses()


@final
class _Found:
    """Ids and log-probabilities by row, the finished ones too."""

    def __init__(self, request: Request, limits: Tensor) -> None:
        self.request, self.start = request, len(request.prefix)
        self.ids = limits.new_zeros((len(limits), self.start + int(limits.max())))
        self.ids[:, : self.start] = limits.new_tensor(request.prefix)
        self.length = 0
        self.lengths = torch.zeros_like(limits)
        self.log_probs = torch.zeros_like(limits, dtype=torch.float32)

    def so_far(self, rows: Tensor) -> Tensor:
        """What was generated of rows, the prefix first. *Shape:* :math:`(N,T)`."""
        return self.ids[rows, : self.start + self.length]

    def add(self, rows: Tensor, tokens: Tensor, log_probs: Tensor, open_: Tensor) -> None:
        """Adds a token to rows; a row that is not open keeps its length and log-probability."""
        self.ids[rows, self.start + self.length] = tokens
        self.length += 1
        self.lengths.index_add_(0, rows, open_.to(self.lengths.dtype))
        self.log_probs.index_add_(0, rows, torch.where(open_, log_probs, 0.0))

    def hypotheses(self) -> list[Hypothesis]:
        penalty = self.request.decoding.length_penalty
        scores = (self.log_probs / self.lengths**penalty).tolist()
        rows = zip(self.ids[:, self.start :].tolist(), self.lengths.tolist(), scores, strict=True)
        return [self.request.hypothesis(*row) for row in rows]


@torch.inference_mode()
def greedy(model: Generator, request: Request) -> list[list[Hypothesis]]:
    """Takes the likeliest next token until it is the end mark.

    Returns:
        One hypothesis a row, in a list, in the order of the sources.
    """
    found = grow(model, request, request.begin(model), lambda scores, rows, length: argmax(scores))
    return [[hypothesis] for hypothesis in found]
