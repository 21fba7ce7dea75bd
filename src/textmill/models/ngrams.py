"""Linear models of the n-grams of texts: a weight for each n-gram and score, and nothing else."""

from abc import abstractmethod
from collections.abc import Sized
from typing import Any, Protocol, runtime_checkable

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.vocabulary import HasDim

Values = tuple[Tensor, Tensor, Tensor]
"""The row, the place in a row, and the value of numbers that are not 0. *Shape:* (N) each."""


@runtime_checkable
class HasNgrams(Protocol):
    """What models read of a tokenizer of type ``fitted_ngrams``."""

    weights: NDArray[Any]
    """The root of each n-gram's inverse document frequency, 0 for none. *Shape:* ``[size]``."""
    words: int
    """How many n-grams are of words and their shapes; they come first."""
    rows: int
    """How many rows the frequencies were taken of."""


def check_ngrams(tokenizer: object) -> None:
    """Refuses tokens that are not n-grams."""
    if not isinstance(tokenizer, HasNgrams):
        raise UserError(
            "A model of n-grams needs tokenizer.type=fitted_ngrams, or ngrams of that type, but "
            f"what it was given is a {type(tokenizer).__name__}."
        )


class NgramWeights(nn.Module):
    r"""The n-grams of texts with their values.

    .. math::
        x_i = w_i \big/ \sqrt{\textstyle\sum_{j \in k(i)} w_j^2}

    where :math:`k(i)` is the text's n-grams of the same kind: of words and their shapes, or of
    characters. So both kinds count alike, however many more there are of one.
    """

    def __init__(self, tokenizer: HasNgrams) -> None:
        super().__init__()
        check_ngrams(tokenizer)
        weights = torch.from_numpy(tokenizer.weights)
        # The saved text processor has them: a checkpoint need not.
        self.register_buffer("weights", weights, persistent=False)
        self.weights: Tensor
        known = int((weights > 0).sum())
        self.characters = len(weights) - known + tokenizer.words
        """The first id of an n-gram of characters."""

    def __len__(self) -> int:
        return len(self.weights)

    @override
    def forward(self, ids: Tensor) -> Values:
        """The n-grams that have a weight, with their values. *Shape:* :math:`(B,T)`."""
        weights = self.weights[ids]
        rows, places = weights.nonzero(as_tuple=True)
        ids, weights = ids[rows, places], weights[rows, places]
        kinds = self.kinds(rows, ids)
        squares = weights.new_zeros(2 * int(rows[-1:].sum()) + 2)
        squares.index_add_(0, kinds, weights.square())
        return rows, ids, weights * squares[kinds].rsqrt()

    def padded(self, ids: Tensor) -> Tensor:
        """The value of each n-gram, 0 where it has none. *Shape:* :math:`(B,T)`."""
        weights, spelled = self.weights[ids], ids >= self.characters
        squares = [weights.square().masked_fill(other, 0.0) for other in (spelled, ~spelled)]
        words, characters = (kind.sum(dim=1, keepdim=True) for kind in squares)
        norms = torch.where(spelled, characters, words)
        return weights * norms.clamp(min=torch.finfo(norms.dtype).tiny).rsqrt()

    def kinds(self, rows: Tensor, ids: Tensor) -> Tensor:
        """A number for a row's n-grams of words, and the next for those of characters."""
        return 2 * rows + (ids >= self.characters)


class NgramScores(Component, nn.Module):
    """Base of linear models of the n-grams of texts.

    A subclass says by :meth:`values` what a text, or a pair, is to it: numbers by their place in
    the table of weights.
    """

    class Config(BaseConfig):
        """No settings."""

    def __init__(
        self, config: Config, *, tokenizer: HasNgrams, labels: Sized, dense: HasDim | None = None
    ) -> None:
        nn.Module.__init__(self)
        out = len(labels)
        self.config, self.ngrams = config, NgramWeights(tokenizer)
        self.table = nn.Parameter(torch.zeros(self.size, out))
        self.bias = nn.Parameter(torch.zeros(out))
        self.dense = None if dense is None else nn.Parameter(torch.zeros(dense.dim, out))

    @property
    @abstractmethod
    def size(self) -> int:
        """How many weights a score has."""

    @abstractmethod
    def values(self, *texts: Tensor) -> Values:
        """The features that are not 0, by their row and place in the table."""

    @abstractmethod
    def padded(self, *texts: Tensor) -> tuple[Tensor, Tensor]:
        """The same, row by row, with zeros: what a graph that is exported can compute.

        Places in the table, and their numbers. *Shape:* :math:`(B,N)` each.
        """

    @override
    def forward(self, *texts: Tensor, dense: Tensor | None = None) -> Tensor:
        """Unnormalized scores, :math:`(B,L)`, of texts, or pairs.

        ``texts`` are ids of n-grams of a text, :math:`(B,T)`, and its lengths, :math:`(B)`, which
        are not looked at, since padding has no weight; of a pair, those of the other after them.
        ``dense`` are numbers of each row, where the model was made for them, :math:`(B,N)`.
        """
        if torch.compiler.is_exporting():
            ids, values = self.padded(*texts[::2])
            weights = F.embedding(ids, self.table)  # Gather, which int8 exports make smaller
            scores = self.bias + (weights * values[..., None]).sum(dim=1)
        else:
            rows, ids, values = self.values(*texts[::2])
            order = torch.argsort(rows, stable=True)
            counts = torch.bincount(rows, minlength=len(texts[0]))
            starts = counts.cumsum(0) - counts
            ids, values = ids[order], values[order]
            sums = F.embedding_bag(ids, self.table, starts, mode="sum", per_sample_weights=values)
            scores = self.bias + sums
        if self.dense is None or dense is None:
            return scores
        beside: Tensor = self._scaled(dense) @ self.dense
        return scores + beside

    def _scaled(self, dense: Tensor) -> Tensor:
        scaled: Tensor = dense / dense.shape[1] ** 0.5
        return scaled

    @torch.no_grad()
    def features(self, *texts: Tensor, dense: Tensor | None = None) -> Values:
        """What :meth:`forward` multiplies with weights: numbers by their row and place.

        Places of ``dense`` come after those of the table. The arguments are those of
        :meth:`forward`.
        """
        parts = [self.values(*texts[::2])]
        if self.dense is not None and dense is not None:
            rows, places = dense.nonzero(as_tuple=True)
            parts.append((rows, self.size + places, self._scaled(dense)[rows, places]))
        rows, places, values = (torch.cat(part) for part in zip(*parts, strict=True))
        return rows, places, values

    @torch.no_grad()
    def added(self, score: int, *texts: Tensor) -> tuple[Tensor, Tensor]:
        """What each n-gram of one row adds to a score: their places in the table, and the amounts.

        With the bias and what ``dense`` adds, the amounts sum up to the score. *Shape:* :math:`(N)`
        each.
        """
        _, places, values = self.values(*texts[::2])
        return places, values * self.table[places, score]

    @property
    def width(self) -> int:
        return self.size + (0 if self.dense is None else len(self.dense))

    @torch.no_grad()
    def assign(self, weights: Tensor, bias: Tensor) -> None:
        """Takes weights by the places of :meth:`features`, :math:`(V,L)`; biases :math:`(L)`."""
        self.table.copy_(weights[: self.size])
        self.bias.copy_(bias)
        if self.dense is not None:
            self.dense.copy_(weights[self.size :])


class NgramTextScores(NgramScores):
    """Base of linear models of the n-grams of one text."""

    @property
    @override
    def size(self) -> int:
        return len(self.ngrams)

    @override
    def values(self, *texts: Tensor) -> Values:
        found: Values = self.ngrams(*texts)
        return found

    @override
    def padded(self, *texts: Tensor) -> tuple[Tensor, Tensor]:
        return texts[0], self.ngrams.padded(*texts)


@registries.models.register("ngram_classifier")
class NgramClassifier(NgramTextScores):
    """Scores the labels of a text by its n-grams: a linear classifier.

    Wang and Manning 2012, "Baselines and Bigrams", and Joulin et al. 2017, "Bag of Tricks", say how
    far n-grams alone reach.
    """


@registries.models.register("ngram_regressor")
class NgramRegressor(NgramTextScores):
    """Gives a text one number by its n-grams: a ridge regression, where weights decay."""

    def __init__(
        self, config: NgramScores.Config, *, tokenizer: HasNgrams, dense: HasDim | None = None
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, labels=range(1), dense=dense)


class NgramPairScores(NgramScores):
    """Base of linear models of the n-grams of two texts.

    An n-gram has a weight for the first text, one for the second, and one for where it stands in
    both; and so have the shares of each text's n-grams, of words and of characters, that the other
    has too.
    """

    def __init__(self, config: NgramScores.Config, *, tokenizer: HasNgrams, labels: Sized) -> None:
        super().__init__(config, tokenizer=tokenizer, labels=labels)

    @property
    @override
    def size(self) -> int:
        return 3 * len(self.ngrams) + 4

    @override
    def values(self, *texts: Tensor) -> Values:
        size = len(self.ngrams)
        (rows1, ids1, values1), (rows2, ids2, values2) = map(self.ngrams, texts)
        places1, places2 = rows1 * size + ids1, rows2 * size + ids2
        there1, there2 = torch.isin(places1, places2), torch.isin(places2, places1)
        parts = [
            (rows1, ids1, values1),
            (rows2, ids2 + size, values2),
            (rows2[there2], ids2[there2] + 2 * size, values2[there2]),
            self._shares((rows1[there1], ids1[there1], values1[there1]), len(texts[0]), 0),
            self._shares((rows2[there2], ids2[there2], values2[there2]), len(texts[0]), 2),
        ]
        rows, ids, values = (torch.cat(part) for part in zip(*parts, strict=True))
        return rows, ids, values

    def _shares(self, shared: Values, count: int, at: int) -> Values:
        rows, ids, values = shared
        kinds = self.ngrams.kinds(rows, ids)
        shares = values.new_zeros(2 * count).index_add_(0, kinds, values.square())
        both = torch.arange(2 * count, device=ids.device)
        return both // 2, 3 * len(self.ngrams) + at + both % 2, shares

    @override
    def padded(self, *texts: Tensor) -> tuple[Tensor, Tensor]:
        (one, two), size = texts, len(self.ngrams)
        values1, values2 = self.ngrams.padded(one), self.ngrams.padded(two)
        equal = one[:, :, None] == two[:, None]
        there1 = (equal & (values2 > 0)[:, None]).any(dim=2)
        there2 = (equal & (values1 > 0)[:, :, None]).any(dim=1)
        both = values2 * there2
        shares = []
        for ids, values in ((one, values1 * there1), (two, both)):
            spelled, squares = ids >= self.ngrams.characters, values.square()
            shares += [squares.masked_fill(other, 0.0).sum(dim=1) for other in (spelled, ~spelled)]
        places = 3 * size + torch.arange(4, device=one.device).expand(one.shape[0], 4)
        ids = torch.cat([one, two + size, two + 2 * size, places], dim=1)
        return ids, torch.cat([values1, values2, both, torch.stack(shares, dim=1)], dim=1)


@registries.models.register("ngram_pair_classifier")
class NgramPairClassifier(NgramPairScores):
    """Scores the labels of a pair of texts by their n-grams."""


@registries.models.register("ngram_pair_regressor")
class NgramPairRegressor(NgramPairScores):
    """Gives a pair of texts one number by their n-grams."""

    def __init__(self, config: NgramScores.Config, *, tokenizer: HasNgrams) -> None:
        super().__init__(config, tokenizer=tokenizer, labels=range(1))
