"""The position encodings that models call by one word."""

from typing import Literal

from weft.models.layers.positions import LearnedPositions, PositionEncoding, SinusoidalPositions
from weft.models.layers.rotary import RotaryPositions

__all__ = ["PositionName", "named_positions"]

PositionName = Literal["sinusoidal", "learned", "rotary"]


def named_positions(name: str, *, offset: int = 0) -> PositionEncoding.Config:
    """What a model's ``positions`` stands for.

    Args:
        name: A :data:`PositionName`, or ``sinusoidal_tensor2tensor``.
        offset: Row of the first position, where there is a table.

    Example:
        >>> named_positions("learned", offset=2)
        LearnedPositions.Config(offset=2)
    """
    if name == "learned":
        return LearnedPositions.Config(offset=offset)
    if name == "rotary":
        return RotaryPositions.Config()
    original = name == "sinusoidal"
    return SinusoidalPositions.Config(
        offset=offset, variant="vaswani" if original else "tensor2tensor"
    )
