"""Rotary positions (RoFormer, Su et al. 2021): queries and keys are turned by their positions."""

from typing import final

import torch
from torch import Tensor
from typing_extensions import override

from weft.config import registries
from weft.errors import UserError
from weft.models.layers.positions import PositionEncoding

__all__ = ["RotaryPositions"]


@registries.positions.register("rotary")
@final
class RotaryPositions(PositionEncoding):
    r"""Turns queries and keys, so that their product knows how far they are apart.

    Features :math:`i` and :math:`i + K/2` of a head of :math:`K` turn together by the angle
    :math:`p \cdot \mathrm{base}^{-2i/K}` at position :math:`p` (Su et al. 2021, section 3.2; halves
    instead of neighbours are paired, as in GPT-NeoX and Llama). Nothing is added to the embeddings.

    Args:
        config: The settings.
        dim: Not used: every head is turned alike.
        head_dim: Features of a head, :math:`K`; even.
        max_length: Longest sequence.

    Example:
        >>> rotary = RotaryPositions.Config().build(dim=4, head_dim=4, max_length=9)
        >>> q, k = torch.randn(2, 1, 1, 1, 4)
        >>> products = [(rotary.turned(q, p + 2) * rotary.turned(k, p)).sum() for p in (0, 5)]
        >>> torch.allclose(*products, atol=1e-5)
        True
    """

    class Config(PositionEncoding.Config):
        """Settings of rotary positions."""

        base: float = 10000.0
        """What the slowest turn follows from: longer sequences ask for more (Llama 3: 500,000)."""

        def __post_init__(self) -> None:
            """Refuses a base with which nothing turns slower."""
            if not 1 < self.base < float("inf"):
                raise UserError(f"base must be over 1 and finite, but is {self.base}.")

    cos: Tensor
    sin: Tensor

    def __init__(self, config: Config, *, dim: int, head_dim: int, max_length: int) -> None:
        super().__init__(max_length=max_length)
        if head_dim % 2:
            raise UserError(
                "Rotary positions turn pairs of features: a head must have an even number, but "
                f"has {head_dim} (model.dim {dim} over {dim // head_dim} heads)."
            )
        # float64, so that late positions do not lose the digits a phase of thousands of radians
        # takes.
        rates = config.base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        angles = torch.arange(max_length, dtype=torch.float64)[:, None] * rates
        sin = angles.sin().float()
        self.register_buffer("cos", angles.cos().float().repeat(1, 2), persistent=False)
        self.register_buffer("sin", torch.cat([-sin, sin], dim=1), persistent=False)

    @override
    def rows(self, start: int, stop: int) -> None:
        """Nothing is added to the embeddings; a sequence too long is refused all the same."""
        self.check(stop)

    def turned(self, x: Tensor, start: int = 0) -> Tensor:
        """Queries or keys from position ``start`` on, turned. *Shape:* :math:`(B,H,T,K)`."""
        rows = slice(start, start + x.shape[-2])
        first, second = x.chunk(2, dim=-1)
        swapped = torch.cat([second, first], dim=-1)
        return (x * self.cos[rows] + swapped * self.sin[rows]).to(x.dtype)
