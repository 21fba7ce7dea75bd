"""Types of the numbers in matrix products; all else is of float32."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from textmill.errors import UserError

Numbers = Literal["fp32", "bf16", "fp16"]
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(precision: Numbers, device: str | torch.device) -> AbstractContextManager[None]:
    """Surrounds the forward pass of a step or of answers; all that is kept stays float32.

    With ``bf16`` torch's autocast computes matrix products in bfloat16, which has float32's range,
    so that no loss has to be scaled, and 8 bits of precision (Kalamkar et al. 2019); with ``fp16``
    in half precision, which has 11 bits and a narrow range: a training scales its loss. Sums,
    normalization and the loss stay in float32. A device without such products is refused.
    """
    if precision == "fp32":
        return nullcontext()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # torch warns, and goes on in float32
            return torch.autocast(torch.device(device).type, dtype=TYPES[precision])
    except (RuntimeError, UserWarning) as error:
        raise UserError(
            f"The precision is {precision}, which torch {torch.__version__} does not compute with "
            f"on {device}: {error}\nLeave it at fp32, or choose another device or precision."
        ) from error
