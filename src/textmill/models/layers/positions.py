"""Position encodings: added to embeddings, or turning queries and keys, so that order matters."""

import math
from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.errors import UserError

PositionName = Literal["sinusoidal", "sinusoidal_tensor2tensor", "learned", "rotary"]


def sinusoids(count: int, dim: int, *, variant: Literal["vaswani", "tensor2tensor"]) -> Tensor:
    r"""Sines in the first half of the features, cosines in the second: float32 :math:`(P,D)`.

    Feature :math:`i` of either half turns by :math:`10000^{-i/h}` a position, where with
    :math:`H` = ``dim/2`` the ``vaswani`` variant has :math:`h = H` (Vaswani et al. 2017, section
    3.5; Marian) and ``tensor2tensor`` has :math:`h = H - 1` (tensor2tensor, fairseq, M2M-100,
    NLLB).
    """
    if dim % 2 or dim < 4:
        raise UserError(f"Sinusoidal positions need an even dim of at least 4, but dim is {dim}.")
    if torch.get_default_device().type == "meta":
        # Its shape alone is asked for; computing on meta imports torch's compiler, which takes 1 s.
        return torch.empty(count, dim)
    half = dim // 2
    last = half if variant == "vaswani" else half - 1
    # float64, so that late positions do not lose the digits a phase of thousands of radians takes.
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000.0) / last))
    angles = torch.arange(count, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


class PositionEncoding(nn.Module):
    """Base of the position encodings; ``max_length`` is that of the longest sequence."""

    def __init__(self, *, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length

    @abstractmethod
    def rows(self, start: int, stop: int) -> Tensor | None:
        """What is added to the embeddings of positions ``start`` to ``stop`` (not included).

        *Shape:* :math:`(T,D)`; None if nothing is.
        """

    def check(self, length: int) -> None:
        """Refuses a sequence that is longer than the model has positions for."""
        if length > self.max_length:
            raise UserError(
                f"A sequence of {length} tokens is longer than the model's max_length of "
                f"{self.max_length}. Shorten it, or build the model with a larger max_length."
            )


class PositionTable(PositionEncoding):
    """A table with one row a position; that of the first is ``offset``."""

    table: Tensor

    def __init__(self, *, max_length: int, offset: int) -> None:
        super().__init__(max_length=max_length)
        self.offset = offset

    @override
    def rows(self, start: int, stop: int) -> Tensor:
        self.check(stop)
        return self.table[self.offset + start : self.offset + stop]


class SinusoidalPositions(PositionTable):
    """Fixed sines and cosines, see :func:`sinusoids`; not part of the ``state_dict``."""

    def __init__(
        self,
        dim: int,
        *,
        max_length: int,
        offset: int = 0,
        variant: Literal["vaswani", "tensor2tensor"] = "vaswani",
    ) -> None:
        super().__init__(max_length=max_length, offset=offset)
        table = sinusoids(max_length + offset, dim, variant=variant)
        self.register_buffer("table", table, persistent=False)


class LearnedPositions(PositionTable):
    """One trained vector a position (Gehring et al. 2017; BERT, GPT)."""

    def __init__(self, dim: int, *, max_length: int, offset: int = 0) -> None:
        super().__init__(max_length=max_length, offset=offset)
        self.table = nn.Parameter(torch.empty(max_length + offset, dim))
        nn.init.normal_(self.table, std=dim**-0.5)


class RotaryPositions(PositionEncoding):
    r"""Turns queries and keys, so that their product knows how far they are apart.

    Features :math:`i` and :math:`i + K/2` of a head of :math:`K` turn together by the angle
    :math:`p \cdot \mathrm{base}^{-2i/K}` at position :math:`p` (Su et al. 2021, section 3.2; halves
    instead of neighbours are paired, as in GPT-NeoX and Llama). Nothing is added to the embeddings.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_dim: int, *, max_length: int, base: float = 10000.0) -> None:
        super().__init__(max_length=max_length)
        if head_dim % 2:
            raise UserError(
                "Rotary positions turn pairs of features: a head must have an even number, but "
                f"has {head_dim}."
            )
        self.base = base
        # float64, as in sinusoids.
        rates = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        angles = torch.arange(max_length, dtype=torch.float64)[:, None] * rates
        sin = angles.sin().float()
        self.register_buffer("cos", angles.cos().float().repeat(1, 2), persistent=False)
        self.register_buffer("sin", torch.cat([-sin, sin], dim=1), persistent=False)

    @override
    def rows(self, start: int, stop: int) -> None:
        self.check(stop)

    def turned(self, x: Tensor, start: int = 0) -> Tensor:
        """Queries or keys from position ``start`` on, turned. *Shape:* :math:`(B,H,T,K)`."""
        rows = slice(start, start + x.shape[-2])
        first, second = x.chunk(2, dim=-1)
        swapped = torch.cat([second, first], dim=-1)
        return (x * self.cos[rows] + swapped * self.sin[rows]).to(x.dtype)
