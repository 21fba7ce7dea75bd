"""Vectors of words out of their characters: a convolution."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.limits import require
from weft.errors import UserError
from weft.models.layers.dropout import Dropout
from weft.models.layers.embedding import token_table

__all__ = ["CharacterCnn"]


@final
class CharacterCnn(Component, nn.Module):
    """A vector of each word: the maximum over its characters of filters over neighbouring ones.

    Source: Ma and Hovy 2016, "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF",
    section 2.1.

    Example:
        >>> cnn = CharacterCnn.Config(filters=5).build(size=9, pad_idx=0)
        >>> words = torch.tensor([[[4, 5, 6], [7, 0, 0]], [[8, 4, 0], [0, 0, 0]]])
        >>> cnn(words).shape, cnn(words)[1, 1].tolist()
        (torch.Size([2, 2, 5]), [0.0, 0.0, 0.0, 0.0, 0.0])
    """

    class Config(BaseConfig):
        """Settings of the convolution."""

        dim: int = 30
        """Features of a character."""
        filters: int = 30
        """Filters of each width, each a feature of the word."""
        widths: tuple[int, ...] = (3,)
        """How many characters a filter sees."""
        dropout: float = 0.0
        """Probability of dropping a feature of a character in training."""

        def __post_init__(self) -> None:
            """Refuses what is no size and no probability."""
            require(self, "character_cnn", sizes=["dim", "filters"], shares=["dropout"])
            if not self.widths or min(self.widths) < 1:
                raise UserError(
                    "character_cnn.widths must be one width at least, each at least 1, "
                    f"but is {list(self.widths)}."
                )

    config: Config

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
        """Encodes words.

        Args:
            characters: Ids, padded on the right; a word of padding alone is no word. *Shape:*
                :math:`(B,T,C)`.

        Returns:
            Zero where no word is. *Shape:* :math:`(B,T,F)`.
        """
        real = characters != self.pad_idx
        words = real.any(dim=-1)
        # Half of a batch's places are padding or short words' ends: only words are computed.
        ids, own = characters[words], real[words]
        x = self.dropout(self.characters(ids)).transpose(1, 2)
        if not len(ids):
            nothing: Tensor = x.new_zeros(*words.shape, self.out_dim)
            return nothing
        found = []
        for width, conv in zip(self.config.widths, self.filters, strict=True):
            before = width // 2
            each = conv(F.pad(x, (before, width - 1 - before)))
            found.append(each.masked_fill(~own[:, None], -torch.inf).amax(dim=-1))
        features = torch.cat(found, dim=1)
        out = features.new_zeros(*words.shape, self.out_dim)
        return out.index_put((words,), features)
