"""Deep averaging: the tokens' vectors as they are, for a mean and the layers behind it."""

from typing import final

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.models import registries
from textmill.models.encoders.sequence import SequenceEncoder


@registries.encoders.register("averaging")
@final
class AveragingEncoder(SequenceEncoder):
    """The tokens' own vectors, of which whole tokens are dropped in training; pooled by the mean.

    With ``model.hidden`` layers behind the mean it is the deep averaging network of Iyyer et al.
    2015, "Deep Unordered Composition Rivals Syntactic Methods for Text Classification".

    Example:
        >>> AveragingEncoder.Config().build(dim=8)(torch.ones(2, 5, 8), torch.tensor([5, 2])).shape
        torch.Size([2, 5, 8])
    """

    class Config(SequenceEncoder.Config):
        """Settings of the averaging."""

        word_dropout: float = 0.3
        """Probability of leaving out a token in training (zeros take its place, and the mean is
        over the tokens that are left); the paper's value."""

        def __post_init__(self) -> None:
            require(self, shares=["word_dropout"])

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.config, self.out_dim = config, dim

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        share = self.config.word_dropout
        if not (self.training and share):
            return x
        kept = torch.rand(x.shape[:2], device=x.device) >= share
        real = torch.arange(x.shape[1], device=x.device) < lengths.to(x.device)[:, None]
        # A text that would lose all its tokens keeps them; the mean is over those that are left.
        kept |= ~(kept & real).any(dim=1, keepdim=True)
        left = (kept & real).sum(dim=1, keepdim=True)
        scale = real.sum(dim=1, keepdim=True) / left.clamp(min=1)
        out: Tensor = x * (kept * scale)[..., None]
        return out
