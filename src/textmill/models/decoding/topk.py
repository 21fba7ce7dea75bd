"""The best of many scores, faster than ``argmax`` and ``topk``.

torch's ``argmax`` and ``topk`` on CPU look at one element after another; ``amax`` is vectorized. So
the maxima of blocks are found first, and only the blocks that can hold the best are looked into:
the best N elements lie in the N blocks with the largest maxima. For 32 rows of 5,000 scores on one
thread, ``argmax`` takes 230 us and the one here 46; ``topk`` of 10 for 32 beams of 5 takes 1,060
us and the one here 330.
"""

import torch
from torch import Tensor

BLOCK = 50
"""Elements of a block; of 25 to 100 the fastest at 5,000 scores a row."""

ROWS = 32
"""Rows whose exponentials are summed at once: they stay in the processor's cache."""

LEAST, MOST = 1e-20, 1e37
"""Sums of exponentials between them are as exact as those of what is left of the largest score."""


def log_sums(scores: Tensor) -> Tensor:
    """The logarithm of each row's sum of exponentials. *Shape:* :math:`(N,V)` to :math:`(N)`.

    Scores are exponentiated as they are, where that neither overflows nor vanishes: of 32 rows of
    5,000 scores on one thread in 33 us, ``logsumexp`` takes 66.
    """
    if scores.device.type != "cpu":
        return scores.logsumexp(dim=1)
    parts = [scores] if len(scores) <= ROWS else scores.split(ROWS)
    sums = torch.cat([part.exp().sum(dim=1) for part in parts])
    least, most = torch.aminmax(sums)
    if least.item() > LEAST and most.item() < MOST:  # not so, too, where one is not a number
        return sums.log()
    return torch.cat([part.logsumexp(dim=1) for part in parts])


def argmax(scores: Tensor) -> Tensor:
    """The place of each row's largest score. *Shape:* :math:`(N,V)` to :math:`(N)`."""
    rows, size = scores.shape
    blocks = size // BLOCK
    if scores.device.type != "cpu" or blocks < 2:
        return scores.argmax(dim=1)
    # Block j is every blocks-th score from j on: its maximum is one of vectors, not within one.
    inside = scores[:, : blocks * BLOCK].view(rows, BLOCK, blocks)
    block = inside.amax(dim=1).argmax(dim=1)
    members = inside.gather(2, block[:, None, None].expand(rows, BLOCK, 1))[:, :, 0]
    candidates = torch.cat([members, scores[:, blocks * BLOCK :]], dim=1)
    place = candidates.argmax(dim=1)
    return torch.where(place < BLOCK, place * blocks + block, place + (blocks - 1) * BLOCK)


def best_successors(scores: Tensor, offsets: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best next tokens of groups of beams.

    From scores, :math:`(GK,V)`, and what is added to all of a beam, :math:`(G,K)`: ``count``
    successors of a group, at most twice its beams and all there are, the best first.

    Returns:
        Sums of score and offset; beams; tokens. *Shape:* each :math:`(G,N)`.
    """
    groups, beams = offsets.shape
    size = scores.shape[1]
    blocks = size // BLOCK
    if scores.device.type != "cpu" or blocks < 2:
        sums = scores.view(groups, beams, size) + offsets[:, :, None]
        best, flat = sums.flatten(1).topk(count, dim=1)
        return best, flat // size, flat % size
    scores = scores.view(groups, beams, size)
    inside = scores[:, :, : blocks * BLOCK].unflatten(2, (BLOCK, blocks))
    tail = scores[:, :, blocks * BLOCK :]
    maxima = inside.amax(dim=2) + offsets[:, :, None]
    chosen = maxima.flatten(1).topk(count, dim=1, sorted=False).indices
    beam, block = chosen // blocks, chosen % blocks
    group = torch.arange(groups)[:, None]
    members = inside[group, beam, :, block] + offsets.gather(1, beam)[:, :, None]
    tails = (tail + offsets[:, :, None]).flatten(1)
    best, place = torch.cat([members.flatten(1), tails], dim=1).topk(count, dim=1)
    in_block, place_in_tail = place < count * BLOCK, place - count * BLOCK
    which = (place // BLOCK).clamp(max=count - 1)
    length = max(1, tail.shape[2])  # a tail without tokens holds none of the best
    beams_of_best = torch.where(in_block, beam.gather(1, which), place_in_tail // length)
    tokens = torch.where(
        in_block,
        place % BLOCK * blocks + block.gather(1, which),
        blocks * BLOCK + place_in_tail % length,
    )
    return best, beams_of_best, tokens
