"""Position encodings: what is added to token embeddings so that order matters."""

import math
from typing import Literal, final

import torch
from torch import Tensor, nn

from weft.errors import UserError

__all__ = ["LearnedPositions", "PositionEncoding", "SinusoidalPositions", "sinusoids"]


def sinusoids(count: int, dim: int, *, variant: Literal["vaswani", "tensor2tensor"]) -> Tensor:
    r"""Sines in the first half of the features, cosines in the second.

    Feature :math:`i` of either half turns by :math:`10000^{-i/h}` a position, where with
    :math:`H` = ``dim/2`` the ``vaswani`` variant has :math:`h = H` (Vaswani et al. 2017, section
    3.5; Marian) and ``tensor2tensor`` has :math:`h = H - 1` (tensor2tensor, fairseq, M2M-100,
    NLLB).

    Returns:
        The table, float32. *Shape:* :math:`(P,D)`, ``count`` by ``dim``.

    Example:
        >>> sinusoids(2, 4, variant="vaswani").round(decimals=3).tolist()
        [[0.0, 0.0, 1.0, 1.0], [0.8410000205039978, 0.009999999776482582, 0.5400000214576721, 1.0]]
    """
    if dim % 2 or dim < 4:
        raise UserError(f"Sinusoidal positions need an even dim of at least 4, but dim is {dim}.")
    half = dim // 2
    last = half if variant == "vaswani" else half - 1
    # float64, so that late positions do not lose the digits a phase of thousands of radians takes.
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000.0) / last))
    angles = torch.arange(count, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


class PositionEncoding(nn.Module):
    """A table with one row a position; subclasses say where it comes from."""

    table: Tensor

    def __init__(self, *, max_length: int, offset: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.offset = offset

    def rows(self, start: int, stop: int) -> Tensor:
        """The encodings of positions ``start`` to ``stop`` (not included). *Shape:* :math:`(T,D)`.

        Raises:
            UserError: If ``stop`` is over the longest sequence the model has positions for.
        """
        if stop > self.max_length:
            raise UserError(
                f"A sequence of {stop} tokens is longer than the model's max_length of "
                f"{self.max_length}. Shorten it, or build the model with a larger max_length."
            )
        return self.table[self.offset + start : self.offset + stop]


@final
class SinusoidalPositions(PositionEncoding):
    """Fixed sines and cosines, see :func:`sinusoids`; not part of the ``state_dict``.

    Args:
        dim: Features of an encoding; even.
        max_length: Longest sequence.
        offset: Row of the first position (2 in fairseq's models, whose row 1 is the padding's).
        variant: Frequencies, see :func:`sinusoids`.
    """

    def __init__(
        self,
        *,
        dim: int,
        max_length: int,
        offset: int = 0,
        variant: Literal["vaswani", "tensor2tensor"] = "vaswani",
    ) -> None:
        super().__init__(max_length=max_length, offset=offset)
        table = sinusoids(max_length + offset, dim, variant=variant)
        self.register_buffer("table", table, persistent=False)


@final
class LearnedPositions(PositionEncoding):
    """One trained vector a position (Gehring et al. 2017; BERT, GPT).

    Args:
        dim: Features of an encoding.
        max_length: Longest sequence.
        offset: Row of the first position (2 in BART's models).
    """

    def __init__(self, *, dim: int, max_length: int, offset: int = 0) -> None:
        super().__init__(max_length=max_length, offset=offset)
        self.table = nn.Parameter(torch.empty(max_length + offset, dim))
        nn.init.normal_(self.table, std=dim**-0.5)
