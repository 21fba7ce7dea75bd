"""Types of the numbers in a training step."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from weft.errors import UserError

__all__ = ["Precision", "autocast"]

Precision = Literal["fp32", "bf16", "fp16"]

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: Precision, device: str | torch.device) -> AbstractContextManager[None]:
    """Surrounds the forward pass of a training step; weights, gradients and state stay float32.

    With ``bf16`` torch's autocast computes matrix products in bfloat16, which has float32's range,
    so that no loss has to be scaled, and 8 bits of precision (Kalamkar et al. 2019); with ``fp16``
    in half precision, which has 11 bits and a narrow range, see
    :class:`~weft.training.loss_scale.LossScale`. Sums, normalization and the loss stay in float32.

    Args:
        precision: The type of the products.
        device: Where they are computed.

    Raises:
        UserError: The device has no such products.

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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # torch warns, and goes on in float32
            return torch.autocast(torch.device(device).type, dtype=TYPES[precision])
    except (RuntimeError, UserWarning) as error:
        raise UserError(
            f"trainer.precision is {precision}, which torch {torch.__version__} does not compute "
            f"with on {device}: {error}\nLeave it at fp32, or choose another device or precision."
        ) from error
