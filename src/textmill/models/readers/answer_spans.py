"""Spans as answers: how likely the right ones are, which is the best; windows over long texts."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class SpanScores(NamedTuple):
    """What a reader makes of questions and their contexts."""

    start: Tensor
    """How well an answer begins at a word, unnormalized, anything at padding. *Shape:*
    :math:`(B,L)`."""
    end: Tensor
    """Likewise of its last word. *Shape:* :math:`(B,L)`."""
    none: Tensor | None
    """The log odds that there is no answer; None: there always is. *Shape:* :math:`(B)`."""

    def log_probabilities(self, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Of beginnings and ends of an answer, and of there being none.

        An answer from :math:`i` to :math:`j` has the probability :math:`(1-p_0) p_i q_j`. *Shape:*
        :math:`(B,L)`, minus infinity where no word is ``real``, twice, and :math:`(B)`.
        """
        start, end = (
            scores.float().masked_fill(~real, -torch.inf).masked_fill(~real.any(1, True), 0.0)
            for scores in (self.start, self.end)
        )
        start, end = (part.log_softmax(1).masked_fill(~real, -torch.inf) for part in (start, end))
        if self.none is None:
            return start, end, start.new_full((len(start),), -torch.inf)
        none = self.none.float()
        return start + F.logsigmoid(-none)[:, None], end, F.logsigmoid(none)


class BestSpans(NamedTuple):
    """The most probable span of each row. *Shape:* :math:`(B)` each."""

    score: Tensor
    """Its log probability; minus infinity where a row has no word."""
    first: Tensor
    """Its first word."""
    last: Tensor
    """Its last word."""


def best_spans(start: Tensor, end: Tensor, *, most: int) -> BestSpans:
    r"""The spans :math:`i \le j < i + m` with the highest :math:`\log p_i + \log q_j`.

    :math:`m` = ``most`` words are the longest. *Shape:* :math:`(B,L)`, log probabilities.
    """
    width = min(most, start.shape[1])
    ends = F.pad(end, (0, width - 1), value=-torch.inf).unfold(1, width, 1)
    score, at = (start[..., None] + ends).flatten(1).max(dim=1)
    first = at // width
    return BestSpans(score, first, first + at % width)


def right_spans(start: Tensor, end: Tensor, answers: Tensor) -> Tensor:
    r"""The log probability that the answer is any of the right ones.

    .. math::
        \log \sum_{(i, j) \in A} p_i q_j

    Answers are the first and the last word of each right one, each once; -1 at padding. *Shape:*
    :math:`(B,L)`, twice, and :math:`(B,A,2)` to :math:`(B)`, zero for rows without an answer.
    """
    if not answers.shape[1]:
        return start.new_zeros(len(start))
    real = answers[..., 0] >= 0
    first, last = answers.clamp(min=0).unbind(-1)
    each = start.gather(1, first) + end.gather(1, last)
    none = ~real.any(dim=1)
    # A row of nothing but minus infinity has no gradient that is a number.
    each = each.masked_fill(~real, -torch.inf).masked_fill(none[:, None], 0.0)
    return each.logsumexp(dim=1).masked_fill(none, 0.0)


@dataclass(frozen=True, eq=False)
class Windows:
    """Which part of which row each window is."""

    rows: Tensor
    """The row of each window, rising. *Shape:* :math:`(N)`."""
    begins: Tensor
    """Its first place in the row. *Shape:* :math:`(N)`."""
    lengths: Tensor
    """Its places. *Shape:* :math:`(N)`."""

    def cut(self, columns: Tensor, *, pad: int) -> Tensor:
        """The windows of padded rows. *Shape:* :math:`(B,L,*)` to :math:`(N,T,*)`."""
        place = torch.arange(int(self.lengths.max()), device=columns.device)
        at = (self.begins[:, None] + place).clamp(max=columns.shape[1] - 1)
        found = columns[self.rows[:, None], at]
        outside = place >= self.lengths[:, None]
        return found.masked_fill(outside.view(*outside.shape, *[1] * (found.ndim - 2)), pad)

    def joined(self, scores: Tensor, length: int) -> Tensor:
        """One score for each place of a row: of the window in which it is furthest from the edges.

        Source: Devlin et al. 2019 (BERT), code for SQuAD ("max context"). *Shape:* :math:`(N,T)` to
        :math:`(B,L)`, ``length`` places, zero at padding.
        """
        place = torch.arange(scores.shape[1], device=scores.device)
        at = self.rows[:, None] * length + self.begins[:, None] + place
        context = torch.minimum(place.expand_as(at), self.lengths[:, None] - 1 - place)
        real = place < self.lengths[:, None]
        # Of windows with the same context, the first.
        count = len(self.rows)
        order = torch.arange(count, device=scores.device)[:, None]
        rank = (context * count + (count - 1 - order))[real]
        at, total = at[real], (int(self.rows[-1]) + 1) * length
        best = rank.new_full((total,), -1).scatter_reduce(0, at, rank, "amax")
        chosen = rank == best[at]
        out = scores.new_zeros(total).index_put((at[chosen],), scores[real][chosen])
        return out.view(-1, length)

    def least(self, values: Tensor) -> Tensor:
        """The least value of each row's windows. *Shape:* :math:`(N)` to :math:`(B)`."""
        out = values.new_full((int(self.rows[-1]) + 1,), torch.inf)
        return out.scatter_reduce(0, self.rows, values, "amin")


def windows_of(lengths: Tensor, *, size: int, stride: int) -> Windows:
    """The windows of rows; each row has one at least, and each of its places is in one.

    A window has ``size`` places at most, and begins ``stride`` after the one before, at most
    ``size``. *Shape* of the rows' lengths: :math:`(B)`.
    """
    beyond = (lengths - size).clamp(min=0)
    counts = 1 + (beyond + stride - 1) // stride
    rows = torch.arange(len(lengths), device=lengths.device).repeat_interleave(counts)
    firsts = counts.cumsum(0) - counts
    begins = (torch.arange(len(rows), device=lengths.device) - firsts[rows]) * stride
    return Windows(rows, begins, (lengths[rows] - begins).clamp(max=size))
