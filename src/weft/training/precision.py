"""Types of the numbers in a training step."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

__all__ = ["Precision", "autocast"]

Precision = Literal["fp32", "bf16"]


def autocast(precision: Precision, device: str | torch.device) -> AbstractContextManager[None]:
    """Surrounds the forward pass of a training step; weights, gradients and state stay float32.

    With ``bf16`` torch's autocast computes matrix products in bfloat16, which has float32's range,
    so that no loss has to be scaled, and 8 bits of precision (Kalamkar et al. 2019); sums,
    normalization and the loss stay in float32.

    Args:
        precision: The type of the products.
        device: Where they are computed.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> with autocast("bf16", torch.device("cpu")):
        ...     layer(torch.ones(1, 2)).dtype
        torch.bfloat16
        >>> layer.weight.dtype
        torch.float32
    """
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
