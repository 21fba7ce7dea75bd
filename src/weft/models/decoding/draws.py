"""Random numbers that belong to a source, not to its place in a batch.

A generator's state would give a row other numbers in another batch. Here a number is a function of
(seed, the source's ids, which draw of the source, position), by the mixing steps of splitmix64
(Steele, Lea and Flood 2014).
"""

import torch
from torch import Tensor

__all__ = ["source_keys", "uniforms"]

_GOLDEN = -0x61C8864680B583EB  # 2**64 divided by the golden ratio, as a signed number


def _shifted(x: Tensor, bits: int) -> Tensor:
    """A logical right shift: torch's keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mixed(x: Tensor) -> Tensor:
    x = x + _GOLDEN
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def source_keys(source: Tensor, source_lengths: Tensor | None, *, seed: int) -> Tensor:
    """A number of 64 bits for each row's ids, whatever its padding.

    Args:
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        seed: Another seed gives all rows other keys.

    Returns:
        Keys, int64. *Shape:* :math:`(B)`.

    Example:
        >>> a, b = source_keys(torch.tensor([[4, 5, 0], [4, 5, 6]]), torch.tensor([2, 3]), seed=1)
        >>> int(a) == int(source_keys(torch.tensor([[4, 5]]), None, seed=1)), int(a) == int(b)
        (True, False)
    """
    seed = (seed + 2**63) % 2**64 - 2**63
    keys = _mixed(torch.full((len(source),), seed, dtype=torch.int64, device=source.device))
    for place in range(source.shape[1]):
        next_keys = _mixed(keys ^ source[:, place])
        real = None if source_lengths is None else source_lengths > place
        keys = next_keys if real is None else torch.where(real, next_keys, keys)
    return keys


def uniforms(keys: Tensor, number: Tensor | int) -> Tensor:
    """A number from 0 to below 1 for each key, other ones for another ``number``.

    Returns:
        Multiples of :math:`2^{-40}`, float64. *Shape:* that of ``keys``.

    Example:
        >>> uniforms(torch.tensor([1, 2]), 0).round(decimals=4).tolist()
        [0.3682, 0.3922]
    """
    return _shifted(_mixed(_mixed(keys) ^ number), 24).double() * 2.0**-40
