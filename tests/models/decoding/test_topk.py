"""The best by blocks are those of ``argmax`` and ``topk``."""

import pytest
import torch

from textmill.models.decoding.topk import BLOCK, ROWS, argmax, best_successors, log_sums

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


@pytest.mark.parametrize("rows", [1, ROWS, 2 * ROWS + 5])
@pytest.mark.parametrize("shift", [0.0, 40.0, -40.0, 200.0, -200.0, -9e4])
def test_log_sums_of_scores_of_any_size(rows, shift):
    scores = torch.randn(rows, 333, dtype=torch.float64) * 3 + shift
    scores[:, ::3] = -torch.inf
    found = log_sums(scores.float())
    torch.testing.assert_close(found.double(), scores.logsumexp(1), rtol=3e-7, atol=3e-6)


@pytest.mark.parametrize("strange", [torch.inf, -torch.inf, torch.nan])
def test_log_sums_of_a_strange_row(strange):
    scores = torch.randn(4, 90)
    scores[1] = strange
    scores[2] -= 95.0  # nothing of it is left where it is exponentiated as it is
    torch.testing.assert_close(log_sums(scores), scores.logsumexp(1), equal_nan=True)
