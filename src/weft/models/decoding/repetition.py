"""The repetition penalty of CTRL."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

__all__ = ["RepetitionPenalty"]


@final
@dataclass(frozen=True)
class RepetitionPenalty:
    r"""Makes tokens that occurred less likely (CTRL, Keskar et al. 2019, section 4.1).

    A score :math:`s` of a token of the target so far becomes :math:`s / \theta` where it is
    positive and :math:`s \theta` where it is negative.

    Example:
        >>> penalty = RepetitionPenalty(2.0)
        >>> penalty(torch.tensor([[4.0, -1.0, 3.0]]), torch.tensor([[0, 1, 1]]), 1).tolist()
        [[2.0, -2.0, 3.0]]
    """

    only_bans: ClassVar[bool] = False

    penalty: float
    r"""The :math:`\theta`."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`weft.models.decoding.scores.ScoreProcessor`."""
        found = scores.gather(1, ids)
        less = torch.where(found < 0, found * self.penalty, found / self.penalty)
        return scores.scatter_(1, ids, less)
