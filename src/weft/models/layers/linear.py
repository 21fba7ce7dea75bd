"""Affine layers."""

from typing import final

from torch import nn

__all__ = ["Linear"]


@final
class Linear(nn.Linear):
    r"""Applies :math:`y = x W^\top + b` to the last dimension.

    Example:
        >>> import torch
        >>> Linear(2, 3)(torch.zeros(4, 2)).shape
        torch.Size([4, 3])
    """
