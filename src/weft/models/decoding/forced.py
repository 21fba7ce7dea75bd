"""Ids that a target has to begin with, of each row its own."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from weft.errors import UserError

__all__ = ["Forced"]


@final
class Forced:
    """The ids that each row's target begins with, after the prefix that all have.

    Args:
        ids: Of each row; may be empty.
        device: Where the search runs.

    Example:
        >>> forced = Forced([[7, 8], []], torch.device("cpu"))
        >>> forced.lengths.tolist()
        [2, 0]
    """

    def __init__(self, ids: Sequence[Sequence[int]], device: torch.device) -> None:
        self.lengths = torch.tensor([len(row) for row in ids], device=device)
        self.longest = max((len(row) for row in ids), default=0)
        padded = [[*row, *[0] * (self.longest - len(row))] for row in ids]
        self.ids = torch.tensor(padded, dtype=torch.int64, device=device)

    def repeated(self, rows: Tensor) -> "Forced":
        """The same for rows of these numbers, which may repeat."""
        other = Forced([], self.ids.device)
        other.ids, other.lengths, other.longest = self.ids[rows], self.lengths[rows], self.longest
        return other

    def check_rows(self, rows: int) -> None:
        """Refuses ids for another number of rows.

        Raises:
            UserError: Names both numbers.
        """
        if len(self.lengths) != rows:
            raise UserError(
                f"Forced ids must be given for each of the {rows} sources, "
                f"but are for {len(self.lengths)}."
            )

    def __call__(self, scores: Tensor, before: Tensor, rows: Tensor, length: int) -> Tensor:
        """Leaves the forced id of each row that still has one as its only choice.

        Args:
            scores: Changed in place. *Shape:* :math:`(N,V)`.
            before: Scores without bans and penalties, which forced ids keep. *Shape:*
                :math:`(N,V)`.
            rows: Numbers of the rows of ``scores`` among those of ``ids``. *Shape:* :math:`(N)`.
            length: Ids generated so far.
        """
        if length >= self.longest:
            return scores
        still = (self.lengths[rows] > length).nonzero()[:, 0]
        wanted = self.ids[rows[still], length]
        kept = before[still, wanted]
        scores[still] = -torch.inf
        scores[still, wanted] = kept
        return scores
