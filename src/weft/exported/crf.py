"""Answers of a linear-chain conditional random field: beside a graph, in numpy."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["decode_with_chances"]

Floats = NDArray[np.float32]


def decode_with_chances(
    scores: Floats, real: NDArray[np.bool_], moves: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """The best sequences of labels, and the probability that each of their labels is right.

    Viterbi's algorithm, and the forward-backward algorithm (Rabiner 1989), as
    :meth:`weft.models.crf.LinearChainCrf.decode_with_chances` has them.

    Args:
        scores: Of each label at each word. *Shape:* ``[B, T, L]``, T at least 1.
        real: True at words, which begin each row; False at padding. *Shape:* ``[B, T]``.
        moves: Scores of transitions from a row to a column, those that no answer has far below all
            others; the last but one is the start, the last the end. *Shape:* ``[L + 2, L + 2]``.

    Returns:
        Numbers of labels and their probabilities, anything at padding. *Shape:* ``[B, T]`` each.

    Example:
        >>> scores = np.array([[[0, 3], [2, 0]]], np.float32)
        >>> numbers, chances = decode_with_chances(
        ...     scores, np.ones((1, 2), np.bool_), np.zeros((4, 4), np.float32)
        ... )
        >>> numbers.tolist(), chances.astype(float).round(4).tolist()
        ([[1, 0]], [[0.9526, 0.8808]])
    """
    size = scores.shape[2]
    parts = _Moves(moves[:size, :size], moves[size, :size], moves[:size, size + 1])
    numbers, shares = _best(scores, real, parts), _marginals(scores, real, parts)
    return numbers, np.take_along_axis(shares, numbers[..., None], axis=2)[..., 0]


class _Moves(NamedTuple):
    """Scores of transitions between labels, from the start and to the end."""

    inner: Floats
    start: Floats
    end: Floats


def _best(scores: Floats, real: NDArray[np.bool_], moves: _Moves) -> NDArray[np.int64]:
    inner, start, end = moves
    reaching = np.ascontiguousarray(inner.T)  # to the label of a row
    best = [start + scores[:, 0]]
    for t in range(1, scores.shape[1]):
        reached = (best[-1][:, None] + reaching).max(axis=2) + scores[:, t]
        best.append(np.where(real[:, t, None], reached, best[-1]))
    label = (best[-1] + end).argmax(axis=1)
    path = [label]
    # Only on the way back is it asked where the best came from, which is one label a sentence.
    for t in range(scores.shape[1] - 1, 0, -1):
        origin = (best[t - 1] + reaching[label]).argmax(axis=1)
        label = np.where(real[:, t], origin, label)
        path.append(label)
    return np.stack(path[::-1], axis=1)


def _marginals(scores: Floats, real: NDArray[np.bool_], moves: _Moves) -> Floats:
    """The probability of each label at each word. *Shape:* ``[B, T, L]``."""
    inner, start, end = moves
    length, reaching = scores.shape[1], np.ascontiguousarray(inner.T)
    before = [start + scores[:, 0]]
    after = [np.broadcast_to(end, before[0].shape)]
    for t in range(1, length):
        reached = _log_sum(before[-1][:, None] + reaching) + scores[:, t]
        before.append(np.where(real[:, t, None], reached, before[-1]))
        back = length - t
        reached = _log_sum((after[-1] + scores[:, back])[:, None] + inner)
        after.append(np.where(real[:, back, None], reached, after[-1]))
    both = np.stack(before, axis=1) + np.stack(after[::-1], axis=1)
    shares = np.exp(both - both.max(axis=2, keepdims=True))
    return np.asarray(shares / shares.sum(axis=2, keepdims=True), np.float32)


def _log_sum(x: Floats) -> Floats:
    """The log of the sum of exponentials over the last axis."""
    top = x.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0])
