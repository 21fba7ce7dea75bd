"""Convolutions over a text: n-grams of vectors (Kim 2014)."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.sequence import SequenceEncoder, real_tokens
from textmill.models.poolings import MaxPooling, Pooling


@registries.encoders.register("cnn")
@final
class CnnEncoder(SequenceEncoder):
    """Filters of several widths over neighbouring tokens, each with a ReLU; pooled by the maximum.

    A filter stands at every token, beginning half its width before it; outside of the text are
    zeros, whatever the text's neighbours in its batch.

    Source: Kim 2014, "Convolutional Neural Networks for Sentence Classification".

    Example:
        >>> encoder = CnnEncoder.Config(filters=10, widths=(3, 4)).build(dim=8)
        >>> encoder(torch.zeros(2, 5, 8), torch.tensor([5, 2])).shape
        torch.Size([2, 5, 20])
    """

    class Config(SequenceEncoder.Config):
        """Settings of the convolutions."""

        filters: int = 100
        """Filters of each width."""
        widths: tuple[int, ...] = (3, 4)
        """How many tokens a filter sees."""

        def __post_init__(self) -> None:
            if not self.widths or min(self.widths) < 1 or self.filters < 1:
                raise UserError(
                    "An encoder of type cnn needs filters and widths of at least 1, but has "
                    f"filters={self.filters} and widths={list(self.widths)}."
                )

        @override
        def default_pooling(self) -> Pooling.Config:
            """The maximum."""
            return MaxPooling.Config()

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.config, self.out_dim = config, config.filters * len(config.widths)
        self.filters = nn.ModuleList([nn.Conv1d(dim, config.filters, w) for w in config.widths])

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        channels = x.masked_fill(~real_tokens(x, lengths)[..., None], 0.0).transpose(1, 2)
        found = []
        for width, conv in zip(self.config.widths, self.filters, strict=True):
            before = width // 2
            found.append(conv(F.pad(channels, (before, width - 1 - before))))
        return torch.cat(found, dim=1).relu().transpose(1, 2)
