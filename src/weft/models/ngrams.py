"""Linear models of the n-grams of texts: a weight for each n-gram and score, and nothing else."""

from collections.abc import Sized
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError

__all__ = [
    "HasDim",
    "HasNgrams",
    "NgramClassifier",
    "NgramPairClassifier",
    "NgramPairRegressor",
    "NgramPairScores",
    "NgramRegressor",
    "NgramScores",
]


class HasDim(Protocol):
    """What a model needs to know of numbers beside a text."""

    @property
    def dim(self) -> int:
        """How many a row has."""
        ...


class HasNgrams(Protocol):
    """What a model needs to know of n-grams: a tokenizer of type ``fitted_ngrams``."""

    weights: NDArray[Any]
    """How much each id counts, 0 for none. *Shape:* ``[size]``."""
    words: int
    """How many n-grams are of words; they come first."""


class NgramValues(nn.Module):
    r"""The value of each n-gram in its text.

    .. math::
        x_i = w_i \big/ \sqrt{\textstyle\sum_{j \in k(i)} w_j^2}

    where :math:`k(i)` is the text's n-grams of the same kind: of words, or of characters. So both
    kinds count alike, however many more there are of one.

    Args:
        tokenizer: Knows the n-grams' weights.

    Raises:
        UserError: Its tokens are no n-grams.
    """

    def __init__(self, tokenizer: HasNgrams) -> None:
        super().__init__()
        if not isinstance(getattr(tokenizer, "words", None), int):
            raise UserError(
                f"A model of n-grams needs tokenizer.type=fitted_ngrams, but the tokenizer is a "
                f"{type(tokenizer).__name__}."
            )
        weights = torch.from_numpy(tokenizer.weights)
        # The saved text path has them: a checkpoint need not.
        self.register_buffer("weights", weights, persistent=False)
        self.weights: Tensor
        known = int((weights > 0).sum())
        self.characters = len(weights) - known + tokenizer.words
        """The first id of an n-gram of characters."""

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(B,T)` to :math:`(B,T)`; 0 at padding."""
        weights = self.weights[ids]
        of_words, squares = ids < self.characters, weights.square()
        both = (squares * kind for kind in (of_words, ~of_words))
        words, characters = (part.sum(dim=1, keepdim=True).clamp(min=1e-12) for part in both)
        return weights * torch.where(of_words, words, characters).rsqrt()


def weighted_sum(table: Tensor, ids: Tensor, values: Tensor) -> Tensor:
    """The rows of a table, each times its value, in sum.

    *Shape:* table :math:`(V,L)`, ids and values :math:`(B,T)`: :math:`(B,L)`.

    Example:
        >>> table = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> weighted_sum(table, torch.tensor([[1, 2]]), torch.tensor([[1.0, 0.5]])).tolist()
        [[2.5, 4.0]]
    """
    out: Tensor = (values[:, None, :] @ F.embedding(ids, table)).squeeze(1)
    return out


class NgramScores(Component, nn.Module):
    """Base of linear models of a text's n-grams.

    Args:
        config: The settings.
        tokenizer: Knows the n-grams' weights.
        dense: Its ``dim`` says how many numbers stand beside a text; None: none do.
        out: How many numbers a text is given.
    """

    class Config(BaseConfig):
        """It has none."""

    def __init__(
        self, config: Config, *, tokenizer: HasNgrams, dense: HasDim | None, out: int
    ) -> None:
        nn.Module.__init__(self)
        self.config, self.values = config, NgramValues(tokenizer)
        self.table = nn.Parameter(torch.zeros(len(self.values.weights), out))
        self.bias = nn.Parameter(torch.zeros(out))
        self.dense = None if dense is None else nn.Parameter(torch.zeros(dense.dim, out))

    @override
    def forward(self, text: Tensor, lengths: Tensor, dense: Tensor | None = None) -> Tensor:
        """Scores texts.

        Args:
            text: Ids of n-grams. *Shape:* :math:`(B,T)`.
            lengths: Not looked at: padding has no weight. *Shape:* :math:`(B)`.
            dense: Numbers of each row, where the model was made for such. *Shape:* :math:`(B,N)`.

        Returns:
            Unnormalized scores. *Shape:* :math:`(B,L)`.
        """
        scores: Tensor = self.bias + weighted_sum(self.table, text, self.values(text))
        if self.dense is None or dense is None:
            return scores
        beside: Tensor = dense / len(self.dense) ** 0.5 @ self.dense  # as long as a kind of n-grams
        return scores + beside


@registries.models.register("ngram_classifier")
class NgramClassifier(NgramScores):
    """Scores the labels of a text by its n-grams: a logistic regression.

    Wang and Manning 2012, "Baselines and Bigrams", and Joulin et al. 2017, "Bag of Tricks", say how
    far n-grams alone reach.

    Example:
        >>> from weft.text.ngrams import NgramTokenizer
        >>> tokenizer = NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2)
        >>> model = NgramClassifier.Config().build(tokenizer=tokenizer, labels=range(7))
        >>> model(torch.tensor([[2, 3, 4], [2, 4, 0]]), torch.tensor([3, 2])).shape
        torch.Size([2, 7])
        >>> sum(p.numel() for p in model.parameters())
        42
    """

    class Config(NgramScores.Config):
        """It has none."""

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasNgrams,
        labels: Sized,
        dense: HasDim | None = None,
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, dense=dense, out=len(labels))


@registries.models.register("ngram_regressor")
class NgramRegressor(NgramScores):
    """Gives a text one number by its n-grams: a ridge regression, where weights decay.

    Example:
        >>> from weft.text.ngrams import NgramTokenizer
        >>> tokenizer = NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2)
        >>> model = NgramRegressor.Config().build(tokenizer=tokenizer)
        >>> model(torch.tensor([[2, 3, 4], [2, 4, 0]]), torch.tensor([3, 2])).shape
        torch.Size([2, 1])
    """

    class Config(NgramScores.Config):
        """It has none."""

    def __init__(
        self, config: Config, *, tokenizer: HasNgrams, dense: HasDim | None = None
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, dense=dense, out=1)


class NgramPairScores(Component, nn.Module):
    """Base of linear models of the n-grams of two texts.

    An n-gram has a weight for the first text, one for the second, and one for where it stands in
    both; and so have the shares of each text's n-grams, of words and of characters, that the other
    has too.

    Args:
        config: The settings.
        tokenizer: Knows the n-grams' weights.
        out: How many numbers a pair is given.
    """

    class Config(BaseConfig):
        """It has none."""

    def __init__(self, config: Config, *, tokenizer: HasNgrams, out: int) -> None:
        nn.Module.__init__(self)
        self.config, self.values = config, NgramValues(tokenizer)
        size = len(self.values.weights)
        self.first, self.second, self.both = (
            nn.Parameter(torch.zeros(size, out)) for _ in range(3)
        )
        self.shares = nn.Linear(4, out)
        nn.init.zeros_(self.shares.weight)
        nn.init.zeros_(self.shares.bias)

    @override
    def forward(self, text1: Tensor, lengths1: Tensor, text2: Tensor, lengths2: Tensor) -> Tensor:
        """Scores pairs.

        Args:
            text1: Ids of n-grams. *Shape:* :math:`(B,T)`.
            lengths1: Not looked at: padding has no weight. *Shape:* :math:`(B)`.
            text2: Ids of n-grams. *Shape:* :math:`(B,U)`.
            lengths2: Not looked at. *Shape:* :math:`(B)`.

        Returns:
            Unnormalized scores. *Shape:* :math:`(B,L)`.
        """
        values1, values2 = self.values(text1), self.values(text2)
        size = len(self.first)
        there1, there2 = (
            _there(text1, text2, values1, size),
            _there(text2, text1, values2, size),
        )
        shares = [self._shares(*part) for part in ((text1, there1), (text2, there2))]
        scores: Tensor = self.shares(torch.cat(shares, dim=1))
        scores = scores + weighted_sum(self.first, text1, values1)
        scores = scores + weighted_sum(self.second, text2, values2)
        return scores + weighted_sum(self.both, text2, there2)

    def _shares(self, text: Tensor, there: Tensor) -> Tensor:
        """Of the n-grams of words and of characters, by their squares. *Shape:* :math:`(B,2)`."""
        of_words, squares = text < self.values.characters, there.square()
        return torch.stack([(squares * kind).sum(dim=1) for kind in (of_words, ~of_words)], dim=1)


def _there(text: Tensor, other: Tensor, values: Tensor, size: int) -> Tensor:
    """The values of a text's n-grams that another text has; 0 for the others.

    *Shape:* :math:`(B,T)`, :math:`(B,U)` and :math:`(B,T)`: :math:`(B,T)`.
    """
    marks = torch.zeros(len(text), size, dtype=torch.bool, device=text.device)
    return values * marks.scatter(1, other, True).gather(1, text)


@registries.models.register("ngram_pair_classifier")
class NgramPairClassifier(NgramPairScores):
    """Scores the labels of a pair of texts by their n-grams.

    Example:
        >>> from weft.text.ngrams import NgramTokenizer
        >>> tokenizer = NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2)
        >>> model = NgramPairClassifier.Config().build(tokenizer=tokenizer, labels=range(3))
        >>> one, two = torch.tensor([[2, 3], [2, 0]]), torch.tensor([[2, 4], [3, 4]])
        >>> model(one, torch.tensor([2, 1]), two, torch.tensor([2, 2])).shape
        torch.Size([2, 3])
    """

    class Config(NgramPairScores.Config):
        """It has none."""

    def __init__(self, config: Config, *, tokenizer: HasNgrams, labels: Sized) -> None:
        super().__init__(config, tokenizer=tokenizer, out=len(labels))


@registries.models.register("ngram_pair_regressor")
class NgramPairRegressor(NgramPairScores):
    """Gives a pair of texts one number by their n-grams.

    Example:
        >>> from weft.text.ngrams import NgramTokenizer
        >>> tokenizer = NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2)
        >>> model = NgramPairRegressor.Config().build(tokenizer=tokenizer)
        >>> one, two = torch.tensor([[2, 3], [2, 0]]), torch.tensor([[2, 4], [3, 4]])
        >>> model(one, torch.tensor([2, 1]), two, torch.tensor([2, 2])).shape
        torch.Size([2, 1])
    """

    class Config(NgramPairScores.Config):
        """It has none."""

    def __init__(self, config: Config, *, tokenizer: HasNgrams) -> None:
        super().__init__(config, tokenizer=tokenizer, out=1)
