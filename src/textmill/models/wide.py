"""The wide part of a model: a weight for each n-gram of a text and each score."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.models.linear_solver import LabelSolver
from textmill.models.ngrams import HasNgrams, NgramWeights, check_ngrams

SCALE = 20.0
"""Length of a text's values. Adam moves every weight by its rate, whatever the gradient: with a
rate for deep layers and values of length 1 these scores would lag behind."""
RARE = 10
"""Rows of an n-gram whose value is halved. Adam's first steps are its largest: what is in one row
or two would be learned by heart."""


MARGIN_SCALE = 10.0
"""What a margin of 1 counts as a logit in training. The training rows have such margins by then, so
what learns beside it is left with the rows that n-grams do not tell. With 4 and with 1.5, tried
with early stopping, intents of held-out rows were 1 and 9 points lower."""
ANSWER_SCALE = 0.5
"""Factor on all scores in answers: rows that the classifier was not fitted to have lower margins.
On three held-out sets, which chose it, the mean probability of answers is within 2 points of their
accuracy; without it, it was 1 to 9 points above."""


class WideScores(nn.Module):
    r"""Scores that a text's n-grams add to those of an encoder (wide and deep, Cheng et al. 2016).

    What few rows can tell is in the n-grams; what takes their order, in the encoder. The value of
    an n-gram is :math:`w_i n_i / (n_i + 10)`, where :math:`w_i` is its weight and :math:`n_i` the
    number of its rows, and a text's values are made one length. All weights begin with zero: the
    first scores are the encoder's.
    """

    def __init__(self, ngrams: HasNgrams, out: int) -> None:
        super().__init__()
        check_ngrams(ngrams)
        weights = torch.from_numpy(ngrams.weights)
        seen = (1 + ngrams.rows) / torch.exp(weights.square() - 1) - 1
        # The saved text processor has them: a checkpoint need not.
        self.register_buffer("values", weights * seen / (seen + RARE), persistent=False)
        self.values: Tensor
        self.table = nn.Parameter(torch.zeros(len(weights), out))

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(B,N)` to :math:`(B,L)`."""
        ids = _some(ids)
        return _summed(self.table, ids, SCALE * F.normalize(self.values[ids], dim=1))


class FittedScores(nn.Module):
    """A linear classifier of a text's n-grams, fitted once before the first step.

    It is the support vector machine of ``classification/ngrams``, with a cost of 1. What is added
    to its scores, and learns by gradients, begins where n-grams alone have come: it learns from the
    rows that they leave. Before :meth:`fit` all scores are 0.
    """

    def __init__(self, ngrams: HasNgrams, out: int) -> None:
        super().__init__()
        self.values = NgramWeights(ngrams)
        self.register_buffer("table", torch.zeros(len(self.values), out))
        self.register_buffer("bias", torch.zeros(out))
        self.table: Tensor
        self.bias: Tensor

    def fit(
        self,
        ids: Sequence[Tensor],
        labels: Sequence[Tensor],
        counts: Sequence[Tensor] | None = None,
    ) -> None:
        """Fits the classifier to batches of ids of n-grams, :math:`(B,N)`, and labels, :math:`(B)`.

        A label that has no row is never the answer. Of rows that all have one label nothing is
        learned. ``counts``, :math:`(B)`, say how often each row counts; None: once.
        """
        import numpy as np
        from scipy.sparse import csr_matrix

        right = torch.cat([*labels]).cpu().numpy()
        if (right == right[:1]).all():
            return
        each = None if counts is None else torch.cat([*counts]).double().cpu().numpy()
        device, (size, out) = self.table.device, self.table.shape
        parts = [(batch, self.values.padded(batch)) for batch in (b.to(device) for b in ids)]
        lengths = torch.cat([(values > 0).sum(dim=1) for _, values in parts]).cpu().numpy()
        places = torch.cat([batch[values > 0] for batch, values in parts]).cpu().numpy()
        numbers = torch.cat([values[values > 0] for _, values in parts]).double().cpu().numpy()
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = csr_matrix((numbers, places, starts), shape=(len(right), size))
        weights, bias = LabelSolver(right, out, {}).fit(rows, right, cost=1.0, seed=0, each=each)
        self.table.copy_(torch.from_numpy(weights))
        self.bias.copy_(torch.from_numpy(bias))

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(B,N)` to :math:`(B,L)`."""
        ids = _some(ids)
        return MARGIN_SCALE * (self.bias + _summed(self.table, ids, self.values.padded(ids)))

    def added(self, others: Tensor, ids: Tensor) -> Tensor:
        """The sum of other scores and these. *Shape:* (B,L) and (B,N) to (B,L)."""
        both: Tensor = others + self(ids)
        return both if self.training else ANSWER_SCALE * both


def _some(ids: Tensor) -> Tensor:
    return ids if ids.shape[1] else F.pad(ids, (0, 1))  # embedding_bag wants a place


def _summed(table: Tensor, ids: Tensor, values: Tensor) -> Tensor:
    if torch.compiler.is_exporting():  # a graph would have a loop over the rows
        return (table[ids] * values[..., None]).sum(dim=1)
    return F.embedding_bag(ids, table, per_sample_weights=values, mode="sum")
