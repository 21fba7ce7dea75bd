"""Which tokens a draw is among, and the draw: temperature, top-k and top-p."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

__all__ = ["Filter"]


@final
@dataclass(frozen=True)
class Filter:
    """The distribution that tokens are drawn from.

    Example:
        >>> one, two = Filter(top_k=2).draw(
        ...     torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.tensor([0.1, 0.99], dtype=torch.float64)
        ... )
        >>> int(one), int(two)
        (2, 1)
    """

    temperature: float = 1.0
    """Scores are divided by it."""
    top_k: int = 0
    """Only this many likeliest tokens are left (Fan et al. 2018); 0: all."""
    top_p: float = 1.0
    """The fewest likeliest tokens with this probability together are left (Holtzman et al. 2020),
    of those that ``top_k`` leaves; at least one."""

    def __call__(self, scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Probabilities of the tokens left, which do not sum to 1, and their ids.

        Args:
            scores: *Shape:* :math:`(N,V)`.

        Returns:
            Probabilities, float64, and ids (None: a probability for each id), both :math:`(N,M)`.
        """
        scores, tokens = scores.double() / self.temperature, None
        if 0 < self.top_k < scores.shape[1] or self.top_p < 1:
            kept = min(self.top_k or scores.shape[1], scores.shape[1])
            scores, tokens = scores.topk(kept, dim=1)
        probabilities = scores.softmax(dim=1)
        if self.top_p < 1:
            before = probabilities.cumsum(dim=1) - probabilities
            probabilities = probabilities.masked_fill(before >= self.top_p, 0.0)
        return probabilities, tokens

    def draw(self, scores: Tensor, uniforms: Tensor) -> Tensor:
        """Draws a token of each row by its number from 0 to below 1.

        The number is looked up in the cumulated probabilities: rounding errors of scores change a
        token about as rarely as they are small.

        Args:
            scores: *Shape:* :math:`(N,V)`.
            uniforms: float64. *Shape:* :math:`(N)`.

        Returns:
            Ids. *Shape:* :math:`(N)`.
        """
        probabilities, tokens = self(scores)
        sums = probabilities.cumsum(dim=1)
        places = torch.searchsorted(sums, (uniforms * sums[:, -1])[:, None], right=True)
        places = places.clamp(max=sums.shape[1] - 1)
        return (places if tokens is None else tokens.gather(1, places))[:, 0]
