"""Vectors of tokens with positions, and of words: of their characters, affixes, dictionary."""

from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.positions import PositionEncoding
from textmill.models.vocabulary import IdTable, ModelVocabInfo


def token_table(vocabulary_size: int, dim: int, *, pad_idx: int | None) -> nn.Embedding:
    """A table of token vectors with standard deviation ``dim ** -0.5``; a padding's is zero.

    That scale gives logits of unit variance when the table is tied to the output, and unit inputs
    after scaling by ``dim ** 0.5``.
    """
    weight = nn.init.normal_(torch.empty(vocabulary_size, dim), std=dim**-0.5)
    if pad_idx is not None:
        weight[pad_idx] = 0.0
    table: nn.Embedding = nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=pad_idx)
    return table


class Embedding(nn.Module):
    """Token vectors, scaled, plus positions, with dropout.

    The table of ``tokens`` may be shared with another front and the output; its vectors are
    multiplied with ``scale``.
    """

    def __init__(
        self,
        tokens: nn.Embedding,
        positions: PositionEncoding,
        *,
        scale: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.scale = scale
        self.dropout = Dropout(dropout)

    @override
    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embeds ids from position ``start`` on. *Shape:* :math:`(B,T)` to :math:`(B,T,D)`."""
        return self.placed(self.vectors(ids), start)

    def vectors(self, ids: Tensor) -> Tensor:
        """Scaled vectors alone. *Shape:* :math:`(B,T)` to :math:`(B,T,D)`."""
        x: Tensor = self.tokens(ids)
        return x if self.scale == 1.0 else x * self.scale

    def placed(self, x: Tensor, start: int = 0) -> Tensor:
        """Adds positions to vectors, and drops features. *Shape:* :math:`(B,T,D)` to the same."""
        rows = self.positions.rows(start, start + x.shape[1])
        out: Tensor = self.dropout(x if rows is None else x + rows)
        return out


class WordEmbedding(Component, nn.Module):
    """A vector for each token id; that of padding is zero and stays so."""

    class Config(BaseConfig):
        dim: int = 100
        """Features of a vector."""
        dropout: float = 0.0
        """Probability of dropping a feature in training."""
        vectors: Path | None = None
        """A text file of vectors that a fresh run begins with (GloVe, word2vec, fastText): a word
        and its numbers in each line; null: all begin at random."""
        frozen: bool = False
        """Whether the vectors stay as they are at the start."""

        def __post_init__(self) -> None:
            require(self, "embedding", sizes=["dim"], shares=["dropout"])

    def __init__(self, config: Config, *, vocabulary_size: int, pad_idx: int) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.tokens = token_table(vocabulary_size, config.dim, pad_idx=pad_idx)
        self.tokens.weight.requires_grad_(not config.frozen)
        self.dropout = Dropout(config.dropout)

    def begin(self, ids: Tensor, vectors: Tensor) -> None:
        """Takes vectors of tokens in place of random ones. *Shape:* :math:`(N)`, :math:`(N,D)`."""
        weight = self.tokens.weight
        with torch.no_grad():
            weight[ids.to(weight.device)] = vectors.to(weight)

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(*)` to :math:`(*,D)`."""
        out: Tensor = self.dropout(self.tokens(ids))
        return out


class CharacterCnn(Component, nn.Module):
    """A vector of each word: the maximum over its characters of filters over neighbouring ones.

    Source: Ma and Hovy 2016, "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF",
    section 2.1.
    """

    class Config(BaseConfig):
        dim: int = 30
        """Features of a character."""
        filters: int = 30
        """Filters of each width, each a feature of the word."""
        widths: tuple[int, ...] = (3,)
        """How many characters a filter sees."""
        dropout: float = 0.0
        """Probability of dropping a feature of a character in training."""

        def __post_init__(self) -> None:
            require(self, "character_cnn", sizes=["dim", "filters"], shares=["dropout"])
            if not self.widths or min(self.widths) < 1:
                raise UserError(
                    "character_cnn.widths must be one width at least, each at least 1, "
                    f"but is {list(self.widths)}."
                )

    def __init__(self, config: Config, *, size: int, pad_idx: int) -> None:
        nn.Module.__init__(self)
        self.config, self.pad_idx = config, pad_idx
        self.out_dim = config.filters * len(config.widths)
        self.characters = token_table(size, config.dim, pad_idx=pad_idx)
        self.dropout = Dropout(config.dropout)
        self.filters = nn.ModuleList(
            [nn.Conv1d(config.dim, config.filters, width) for width in config.widths]
        )

    @override
    def forward(self, characters: Tensor) -> Tensor:
        """Encodes words from ids padded on the right; one of padding alone is none, and zero.

        *Shape:* :math:`(B,T,C)` to :math:`(B,T,F)`.
        """
        real = characters != self.pad_idx
        words = real.any(dim=-1)
        # A graph has no number of words that only data can tell; a device would be waited for.
        if torch.compiler.is_exporting() or characters.device.type != "cpu":
            every: Tensor = self._features(characters.flatten(0, 1), real.flatten(0, 1))
            there = words.flatten()[:, None]
            every = every.masked_fill(~there, 0.0)
            return every.view(*words.shape, self.out_dim)
        # Half of a batch's places are padding or short words' ends: only words are computed.
        ids, own = characters[words], real[words]
        features = self._features(ids, own)
        out = features.new_zeros(*words.shape, self.out_dim)
        return out.index_put((words,), features)

    def _features(self, ids: Tensor, own: Tensor) -> Tensor:
        """Of words that are in a list. *Shape:* :math:`(N,C)` to :math:`(N,F)`."""
        x = self.dropout(self.characters(ids)).transpose(1, 2)
        found = []
        for width, conv in zip(self.config.widths, self.filters, strict=True):
            before = width // 2
            each = conv(F.pad(x, (before, width - 1 - before)))
            found.append(each.masked_fill(~own[:, None], -torch.inf).amax(dim=-1))
        return torch.cat(found, dim=1)


class WordReader(Component, nn.Module):
    """Base of models that read words: a vector of each by its id and, if given, its characters."""

    class Config(BaseConfig):
        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The words' vectors."""
        character_cnn: CharacterCnn.Config = CharacterCnn.Config()
        """The vectors made of their characters, in a recipe that has an ingredient
        ``characters``."""

    config: Any
    embedding: WordEmbedding | None
    characters: CharacterCnn | None

    def make_vectors(self, config: Config, info: ModelVocabInfo, characters: IdTable | None) -> int:
        """Makes the tables; returns how many features :meth:`vectors` have."""
        self.pad_idx, self.unk_idx = info.pad_idx, info.unk_idx
        self.embedding = config.embedding.build(vocabulary_size=info.size, pad_idx=info.pad_idx)
        self.characters = None
        if characters is None:
            return config.embedding.dim
        size, pad_idx = characters.size, characters.pad_idx
        made: CharacterCnn = config.character_cnn.build(size=size, pad_idx=pad_idx)
        self.characters = made
        return config.embedding.dim + made.out_dim

    def vectors(self, words: Tensor, characters: Tensor | None) -> list[Tensor]:
        """What is concatenated of each word; texts without any word have one that is padding.

        In training the setting ``word_dropout`` hides words: what is left of one is what is known
        beside its id, and its neighbours, as of a word that training never saw. *Shape:*
        :math:`(B,T)` and :math:`(B,T,C)` to :math:`(B,T,*)` each.
        """
        assert self.embedding is not None
        words = one_word(words[..., None], self.pad_idx)[..., 0]
        if self.training and (share := self.config.word_dropout):
            dropped = torch.rand(words.shape, device=words.device) < share
            words = words.masked_fill(dropped & (words != self.pad_idx), self.unk_idx)
        x = [self.embedding(words)]
        if self.characters is not None and characters is not None:
            x.append(self.characters(one_word(characters, self.characters.pad_idx)))
        return x


def one_word(parts: Tensor, pad_idx: int) -> Tensor:
    """Parts of words, :math:`(B,T,P)`; of texts without any word those of one that is padding."""
    return parts if parts.shape[1] else F.pad(parts, (0, 0, 0, 1), value=pad_idx)


class AffixInfo(IdTable, Protocol):
    """Affixes of words: the number of their ids, and how many a word has."""

    @property
    def length(self) -> int:
        """Places of a word."""


class AffixEmbedding(Component, nn.Module):
    """A vector of each word: the concatenated vectors of its affixes.

    Source: Collobert et al. 2011, "Natural Language Processing (Almost) from Scratch", section 6.1
    (suffixes and capitals as features of words, each with a table of its own).
    """

    class Config(BaseConfig):
        dim: int = 16
        """Features of an affix."""

        def __post_init__(self) -> None:
            require(self, "affix_embedding", sizes=["dim"])

    def __init__(self, config: Config, *, size: int, pad_idx: int, length: int) -> None:
        nn.Module.__init__(self)
        self.config, self.pad_idx, self.out_dim = config, pad_idx, config.dim * length
        self.affixes = token_table(size, config.dim, pad_idx=pad_idx)

    @override
    def forward(self, affixes: Tensor) -> Tensor:
        """*Shape:* :math:`(B,T,A)` to :math:`(B,T,A D)`; zero where no word is.

        A batch without any word may leave out places that are padding in all of it.
        """
        vectors = self.affixes(affixes).flatten(start_dim=2)
        return F.pad(vectors, (0, self.out_dim - vectors.shape[2]))


class DictionaryEmbedding(Component, nn.Module):
    r"""A vector of each word: those of its kinds, each times its weight, pooled; else zero.

    With kinds :math:`k` of weights :math:`w_k` and vectors :math:`v_k` it is the mean, the maximum
    or :math:`\log\sum_k\exp` of :math:`w_k v_k`, feature by feature.
    """

    class Config(BaseConfig):
        dim: int = 16
        """Features of a kind."""
        pooling: Literal["mean", "max", "logsumexp"] = "mean"
        """How the vectors of a word's kinds become one."""
        dropout: float = 0.0
        """Probability of dropping a feature of a word in training."""

        def __post_init__(self) -> None:
            require(self, "dictionary_embedding", sizes=["dim"], shares=["dropout"])

    def __init__(self, config: Config, *, size: int) -> None:
        nn.Module.__init__(self)
        self.config, self.out_dim = config, config.dim
        self.kinds = token_table(size, config.dim, pad_idx=0)
        self.dropout = Dropout(config.dropout)

    @override
    def forward(self, found: Tensor, length: int) -> Tensor:
        """Makes a vector for each word. *Shape:* :math:`(B,N,3)` to :math:`(B,T,D)`.

        A finding is the place of a word, a kind's number, and its weight; zeros are padding. Those
        after ``length`` words, :math:`T`, are not looked at.
        """
        places, numbers, weights = found.unbind(dim=-1)
        places, numbers = places.long(), numbers.long()
        vectors = self.kinds(numbers) * weights[..., None]
        real = (numbers > 0) & (places < length)
        # Which finding is of which word: a product with it adds up in one order on any device.
        each = torch.arange(length, device=found.device)[:, None] == places[:, None]
        each = (each & real[:, None]).to(vectors.dtype)
        counts = each.sum(dim=-1, keepdim=True)
        if self.config.pooling == "mean":
            pooled = each @ vectors / counts.clamp(min=1)
        else:
            places = torch.where(real, places, length)[..., None].expand_as(vectors)
            lowest = vectors.new_full((found.shape[0], length + 1, self.out_dim), -torch.inf)
            highest = lowest.scatter_reduce(1, places, vectors, "amax")
            if self.config.pooling == "logsumexp":
                shift = highest.detach()
                over = torch.where(real[..., None], vectors - shift.gather(1, places), -torch.inf)
                pooled = shift[:, :length] + (each @ over.exp()).clamp(min=1).log()
            else:
                pooled = highest[:, :length]
            pooled = torch.where(counts > 0, pooled, 0.0)
        out: Tensor = self.dropout(pooled)
        return out
