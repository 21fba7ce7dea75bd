"""The connection around every block of a layer: residual, dropout and normalization."""

from collections.abc import Callable
from typing import Literal, final

from torch import Tensor, nn
from typing_extensions import override

from weft.models.layers.dropout import Dropout

__all__ = ["NormOrder", "Residual"]

NormOrder = Literal["pre", "post"]


@final
class Residual(nn.Module):
    r"""Adds what a block makes of ``x`` to ``x``.

    ``pre``: :math:`x + \mathrm{drop}(f(\mathrm{norm}(x)))`, which trains stably at high learning
    rates (Xiong et al. 2020). ``post``: :math:`\mathrm{norm}(x + \mathrm{drop}(f(x)))`, the
    original (Vaswani et al. 2017).

    Args:
        norm: The normalization; the residual owns it.
        order: Where it stands.
        dropout: Probability of dropping a feature of the block's output in training.

    Example:
        >>> import torch
        >>> Residual(nn.LayerNorm(2), order="pre")(torch.ones(1, 2), lambda h: h + 1).tolist()
        [[2.0, 2.0]]
    """

    def __init__(self, norm: nn.Module, *, order: NormOrder, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.order = order
        self.dropout = Dropout(dropout)

    @override
    def forward(self, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """*Shape:* :math:`(*,D)` to :math:`(*,D)`."""
        if self.order == "pre":
            return self.dropout.add_to(x, block(self.norm(x)))
        out: Tensor = self.norm(self.dropout.add_to(x, block(x)))
        return out
