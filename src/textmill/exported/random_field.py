"""Answers of a linear-chain conditional random field, without torch."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SURE = 0.49
"""A bit less than a half, for rounding."""
LEAST_SCORE, LEAST_MOVE = -64.0, -220.0
"""Scores further below the highest of their word, or of all transitions, count as these. So no
product is 0 in float64, and no score outweighs a transition that no answer has."""


class RandomField:
    """What :class:`textmill.models.crf.LinearChainCrf` answers with, without torch.

    Args:
        moves: Scores of transitions from a row to a column, those that no answer has far below all
            others; the last but one is the start, the last the end. *Shape:* ``[L + 2, L + 2]``.
    """

    def __init__(self, moves: Floats) -> None:
        inner, self._start, self._end = moves[:-2, :-2], moves[-2, :-2], moves[:-2, -1]
        self._reaching = np.ascontiguousarray(inner.T)  # to the label of a row
        factors = _factors(inner.reshape(-1), LEAST_MOVE).reshape(inner.shape)
        # A step of both walks, and in a last place of each the sum before it, is one product.
        steps = np.zeros((2, len(inner) + 1) * 2)
        steps[0, :-1, 0], steps[1, :-1, 1] = _with_one(factors), _with_one(factors.T)
        self._step = steps.reshape(2 * len(inner) + 2, -1)
        self._first = _with_one(_factors(np.stack([self._start, self._end]), LEAST_MOVE))

    def decode_with_chances(
        self, scores: Floats, real: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Floats]:
        """The best sequences of labels, and the probability that each of their labels is right.

        *Shape:* scores ``[B, T, L]``, T at least 1; ``real``, True at words, which begin each row,
        ``[B, T]``; numbers and probabilities, anything at padding, ``[B, T]``.
        """
        shares = self._marginals(scores, real)
        numbers, chances = shares.argmax(axis=2), shares.max(axis=2)
        # Where the likeliest labels are wrong with less than half a chance in all, their sequence
        # has more than half of the probability: it is the best one.
        doubts = np.where(real, 1 - chances, 0.0).sum(axis=1)
        if len(unsure := (doubts > SURE).nonzero()[0]):
            numbers[unsure] = best = self._best(scores[unsure], real[unsure])
            chances[unsure] = np.take_along_axis(shares[unsure], best[..., None], axis=2)[..., 0]
        return numbers, chances.astype(np.float32)

    def _marginals(self, scores: Floats, real: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The probability of each label at each word (Rabiner 1989). *Shape:* ``[B, T, L]``.

        The walks from both ends are one; the other reads each sentence from its end. Each step is
        scaled by the sum before it.
        """
        rows, places = np.arange(len(scores))[:, None], np.arange(scores.shape[1])
        last = real.sum(axis=1, keepdims=True) - 1
        turned = np.where(real, last - places, places)
        factors = _with_one(_factors(scores, LEAST_SCORE))
        shares = np.stack([factors, factors[rows, turned]], axis=2).swapaxes(0, 1).copy()
        reached = np.empty_like(shares)
        reached[0] = self._first
        # Both walks as one row of a matrix; views, which are written to below.
        flat, products = (each.reshape(*each.shape[:2], -1) for each in (shares, reached))
        for t in range(len(shares)):
            if t:
                np.dot(flat[t - 1], self._step, out=products[t])
            share = shares[t]
            share *= reached[t]
            share /= reached[t, ..., -1:]
        both = shares[:, :, 0, :-1].swapaxes(0, 1) * reached[turned, rows, 1, :-1]
        return np.asarray(both / both.sum(axis=2, keepdims=True))

    def _best(self, scores: Floats, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The labels of the best sequences, by Viterbi's algorithm. *Shape:* ``[B, T]``."""
        best = [self._start + scores[:, 0]]
        for t in range(1, scores.shape[1]):
            reached = (best[-1][:, None] + self._reaching).max(axis=2) + scores[:, t]
            best.append(np.where(real[:, t, None], reached, best[-1]))
        label = (best[-1] + self._end).argmax(axis=1)
        path = [label]
        # The best previous label is found on the way back, for one label per sentence only.
        for t in range(len(best) - 1, 0, -1):
            origin = (best[t - 1] + self._reaching[label]).argmax(axis=1)
            label = np.where(real[:, t], origin, label)
            path.append(label)
        return np.stack(path[::-1], axis=1)


def _factors(scores: Floats, least: float) -> NDArray[np.float64]:
    """Scores as factors up to 1, by the highest of each last axis."""
    below = np.subtract(scores, scores.max(axis=-1, keepdims=True), dtype=np.float64)
    return np.asarray(np.exp(np.maximum(below, least)))


def _with_one(factors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([factors, np.ones((*factors.shape[:-1], 1))], axis=-1)
