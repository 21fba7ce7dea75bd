"""The penalty of the unknown token."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

__all__ = ["UnknownPenalty"]


@final
@dataclass(frozen=True)
class UnknownPenalty:
    """Makes the unknown token, which stands for no text, less likely.

    Example:
        >>> import torch
        >>> UnknownPenalty(1.5, unk_idx=1)(torch.zeros(1, 2), torch.tensor([[0]]), 1).tolist()
        [[0.0, -1.5]]
    """

    only_bans: ClassVar[bool] = False

    penalty: float
    """Taken from its score; infinite bans it."""
    unk_idx: int
    """Id of the unknown token."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`weft.models.decoding.scores.ScoreProcessor`."""
        scores[:, self.unk_idx] -= self.penalty
        return scores
