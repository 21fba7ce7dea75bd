"""Sequences that grow on their own, a token at a time: greedy search, what sampling shares."""

from collections.abc import Callable

import torch
from torch import Tensor

from textmill.models.decoding.search_state import (
    DROP_SHARE,
    Begun,
    EncodedSource,
    Generator,
    Hypothesis,
    Request,
)
from textmill.models.decoding.topk import argmax, log_sums

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""A token of each row from its scores :math:`(N,V)`, the rows' numbers :math:`(N)`, and how many
ids were generated."""


def grow(model: Generator, request: Request, begun: Begun, choose: Choose) -> list[Hypothesis]:
    """Adds chosen tokens to each begun row until its end mark or its limit."""
    state: EncodedSource = begun.state
    logits, limits, start = begun.logits, begun.limits, len(request.prefix)
    read = begun.read.shape[1]
    # Of all rows, the finished ones too: ids, their number without the prefix, log-probabilities.
    ids = limits.new_zeros((len(limits), start + int(limits.max())))
    ids[:, :start] = limits.new_tensor(request.prefix)
    ids[:, start : start + read] = begun.read
    lengths, log_probs = torch.full_like(limits, read), begun.log_probs.float()
    rows = torch.arange(len(limits), device=limits.device)
    open_ = torch.ones_like(rows, dtype=torch.bool)  # of the rows still in the batch
    for length in range(read, int(limits.max())):
        scores = logits = logits.float()
        totals = log_sums(logits)
        if begun.scores.change(length):
            # A chosen score was not banned: where all others are as they were, no copy is needed.
            scores = logits if begun.scores.only_ban else logits.clone()
            scores = begun.scores(scores, ids[rows, : start + length], start, rows=rows)
        ids[rows, start + length] = tokens = choose(scores, rows, length)
        lengths.index_add_(0, rows, open_.to(lengths.dtype))
        chosen = logits.gather(1, tokens[:, None])[:, 0] - totals
        log_probs.index_add_(0, rows, torch.where(open_, chosen, 0.0))
        open_ = open_ & (tokens != request.eos_idx) & (limits[rows] > length + 1)
        num_open = int(open_.sum())
        if not num_open:
            break
        if num_open <= (1 - DROP_SHARE) * len(rows):
            kept = open_.nonzero()[:, 0]
            state.select(kept)
            rows, tokens, open_ = rows[kept], tokens[kept], open_[kept]
        logits = model.step(tokens, state)
    found_scores = (log_probs / lengths**request.decoding.length_penalty).tolist()
    found = zip(ids[:, start:].tolist(), lengths.tolist(), found_scores, strict=True)
    return [request.hypothesis(*row) for row in found]


@torch.inference_mode()
def greedy(model: Generator, request: Request) -> list[list[Hypothesis]]:
    """Takes the likeliest next token until it is the end mark.

    Returns:
        One hypothesis a row, in a list, in the order of the sources.
    """
    found = grow(model, request, request.begin(model), lambda scores, rows, length: argmax(scores))
    return [[hypothesis] for hypothesis in found]
