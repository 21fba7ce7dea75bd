"""Ids that a target has to begin with, of each row its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from weft.errors import UserError

__all__ = ["Forced", "Held"]


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

    def at(self, length: int, rows: Tensor, scores: Tensor) -> "Held | None":
        """The ids of a position, with the scores that they have before any is banned.

        Args:
            length: Ids generated so far.
            rows: Numbers of the rows of ``scores`` among those of ``ids``. *Shape:* :math:`(N)`.
            scores: *Shape:* :math:`(N,V)`.

        Returns:
            None if no row has a forced id there.
        """
        if length >= self.longest:
            return None
        still = (self.lengths[rows] > length).nonzero()[:, 0]
        wanted = self.ids[rows[still], length]
        return Held(still, wanted, scores[still, wanted])


@final
@dataclass(frozen=True)
class Held:
    """The forced ids of one position."""

    rows: Tensor
    """Rows that have one. *Shape:* :math:`(M)`."""
    ids: Tensor
    """*Shape:* :math:`(M)`."""
    scores: Tensor
    """*Shape:* :math:`(M)`."""

    def hold(self, scores: Tensor) -> Tensor:
        """Leaves a forced id as the only choice of its row, in place. *Shape:* :math:`(N,V)`."""
        scores[self.rows] = -torch.inf
        scores[self.rows, self.ids] = self.scores
        return scores
