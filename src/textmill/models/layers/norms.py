"""Normalizations of the features of a token."""

from typing import final

from torch import nn

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.models import registries


class Norm(Component):
    """Base of the normalizations; a subclass is also an ``nn.Module``.

    One of your own is registered in ``textmill.models.registries.norms``; it is built with ``dim``.
    """

    class Config(BaseConfig):
        """Settings that every normalization has."""

        eps: float = 1e-5
        """Added below the root, so that equal features do not divide by zero."""

        def __post_init__(self) -> None:
            if not 0 < self.eps < float("inf"):
                raise UserError(f"eps must be over 0 and finite, but is {self.eps}.")


@registries.norms.register("layer_norm")
@final
class LayerNorm(Norm, nn.LayerNorm):
    r"""Layer normalization (Ba et al. 2016).

    :math:`w (x - \bar x) / \sqrt{\mathrm{var}(x) + \epsilon} + b`.

    Example:
        >>> import torch
        >>> LayerNorm.Config().build(dim=2)(torch.tensor([3.0, 5.0])).round(decimals=3).tolist()
        [-1.0, 1.0]
    """

    def __init__(self, config: Norm.Config, *, dim: int) -> None:
        nn.LayerNorm.__init__(self, dim, eps=config.eps)


@registries.norms.register("rms_norm")
@final
class RMSNorm(Norm, nn.RMSNorm):
    r"""Normalization by the root mean square (Zhang and Sennrich 2019).

    :math:`w\, x / \sqrt{\overline{x^2} + \epsilon}`: no mean is taken away, and there is no bias.

    Example:
        >>> import torch
        >>> RMSNorm.Config().build(dim=2)(torch.tensor([4.0, -4.0])).round(decimals=3).tolist()
        [1.0, -1.0]
    """

    class Config(Norm.Config):
        """Settings of normalization by the root mean square."""

        eps: float = 1e-6
        """Added below the root (1e-6: Llama)."""

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.RMSNorm.__init__(self, dim, eps=config.eps)
