"""Searches for targets, a token at a time, as the trained model has them: in numpy.

The definitions are those of ``textmill.models.decoding``; a test holds both side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from textmill.exported.seq2seq import Found, Search

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
DROP_SHARE = 0.25
"""Finished rows are dropped once they are this share of the batch: dropping copies the state."""


class TokenReader(Protocol):
    """What reads sources, and targets token by token; it holds what it read of each row."""

    def begin(self, sources: Ids, /) -> None:
        """Reads sources of one length. *Shape:* ``[B, S]``."""
        ...

    def step(self, tokens: Ids, /) -> Floats:
        """Reads a token of each row; gives logits. *Shape:* ``[N]`` to ``[N, V]``."""
        ...

    def select(self, rows: Ids, /, *, same_sources: bool = False) -> None:
        """Keeps these rows, in their order; a row may repeat.

        Args:
            rows: Their numbers.
            same_sources: Whether each is of the source of the row whose place it takes.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is searched."""

    search: Search
    """How."""
    prefix: Sequence[int]
    """Ids that every target begins with, one at least."""
    eos_idx: int
    """Id of the end mark; -1: none ends a target but its limit."""
    unk_idx: int = -1
    """Id of the unknown token."""
    forced: Sequence[Sequence[int]] | None = None
    """Ids that each row's target begins with, after the prefix."""
    forced_ids: Ids = field(init=False)
    """The same, -1 at padding. *Shape:* ``[B, F]``, F 0 where there are none."""

    def __post_init__(self) -> None:
        rows = self.forced or []
        longest = max(map(len, rows), default=0)
        padded = [[*ids, *[-1] * (longest - len(ids))] for ids in rows]
        object.__setattr__(
            self, "forced_ids", np.array(padded, np.int64).reshape(len(rows), longest)
        )

    def limits(self, count: int, length: int) -> Ids:
        """The most ids to generate for each of ``count`` sources of this length."""
        begun = map(len, self.forced) if self.forced else [0] * count
        return np.array([self.search.limit(length, more) for more in begun])

    def found(self, ids: Sequence[int], length: int, score: float) -> Found:
        """What was found, of ``length`` ids, the end mark among them where there is one."""
        ended = self.eos_idx >= 0 and ids[length - 1] == self.eos_idx
        return Found(list(ids[: length - ended]), score)


def search(decoder: TokenReader, sources: Ids, target: Target) -> list[list[Found]]:
    """Searches targets of sources of one length.

    Args:
        decoder: Computes.
        sources: *Shape:* ``[B, S]``.
        target: What is searched.

    Returns:
        Hypotheses of each source, the best first.
    """
    decoder.begin(sources)
    logits = np.empty((0, 0), np.float32)
    for token in target.prefix:
        logits = decoder.step(np.full(len(sources), token))
    limits = target.limits(len(sources), sources.shape[1])
    if target.search.sample:
        return _sampled(decoder, target, logits, limits, sources=sources)
    if target.search.beam_size == 1:
        rows = np.arange(len(sources))
        found = _grown(
            decoder,
            target,
            logits,
            limits,
            sources=rows,
            choose=lambda scores, *_: scores.argmax(1),
        )
        return [[one] for one in found]
    return _beams(decoder, target, logits, limits)


def _log_sums(scores: Floats) -> Floats:
    top = scores.max(axis=1)
    return np.asarray(np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top)


def _changed(scores: Floats, ids: Ids, target: Target, rows: Ids) -> Floats:
    """Scores with what the settings ban and punish; ``ids`` have the prefix first."""
    length = ids.shape[1] - len(target.prefix)
    if length >= target.forced_ids.shape[1]:
        return _punished(scores, ids, target, length)
    wanted = target.forced_ids[rows, length]
    held = np.flatnonzero(wanted >= 0)
    kept = scores[held, wanted[held]].copy()  # as they are before any is banned
    scores = _punished(scores, ids, target, length).copy()
    scores[held] = -np.inf
    scores[held, wanted[held]] = kept
    return scores


def _punished(scores: Floats, ids: Ids, target: Target, length: int) -> Floats:
    search = target.search
    if not search.changes_scores:
        return scores
    scores = scores.copy()
    eos = scores[:, target.eos_idx].copy()
    if search.repetition_penalty != 1:
        found, each = np.take_along_axis(scores, ids, axis=1), search.repetition_penalty
        np.put_along_axis(scores, ids, np.where(found < 0, found * each, found / each), axis=1)
    if search.unknown_penalty:
        # A slice is empty where the model has no score for the token.
        scores[:, target.unk_idx : target.unk_idx + 1] -= search.unknown_penalty
    if (size := search.no_repeat_ngram) and ids.shape[1] >= size:
        spans = np.lib.stride_tricks.sliding_window_view(ids, size, axis=1)
        begun = ids[:, ids.shape[1] - size + 1 :]
        again, places = np.nonzero((spans[:, :, :-1] == begun[:, None]).all(axis=2))
        scores[again, spans[again, places, -1]] = -np.inf
    if length < search.min_length:
        scores[:, target.eos_idx] = -np.inf
    if search.no_repeat_ngram:
        none_left = (scores == -np.inf).all(axis=1)
        scores[none_left, target.eos_idx] = eos[none_left]
    return scores


def _grown(
    decoder: TokenReader,
    target: Target,
    logits: Floats,
    limits: Ids,
    *,
    sources: Ids,
    choose: Callable[[Floats, Ids, int], Ids],
) -> list[Found]:
    """Adds chosen tokens to each row until its end mark or its limit."""
    start, count = len(target.prefix), len(limits)
    ids = np.zeros((count, start + int(limits.max(initial=0))), np.int64)
    ids[:, :start] = target.prefix
    lengths, total = np.zeros(count, np.int64), np.zeros(count, np.float32)
    rows, is_open = np.arange(count), np.ones(count, np.bool_)
    for length in range(int(limits.max(initial=0))):
        scores = _changed(logits, ids[rows, : start + length], target, sources[rows])
        tokens = choose(scores, rows, length)
        chosen = np.take_along_axis(logits, tokens[:, None], axis=1)[:, 0] - _log_sums(logits)
        ids[rows, start + length] = tokens
        lengths[rows] += is_open
        total[rows] += np.where(is_open, chosen, 0)
        is_open = is_open & (tokens != target.eos_idx) & (limits[rows] > length + 1)
        if not is_open.any():
            break
        if is_open.sum() <= (1 - DROP_SHARE) * len(rows):
            kept = np.flatnonzero(is_open)
            decoder.select(kept)
            rows, tokens, is_open = rows[kept], tokens[kept], is_open[kept]
        logits = decoder.step(tokens)
    scores = total / lengths.astype(np.float32) ** target.search.length_penalty
    found = zip(ids[:, start:].tolist(), lengths.tolist(), scores.tolist(), strict=True)
    return [target.found(*one) for one in found]


def _beams(decoder: TokenReader, target: Target, logits: Floats, limits: Ids) -> list[list[Found]]:
    beams = _Beams(target, limits)
    size = target.search.beam_size
    decoder.select(np.repeat(np.arange(len(limits)), size))
    logits = np.repeat(logits, size, axis=0)
    while True:
        scores = logits - _log_sums(logits)[:, None]
        scores = _changed(scores, beams.so_far(), target, np.repeat(beams.rows, size))
        parents = beams.extend(scores)
        is_open = beams.close()
        if not is_open.any():
            return beams.results()
        if is_open.sum() <= (1 - DROP_SHARE) * len(is_open):
            beams.keep(np.flatnonzero(is_open))
            decoder.select(parents[is_open].ravel())
        else:
            decoder.select(parents.ravel(), same_sources=True)
        logits = decoder.step(beams.last_tokens())


def _top(scores: NDArray[Any], count: int) -> Ids:
    """The places of each row's greatest scores, the greatest first; of equals the first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


@final
class _Beams:
    """As :mod:`textmill.models.decoding.beam` has them."""

    def __init__(self, target: Target, limits: Ids) -> None:
        self.target, self.search, self.start = target, target.search, len(target.prefix)
        groups, beams = len(limits), target.search.beam_size
        self.length, self.rows, self.limits = 0, np.arange(groups), limits
        self.ids = np.zeros((groups, beams, self.start + int(limits.max(initial=0))), np.int64)
        self.ids[:, :, : self.start] = target.prefix
        # All beams start equal: only the first may have successors at first.
        self.log_probs = np.full((groups, beams), -np.inf, np.float32)
        self.log_probs[:, 0] = 0
        self.done_ids, self.done_lengths = self.ids.copy(), np.zeros((groups, beams), np.int64)
        self.done_scores = np.full((groups, beams), -np.inf, np.float32)

    def extend(self, scores: Floats) -> Ids:
        """Moves every group on; gives the row that each beam continues. *Shape:* ``[G, K]``."""
        groups, beams = self.log_probs.shape
        size = scores.shape[1]
        sums = (scores.reshape(groups, beams, size) + self.log_probs[:, :, None]).reshape(
            groups, -1
        )
        # At most one successor of a beam is the end mark, so 2K candidates hold K that go on.
        count = min(2 * beams, sums.shape[1])
        some = np.argpartition(-sums, count - 1, axis=1)[:, :count]
        some.sort(axis=1)
        flat = np.take_along_axis(some, _top(np.take_along_axis(sums, some, 1), count), axis=1)
        best, parents, tokens = np.take_along_axis(sums, flat, axis=1), flat // size, flat % size
        ids = np.take_along_axis(self.ids, parents[:, :, None], axis=1)
        ids[:, :, self.start + self.length] = tokens
        self.length += 1
        ended = (tokens == self.target.eos_idx) | (self.limits <= self.length)[:, None]
        self._finish(ids[:, :beams], best[:, :beams], ended[:, :beams])
        left = np.where(ended, -np.inf, best).astype(np.float32)
        chosen = _top(left, beams)
        self.log_probs = np.take_along_axis(left, chosen, axis=1)
        self.ids = np.take_along_axis(ids, chosen[:, :, None], axis=1)
        first = np.arange(groups)[:, None] * beams
        return np.asarray(first + np.take_along_axis(parents, chosen, axis=1))

    def _finish(self, ids: Ids, log_probs: Floats, ended: NDArray[np.bool_]) -> None:
        if not ended.any():
            return
        scores = np.where(ended, log_probs / self.length**self.search.length_penalty, -np.inf)
        merged = np.concatenate([self.done_scores[self.rows], scores], axis=1)
        chosen = _top(merged, self.search.beam_size)
        self.done_scores[self.rows] = np.take_along_axis(merged, chosen, axis=1)
        every = np.concatenate([self.done_ids[self.rows], ids], axis=1)
        self.done_ids[self.rows] = np.take_along_axis(every, chosen[:, :, None], axis=1)
        before = self.done_lengths[self.rows]
        lengths = np.concatenate([before, np.full_like(before, self.length)], axis=1)
        self.done_lengths[self.rows] = np.take_along_axis(lengths, chosen, axis=1)

    def close(self) -> NDArray[np.bool_]:
        """Closes the groups that cannot become better. *Shape:* ``[G]``, True if open."""
        worst = self.done_scores[self.rows, -1]
        better = ~(worst > -np.inf)
        if self.search.early_stopping != "first":
            at_limit = self.search.early_stopping == "never" and self.search.length_penalty > 0
            lengths = self.limits if at_limit else np.full_like(self.limits, self.length)
            reached = self.log_probs[:, 0] / lengths.astype(np.float32) ** (
                self.search.length_penalty
            )
            better |= reached > worst
        is_open = better & (self.limits > self.length) & (self.log_probs[:, 0] > -np.inf)
        self.log_probs[~is_open] = -np.inf
        return np.asarray(is_open)

    def keep(self, groups: Ids) -> None:
        """Drops all groups but these."""
        self.rows, self.limits = self.rows[groups], self.limits[groups]
        self.ids, self.log_probs = self.ids[groups], self.log_probs[groups]

    def so_far(self) -> Ids:
        """What each beam generated, the prefix first. *Shape:* ``[GK, T]``."""
        so_far = self.ids[:, :, : self.start + self.length]
        return so_far.reshape(-1, so_far.shape[2])

    def last_tokens(self) -> Ids:
        """The newest token of each beam. *Shape:* ``[GK]``."""
        return self.ids[:, :, self.start + self.length - 1].ravel()

    def results(self) -> list[list[Found]]:
        """The best finished sequences of every row."""
        found = []
        for ids, lengths, scores in zip(
            self.done_ids[:, :, self.start :].tolist(),
            self.done_lengths.tolist(),
            self.done_scores.tolist(),
            strict=True,
        ):
            done = [h for h in zip(ids, lengths, scores, strict=True) if h[2] > -np.inf]
            found.append([self.target.found(*h) for h in done[: self.search.n_best]])
        return found


def _sampled(
    decoder: TokenReader, target: Target, logits: Floats, limits: Ids, *, sources: Ids
) -> list[list[Found]]:
    """Draws, as :mod:`textmill.models.decoding.sampling` has them."""
    draws = target.search.n_best
    keys = _source_keys(sources, target.search.seed)
    rows = np.repeat(np.arange(len(sources)), draws)
    number = np.tile(np.arange(draws), len(sources)).astype(np.uint64)
    decoder.select(rows)

    def choose(scores: Floats, kept: Ids, length: int) -> Ids:
        which = number[kept] * np.uint64(2**32) + np.uint64(length)
        return _drawn(scores, _uniforms(keys[rows[kept]], which), target.search)

    found = _grown(decoder, target, logits[rows], limits[rows], sources=rows, choose=choose)
    grouped = [found[start : start + draws] for start in range(0, len(found), draws)]
    return [sorted(group, key=lambda one: -one.score) for group in grouped]


def _drawn(scores: Floats, uniforms: NDArray[np.float64], search: Search) -> Ids:
    wide = scores.astype(np.float64) / search.temperature
    tokens = None
    if 0 < search.top_k < wide.shape[1] or search.top_p < 1:
        tokens = _top(wide, min(search.top_k or wide.shape[1], wide.shape[1]))
        wide = np.take_along_axis(wide, tokens, axis=1)
    chances = np.exp(wide - wide.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    if search.top_p < 1:
        chances[chances.cumsum(axis=1) - chances >= search.top_p] = 0
    sums = chances.cumsum(axis=1)
    places = (sums <= (uniforms * sums[:, -1])[:, None]).sum(axis=1)
    places = np.minimum(places, sums.shape[1] - 1)
    return places if tokens is None else np.take_along_axis(tokens, places[:, None], axis=1)[:, 0]


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixing steps of splitmix64 (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _source_keys(sources: Ids, seed: int) -> NDArray[np.uint64]:
    keys = _mixed(np.full(len(sources), seed % 2**64, np.uint64))
    for place in range(sources.shape[1]):
        keys = _mixed(keys ^ sources[:, place].astype(np.uint64))
    return keys


def _uniforms(keys: NDArray[np.uint64], number: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (_mixed(_mixed(keys) ^ number) >> np.uint64(24)).astype(np.float64) * 2.0**-40
