"""No sequence of n tokens twice."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

__all__ = ["NoRepeatedNgrams"]


@final
@dataclass(frozen=True)
class NoRepeatedNgrams:
    """Bans a token that would make the last ``size`` ids occur a second time (Paulus et al. 2018).

    Example:
        >>> NoRepeatedNgrams(2)(torch.zeros(1, 4), torch.tensor([[1, 2, 3, 1]]), 0).tolist()
        [[0.0, 0.0, -inf, 0.0]]
    """

    only_bans: ClassVar[bool] = True

    size: int
    """Tokens of a sequence, from 1."""

    def __call__(self, scores: Tensor, ids: Tensor, start: int) -> Tensor:
        """As :class:`weft.models.decoding.scores.ScoreProcessor`."""
        if ids.shape[1] < self.size:
            return scores
        windows = ids.unfold(1, self.size, 1)
        begun = ids[:, ids.shape[1] - self.size + 1 :]
        again = (windows[:, :, :-1] == begun[:, None]).all(dim=2)
        rows, places = again.nonzero(as_tuple=True)
        scores[rows, windows[rows, places, -1]] = -torch.inf
        return scores
