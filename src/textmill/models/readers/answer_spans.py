"""Spans as answers: how likely the right ones are, and which is the best."""

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

    Example:
        >>> start, end = torch.tensor([[[0.2, 0.7, 0.1]], [[0.6, 0.1, 0.3]]]).log()
        >>> [part.item() for part in best_spans(start, end, most=2)][1:]
        [1, 2]
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

    Example:
        >>> half = torch.tensor([[0.5, 0.5]]).log()
        >>> right_spans(half, half, torch.tensor([[[0, 0], [0, 1]]])).exp().item()
        0.5
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
