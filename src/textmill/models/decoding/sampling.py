"""Sequences that grow a token at a time: greedy search, and draws that belong to a source.

A generator's state would give a row other numbers in another batch. Here a number is a function of
(seed, the source's ids, which draw of the source, position), by the mixing steps of splitmix64
(Steele, Lea and Flood 2014).
"""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from textmill.models.decoding.search_settings import Decoding
from textmill.models.decoding.search_state import (
    DROP_SHARE,
    Begun,
    Generator,
    Hypothesis,
    Request,
    SearchState,
)
from textmill.models.decoding.topk import argmax, log_sums

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""A token of each row from its scores :math:`(N,V)`, the rows' numbers :math:`(N)`, and how many
ids were generated."""


def grow(model: Generator, request: Request, begun: Begun, choose: Choose) -> list[Hypothesis]:
    state: SearchState = begun.state
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
    """Takes the likeliest next token until it is the end mark: one hypothesis a row."""
    found = grow(model, request, request.begin(model), lambda scores, rows, length: argmax(scores))
    return [[hypothesis] for hypothesis in found]


def likely(scores: Tensor, decoding: Decoding) -> tuple[Tensor, Tensor | None]:
    """Probabilities of the tokens that the settings leave, which do not sum to 1, and their ids.

    *Shape:* :math:`(N,V)` to :math:`(N,M)`, float64; ids are None where all are left.
    """
    scores, tokens = scores.double() / decoding.temperature, None
    if 0 < decoding.top_k < scores.shape[1] or decoding.top_p < 1:
        kept = min(decoding.top_k or scores.shape[1], scores.shape[1])
        scores, tokens = scores.topk(kept, dim=1)
    probabilities = scores.softmax(dim=1)
    if decoding.top_p < 1:
        before = probabilities.cumsum(dim=1) - probabilities
        probabilities = probabilities.masked_fill(before >= decoding.top_p, 0.0)
    return probabilities, tokens


def draw(scores: Tensor, uniforms: Tensor, decoding: Decoding) -> Tensor:
    """A token of each row by its number from 0 to below 1, of those that are :func:`likely`.

    The number is looked up in the cumulated probabilities: rounding errors of scores change a
    token about as rarely as they are small. *Shape:* :math:`(N,V)`, :math:`(N)` to :math:`(N)`.
    """
    probabilities, tokens = likely(scores, decoding)
    sums = probabilities.cumsum(dim=1)
    places = torch.searchsorted(sums, (uniforms * sums[:, -1])[:, None], right=True)
    places = places.clamp(max=sums.shape[1] - 1)
    return (places if tokens is None else tokens.gather(1, places))[:, 0]


_GOLDEN = -0x61C8864680B583EB  # 2**64 divided by the golden ratio, as a signed number


def _shifted(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mixed(x: Tensor) -> Tensor:
    x = x + _GOLDEN
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def source_keys(source: Tensor, source_lengths: Tensor | None, *, seed: int) -> Tensor:
    """A number of 64 bits for each row's ids, whatever its padding.

    Another seed gives all rows other keys. *Shape:* as in :class:`Request`, to :math:`(B)`, int64.
    """
    seed = (seed + 2**63) % 2**64 - 2**63
    keys = _mixed(torch.full((len(source),), seed, dtype=torch.int64, device=source.device))
    for place in range(source.shape[1]):
        next_keys = _mixed(keys ^ source[:, place])
        real = None if source_lengths is None else source_lengths > place
        keys = next_keys if real is None else torch.where(real, next_keys, keys)
    return keys


def uniforms(keys: Tensor, number: Tensor | int) -> Tensor:
    """A number from 0 to below 1 for each key, other ones for another ``number``.

    They are multiples of :math:`2^{-40}`, float64.
    """
    return _shifted(_mixed(_mixed(keys) ^ number), 24).double() * 2.0**-40


@torch.inference_mode()
def sample(model: Generator, request: Request) -> list[list[Hypothesis]]:
    """Draws ``n_best`` targets for each source, the best score first; the same may come twice.

    The draws of a source depend on the seed and its ids alone, not on the batch it is in: see
    :func:`draw` and :func:`uniforms`.
    """
    decoding, draws = request.decoding, request.decoding.n_best
    begun = request.begin(model)
    keys = source_keys(request.source, request.source_lengths, seed=decoding.seed)
    # Draws are rows of their own, that each ends and is dropped when it will.
    rows = torch.arange(len(keys), device=keys.device).repeat_interleave(draws)
    number = torch.arange(draws, device=keys.device).repeat(len(keys))
    begun.state.select(rows)
    begun = dataclasses.replace(
        begun,
        logits=begun.logits[rows],
        limits=begun.limits[rows],
        scores=begun.scores.repeated(rows),
        read=begun.read[rows],
        log_probs=begun.log_probs[rows],
    )

    def choose(scores: Tensor, kept: Tensor, length: int) -> Tensor:
        numbers = uniforms(keys[rows[kept]], number[kept] * 2**32 + length)
        return draw(scores, numbers, decoding)

    found = grow(model, request, begun, choose)
    groups = (found[i : i + draws] for i in range(0, len(found), draws))
    return [sorted(group, key=lambda h: h.score, reverse=True) for group in groups]
