"""Answers of a linear-chain conditional random field: beside a graph, in numpy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def decode_with_chances(
    scores: Floats, real: NDArray[np.bool_], moves: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """The best sequences of labels, and the probability that each of their labels is right.

    Viterbi's algorithm, and the forward-backward algorithm (Rabiner 1989), as
    :meth:`textmill.models.crf.LinearChainCrf.decode_with_chances` has them.

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
    best, shares = _forward_backward(scores, real, parts)
    numbers = _backtrace(best, real, parts)
    return numbers, np.take_along_axis(shares, numbers[..., None], axis=2)[..., 0]


class _Moves(NamedTuple):
    """Scores of transitions between labels, from the start and to the end."""

    inner: Floats
    start: Floats
    end: Floats


def _forward_backward(
    scores: Floats, real: NDArray[np.bool_], moves: _Moves
) -> tuple[Sequence[Floats], Floats]:
    """Walks three ways at once: a sentence takes half of the time that it takes one by one.

    Returns:
        The score of the best sequence up to each word that ends in each label, *Shape:* T of
        ``[B, L]``; and the probability of each label at each word, *Shape:* ``[B, T, L]``.
    """
    (inner, start, end), length = moves, scores.shape[1]
    reaching = inner.T  # to the label of a row
    steps, whole = np.stack([reaching, inner, reaching])[:, None], bool(real.all())
    first = start + scores[:, 0]
    # Log sums of sequences up to each word, those from behind it, and the best up to it.
    at = [np.stack([first, np.broadcast_to(end, first.shape), first])]
    for t in range(1, length):
        back = length - t
        before = at[-1].copy()
        before[1] += scores[:, back]
        every = before[:, :, None] + steps
        reached = every.max(axis=3)
        both = every[:2] - reached[:2, ..., None]
        reached[:2] += np.log(np.exp(both, out=both).sum(axis=3))
        reached[::2] += scores[:, t]
        if not whole:
            there = np.stack([real[:, t], real[:, back], real[:, t]])[..., None]
            reached = np.where(there, reached, at[-1])
        at.append(reached)
    ways = np.stack(at, axis=2)
    both = ways[0] + ways[1, :, ::-1]
    shares = np.exp(both - both.max(axis=2, keepdims=True))
    return [each[2] for each in at], np.asarray(
        shares / shares.sum(axis=2, keepdims=True), np.float32
    )


def _backtrace(best: Sequence[Floats], real: NDArray[np.bool_], moves: _Moves) -> NDArray[np.int64]:
    """The labels of the best sequences. *Shape:* ``[B, T]``."""
    reaching = np.ascontiguousarray(moves.inner.T)
    label = (best[-1] + moves.end).argmax(axis=1)
    path = [label]
    # Only on the way back is it asked where the best came from, which is one label a sentence.
    for t in range(len(best) - 1, 0, -1):
        origin = (best[t - 1] + reaching[label]).argmax(axis=1)
        label = np.where(real[:, t], origin, label)
        path.append(label)
    return np.stack(path[::-1], axis=1)
