"""Dropout."""

from typing import final

from torch import nn

__all__ = ["Dropout"]


@final
class Dropout(nn.Dropout):
    """Drops features in training; a ``torch.nn.Dropout`` of the library's.

    Example:
        >>> import torch
        >>> Dropout(0.5).eval()(torch.ones(2)).tolist()
        [1.0, 1.0]
    """
