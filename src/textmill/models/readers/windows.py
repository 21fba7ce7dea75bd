"""Windows over long texts: a text is read in parts that overlap, and scored as one."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Windows:
    """Which part of which row each window is.

    Example:
        >>> windows = windows_of(torch.tensor([5, 2]), size=3, stride=2)
        >>> windows.cut(torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]]), pad=0).tolist()
        [[1, 2, 3], [3, 4, 5], [6, 7, 0]]
    """

    rows: Tensor
    """The row of each window, rising. *Shape:* :math:`(N)`."""
    begins: Tensor
    """Its first place in the row. *Shape:* :math:`(N)`."""
    lengths: Tensor
    """Its places. *Shape:* :math:`(N)`."""

    def cut(self, columns: Tensor, *, pad: int) -> Tensor:
        """The windows of padded rows. *Shape:* :math:`(B,L,*)` to :math:`(N,T,*)`."""
        place = torch.arange(int(self.lengths.max()), device=columns.device)
        at = (self.begins[:, None] + place).clamp(max=columns.shape[1] - 1)
        found = columns[self.rows[:, None], at]
        outside = place >= self.lengths[:, None]
        return found.masked_fill(outside.view(*outside.shape, *[1] * (found.ndim - 2)), pad)

    def joined(self, scores: Tensor, length: int) -> Tensor:
        """One score for each place of a row: of the window in which it is furthest from the edges.

        Source: Devlin et al. 2019 (BERT), code for SQuAD ("max context"). *Shape:* :math:`(N,T)` to
        :math:`(B,L)`, ``length`` places, zero at padding.
        """
        place = torch.arange(scores.shape[1], device=scores.device)
        at = self.rows[:, None] * length + self.begins[:, None] + place
        context = torch.minimum(place.expand_as(at), self.lengths[:, None] - 1 - place)
        real = place < self.lengths[:, None]
        # Of windows with the same context, the first.
        count = len(self.rows)
        order = torch.arange(count, device=scores.device)[:, None]
        rank = (context * count + (count - 1 - order))[real]
        at, total = at[real], (int(self.rows[-1]) + 1) * length
        best = rank.new_full((total,), -1).scatter_reduce(0, at, rank, "amax")
        chosen = rank == best[at]
        out = scores.new_zeros(total).index_put((at[chosen],), scores[real][chosen])
        return out.view(-1, length)

    def least(self, values: Tensor) -> Tensor:
        """The least value of each row's windows. *Shape:* :math:`(N)` to :math:`(B)`."""
        out = values.new_full((int(self.rows[-1]) + 1,), torch.inf)
        return out.scatter_reduce(0, self.rows, values, "amin")


def windows_of(lengths: Tensor, *, size: int, stride: int) -> Windows:
    """The windows of rows; each row has one at least, and each of its places is in one.

    A window has ``size`` places at most, and begins ``stride`` behind the one before, at most
    ``size``. *Shape* of the rows' lengths: :math:`(B)`.

    Example:
        >>> windows = windows_of(torch.tensor([7, 0]), size=4, stride=2)
        >>> [part.tolist() for part in (windows.rows, windows.begins, windows.lengths)]
        [[0, 0, 0, 1], [0, 2, 4, 0], [4, 4, 3, 0]]
    """
    beyond = (lengths - size).clamp(min=0)
    counts = 1 + (beyond + stride - 1) // stride
    rows = torch.arange(len(lengths), device=lengths.device).repeat_interleave(counts)
    firsts = counts.cumsum(0) - counts
    begins = (torch.arange(len(rows), device=lengths.device) - firsts[rows]) * stride
    return Windows(rows, begins, (lengths[rows] - begins).clamp(max=size))
