"""Self-attention over a text, with positions of its own."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.sequence import SequenceEncoder, real_tokens
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.layer import LayerConfig, TransformerEncoder


@registries.encoders.register("self_attention")
class SelfAttentionEncoder(SequenceEncoder):
    """Layers of self-attention and feed-forward blocks; pooled by the mean.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.
    """

    class Config(LayerConfig, SequenceEncoder.Config):
        dim: int | None = None
        """Features of the layers; null is as many as the tokens' vectors have, else a linear layer
        brings those to as many (Lan et al. 2020, "ALBERT", section 3.1)."""
        num_layers: int = 2
        """Layers."""

        place: ClassVar[str] = ""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, sizes=["dim", "num_layers"])

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.config, inside = config, config.dim or dim
        self.out_dim, self.max_length = inside, config.max_length
        if inside % config.num_heads:
            raise UserError(
                f"The features of the tokens' vectors, {inside}, must be divisible by num_heads, "
                f"but that is {config.num_heads}."
            )
        self.widen = nn.Linear(dim, inside) if inside != dim else nn.Identity()
        self.positions = config.make_positions(inside)
        self.dropout = Dropout(config.dropout)
        self.layers = TransformerEncoder(
            config, inside, num_layers=config.num_layers, positions=self.positions
        )

    @override
    def forward(self, x: Tensor, lengths: Tensor, parts: Tensor | None = None) -> Tensor:
        """As of an encoder; several texts may stand in a row, and know nothing of each other.

        ``parts`` are the numbers, from 0 and rising, of the text that each token is of,
        :math:`(B,T)`; positions begin anew in each. None: a row is one text.
        """
        # Vectors of a table have length 1 (Vaswani et al. 2017, 3.4).
        x = self.widen(x * x.shape[-1] ** 0.5)
        rows = self.positions.rows(0, x.shape[1])
        if rows is not None and parts is not None:
            first = torch.searchsorted(parts, parts)  # of each token's part
            rows = rows[torch.arange(x.shape[1], device=x.device) - first]
        x = self.dropout(x if rows is None else x + rows)
        real = real_tokens(x, lengths)
        # Attention without a mask is faster; asking is free on a CPU, and waits elsewhere.
        asks = x.device.type == "cpu" and not torch.compiler.is_exporting()
        all_real = asks and bool(real.all())
        mask = None if all_real else real[:, None, None]
        if parts is not None:
            same = (parts[:, :, None] == parts[:, None])[:, None]
            mask = same if mask is None else same & mask
        out: Tensor = self.layers(x, mask)
        return out
