"""The fewest tokens before the end mark."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

__all__ = ["MinLength"]


@final
@dataclass(frozen=True)
class MinLength:
    """Bans the end mark until enough ids were generated.

    Example:
        >>> MinLength(2, eos_idx=0)(torch.zeros(1, 2), torch.tensor([[1, 5]]), 1).tolist()
        [[-inf, 0.0]]
    """

    only_bans: ClassVar[bool] = True

    length: int
    """Ids without the prefix and the end mark."""
    eos_idx: int
    """Id of the end mark."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`weft.models.decoding.scores.ScoreProcessor`."""
        if ids.shape[1] - start < self.length:
            scores[:, self.eos_idx] = -torch.inf
        return scores
