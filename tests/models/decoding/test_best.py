"""The best by blocks are those of ``argmax`` and ``topk``."""

import pytest
import torch

from weft.models.decoding.best import BLOCK, argmax, best_successors

SIZES = [1, 2, 49, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 333, 1000, 1049]


@pytest.mark.parametrize("size", SIZES)
def test_argmax(size):
    scores = torch.randn(64, size)
    assert torch.equal(argmax(scores), scores.argmax(1))
    for place in (0, size - 1, size // 2):
        scores[:, place] = 99.0
        assert (argmax(scores) == place).all()
        scores[:, place] = -99.0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_best_successors(size, beams):
    scores = torch.randn(6 * beams, size)
    scores[:, : size // 3] = -torch.inf
    offsets = torch.randn(6, beams)
    offsets[0, 1:] = -torch.inf  # as at the first step
    count = min(2 * beams, beams * size)
    best, found_beams, tokens = best_successors(scores, offsets, count)
    sums = (scores.view(6, beams, size) + offsets[:, :, None]).flatten(1)
    assert torch.equal(best, sums.topk(count, 1).values)
    assert torch.equal(sums.gather(1, found_beams * size + tokens), best)
    finite = best > -torch.inf
    places = (found_beams * size + tokens)[finite]
    assert torch.equal(places, sums.topk(count, 1).indices[finite])
