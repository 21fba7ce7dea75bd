"""The wide part of a model: a weight for each n-gram of a text and each score."""

from typing import Any, Protocol, runtime_checkable

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.errors import UserError

__all__ = ["HasCountedNgrams", "WideScores"]

SCALE = 20.0
"""Length of a text's values. Adam moves every weight by its rate, whatever the gradient: with a
rate for deep layers and values of length 1 these scores would lag behind."""
RARE = 10
"""Rows of an n-gram whose value is halved. Adam's first steps are its largest: what is in one row
or two would be learned by heart."""


@runtime_checkable
class HasCountedNgrams(Protocol):
    """What a model needs to know of n-grams: a tokenizer of type ``fitted_ngrams``."""

    weights: NDArray[Any]
    """The root of each one's inverse document frequency, 0 for none. *Shape:* ``[size]``."""
    rows: int
    """Of how many rows they were taken."""


class WideScores(nn.Module):
    r"""Scores that a text's n-grams add to those of an encoder (wide and deep, Cheng et al. 2016).

    What few rows can tell is in the n-grams; what takes their order, in the encoder. The value of
    an n-gram is :math:`w_i n_i / (n_i + 10)`, where :math:`w_i` is its weight and :math:`n_i` the
    number of its rows, and a text's values are made one length. All weights begin with zero: the
    first scores are the encoder's.

    Raises:
        UserError: They are no n-grams.

    Example:
        >>> from textmill.text.tokenizers.ngram_tokenizer import NgramTokenizer
        >>> wide = WideScores(NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2), 7)
        >>> wide(torch.tensor([[2, 3, 4], [2, 4, 0]])).shape, wide.table.shape
        (torch.Size([2, 7]), torch.Size([5, 7]))
    """

    def __init__(self, ngrams: HasCountedNgrams, out: int) -> None:
        super().__init__()
        if not isinstance(ngrams, HasCountedNgrams):
            raise UserError(
                f"ngrams must be of type fitted_ngrams, but they are a {type(ngrams).__name__}."
            )
        weights = torch.from_numpy(ngrams.weights)
        seen = (1 + ngrams.rows) / torch.exp(weights.square() - 1) - 1
        # The saved text processor has them: a checkpoint need not.
        self.register_buffer("values", weights * seen / (seen + RARE), persistent=False)
        self.values: Tensor
        self.table = nn.Parameter(torch.zeros(len(weights), out))

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(B,N)` to :math:`(B,L)`."""
        if not ids.shape[1]:
            ids = F.pad(ids, (0, 1))  # embedding_bag wants a place, if one of no value
        values = SCALE * F.normalize(self.values[ids], dim=1)
        if torch.compiler.is_exporting():  # a graph would have a loop over the rows
            return (self.table[ids] * values[..., None]).sum(dim=1)
        return F.embedding_bag(ids, self.table, per_sample_weights=values, mode="sum")
