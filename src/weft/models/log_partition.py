"""The log of the sum over all sequences of a linear chain, with its gradient.

Each word keeps what its labels have of the whole as shares that sum to 1. So a step from word to
word is a product of matrices, not a log-sum-exp over every pair of labels, and the walks from both
ends, which the gradient needs, are one walk of twice as many rows. A step of training, forward and
backward, on one core: 3 ms in place of 12 to 50 for 16 sentences of 20 words and 74 labels, 2.3 in
place of 4.2 to 5.2 for 40 words and 9 labels. The gradient is nearer to that of float64, by ten
times and more.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from typing_extensions import override

__all__ = ["LEAST_LOG", "MOST_SPREAD", "log_partition", "spread"]

LEAST_LOG = -64.0
"""What is less than e^-64 of its word's greatest counts as that. On a CPU the exponential of less
than -87 takes 10 to 100 times as long as others, and products of its results several times."""
MOST_SPREAD = 20.0
"""How far apart scores of transitions may be. The two around a word can make e^40 times as much of
one of its labels: no more than e^-24 of the sum is wrong for each."""


def log_partition(scores: Tensor, transitions: Tensor, real: Tensor) -> Tensor:
    r"""The log of the sum over all sequences of labels, of any scores of words.

    .. math::
        \log Z = \log \sum_y \exp \Big( T_{\text{start},y_1} + \sum_{t=1}^{n} s_{t,y_t} +
        \sum_{t=2}^{n} T_{y_{t-1},y_t} + T_{y_n,\text{end}} \Big)

    Args:
        scores: Of each label at each word. *Shape:* :math:`(B,T,L)`, :math:`T` at least 1.
        transitions: Scores :math:`T` from a row to a column, of which :func:`spread` finds at most
            ``MOST_SPREAD``; the last but one is the start, the last the end. *Shape:*
            :math:`(L+2,L+2)`.
        real: True at words, which begin each row; False at padding. *Shape:* :math:`(B,T)`.

    Returns:
        Anything for a row without a word. *Shape:* :math:`(B)`.

    Example:
        >>> real = torch.tensor([[True, True, True], [True, True, False]])
        >>> log_partition(torch.zeros(2, 3, 4), torch.zeros(6, 6), real).exp()  # 4³ and 4²
        tensor([64., 16.])
    """
    with torch.autocast(scores.device.type, enabled=False):  # it would multiply in bfloat16
        found: Tensor = _LogPartition.apply(scores, transitions, real)  # type: ignore[no-untyped-call]
    return found


def spread(transitions: Tensor) -> Tensor:
    """How far apart scores of transitions are that stand for one another in a sequence.

    Those are from the start, between words, or to the end; each of the three is looked at alone.
    What stands at the others, to the start and from the end, has no part in it.

    Args:
        transitions: As :func:`log_partition` takes them.

    Returns:
        The greatest difference within one of the three. *Shape:* :math:`()`.

    Example:
        >>> moves = torch.tensor([[4.0, -90.0, 31.0], [50.0, 0.0, 0.0], [-90.0, 0.0, 0.0]])
        >>> spread(moves)  # one label can only be followed by itself
        tensor(0.)
    """
    inner, start, end = _parts(transitions)
    widths = [torch.stack(part.aminmax()) for part in (inner, start, end)]
    return torch.stack(widths).diff(dim=1).max()


class _LogPartition(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, scores: Tensor, transitions: Tensor, real: Tensor) -> Tensor:
        rows = torch.arange(len(scores), device=scores.device)
        inner, start, end = _parts(transitions)
        top, top_end = inner.max(), end.max()
        steps, ending = (inner - top).exp(), (end - top_end).exp()
        last = (real.sum(dim=1) - 1).clamp(min=0)
        turned = _turned(real, last)[..., None].expand_as(scores)
        scores = scores.masked_fill(~real[..., None], 0.0)
        if any(ctx.needs_input_grad):
            both = torch.stack([scores, scores.gather(1, turned)])
            shares, logs = _walked(both, torch.stack([start, end]), torch.stack([steps, steps.T]))
            ctx.save_for_backward(shares, turned, real, last, steps, ending)
        else:
            shares, logs = _walked(scores[None], start[None], steps[None])
        words = logs[0].masked_fill(~real, 0.0).sum(dim=1) + last * top
        return words + (shares[0, rows, last] @ ending).log() + top_end

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        with torch.autocast(grad.device.type, enabled=False):  # of who calls backward
            scores, transitions = _gradients(grad, ctx.saved_tensors)
        return scores, transitions, None


def _gradients(grad: Tensor, saved: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """By the scores and by the transitions. *Shape:* :math:`(B,T,L)`, :math:`(L+2,L+2)`."""
    shares, turned, real, last, steps, ending = saved
    size, rows = len(steps), torch.arange(len(last), device=last.device)
    before, after = shares[0], shares[1].gather(1, turned)
    # What follows a label: the next word's share from the end, a step before it.
    following = torch.cat([after[:, 1:] @ steps.T, ending.expand(len(rows), 1, -1)], dim=1)
    following[rows, last] = ending
    whole = (before * following).sum(dim=-1, keepdim=True)
    weights = (real * grad[:, None])[..., None]
    # The derivative by a score is the probability of what it scores (Lafferty et al. 2001).
    labels = before * following / whole * weights
    pairs = (before / whole)[:, :-1].flatten(0, 1).T @ (after * weights)[:, 1:].flatten(0, 1)
    moves = grad.new_zeros(size + 2, size + 2)
    moves[:size, :size] = pairs * steps
    moves[size, :size] = labels[:, 0].sum(dim=0)
    moves[:size, size + 1] = labels[rows, last].sum(dim=0)
    return labels, moves


def _parts(transitions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Those between labels, those from the start, those to the end."""
    size = len(transitions) - 2
    return transitions[:size, :size], transitions[size, :size], transitions[:size, size + 1]


def _turned(real: Tensor, last: Tensor) -> Tensor:
    """Where each word stands when its sentence is read from its end. *Shape:* :math:`(B,T)`."""
    places = torch.arange(real.shape[1], device=real.device)
    return torch.where(real, last[:, None] - places, places)


def _walked(scores: Tensor, first: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Walks along sentences, some ways at once.

    Args:
        scores: *Shape:* :math:`(W,B,T,L)`.
        first: Scores of transitions to the first word. *Shape:* :math:`(W,L)`.
        steps: Factors of the others. *Shape:* :math:`(W,L,L)`.

    Returns:
        What each label of a word has of the sum over the sequences up to there, :math:`(W,B,T,L)`;
        and by what, in logs, that sum is greater than that of the word before, :math:`(W,B,T)`.
    """
    shares = scores.permute(2, 0, 1, 3).contiguous()
    shares[0] += first[:, None]
    top = shares.amax(dim=-1, keepdim=True)
    shares = (shares - top).clamp_(min=LEAST_LOG).exp_()
    sums = torch.empty_like(top)
    before = None
    for share, whole in zip(shares.unbind(), sums.unbind(), strict=True):
        if before is not None:
            share.mul_(before @ steps)
        before = share.div_(torch.sum(share, dim=-1, keepdim=True, out=whole))
    return shares.permute(1, 2, 0, 3), (sums.log_() + top)[..., 0].permute(1, 2, 0)
