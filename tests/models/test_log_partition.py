"""The sum over all sequences against log-sum-exp word by word, in float64."""

import pytest
import torch

from textmill.models.crf import MOST_SPREAD, LinearChainCrf, log_partition, spread

LENGTHS = [12, 1, 7, 0, 11]


def made(*, scale, spread, size=6):
    random = torch.Generator().manual_seed(0)
    transitions = torch.rand(size + 2, size + 2, generator=random)
    low, high = transitions.min(), transitions.max()
    transitions = (transitions - low) / (high - low) * spread - 3.0
    scores = torch.randn(len(LENGTHS), max(LENGTHS), size, generator=random) * scale
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return scores.requires_grad_(), transitions.requires_grad_(), real


def by_pairs(scores, transitions, real):
    """As the definition sums it up, with as many numbers as the input has."""
    size = scores.shape[2]
    sums = transitions[size, :size] + scores[:, 0]
    for t in range(1, real.shape[1]):
        reached = (sums[..., None] + transitions[:size, :size]).logsumexp(dim=1) + scores[:, t]
        sums = torch.where(real[:, t, None], reached, sums)
    return (sums + transitions[:size, size + 1]).logsumexp(dim=1)


def with_gradients(found, of, real):
    """The values of the rows with words, and the gradients of a weighted sum of them."""
    weights = torch.arange(1.0, len(found) + 1).to(found.dtype) * real[:, 0]
    return found.detach()[real[:, 0]], *torch.autograd.grad((found * weights).sum(), of)


def is_that_of_float64(scores, transitions, real, *, value, gradient):
    """Whether value and gradients are within these distances of those in float64."""
    found = with_gradients(log_partition(scores, transitions, real), (scores, transitions), real)
    wide = scores.detach().double().requires_grad_(), transitions.detach().double().requires_grad_()
    right = with_gradients(by_pairs(*wide, real), wide, real)
    return torch.allclose(found[0].double(), right[0], rtol=1e-6, atol=value) and all(
        torch.allclose(ours.double(), expected, rtol=0, atol=gradient)
        for ours, expected in zip(found[1:], right[1:], strict=True)
    )


@pytest.mark.parametrize("spread", [0.1, 5.0, MOST_SPREAD])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_values_and_gradients_are_those_of_float64(scale, spread):
    case = made(scale=scale, spread=spread)
    assert is_that_of_float64(*case, value=1e-5, gradient=2e-4 if scale > 1e3 else 1e-5)


def test_a_label_that_no_word_can_have_takes_part_in_nothing():
    scores, transitions, real = made(scale=1.0, spread=5.0)
    without = [x.detach().clone().requires_grad_() for x in (scores, transitions)]
    kept = [0, 1, 3, 4, 5, 6, 7]
    scores.data[..., 2] = -torch.inf
    found = with_gradients(log_partition(scores, transitions, real), (scores, transitions), real)
    small = without[0][..., kept[:-2]], without[1][kept][:, kept]
    right = with_gradients(log_partition(*small, real), without, real)
    for ours, expected in zip(found, right, strict=True):
        assert torch.allclose(ours, expected, atol=1e-5)


def test_what_stands_at_padding_is_not_looked_at():
    scores, transitions, real = made(scale=1.0, spread=5.0)
    right = with_gradients(log_partition(scores, transitions, real), (scores, transitions), real)
    scores.data[~real] = torch.nan
    found = with_gradients(log_partition(scores, transitions, real), (scores, transitions), real)
    assert all(torch.equal(ours, expected) for ours, expected in zip(found, right, strict=True))
    assert not found[1][~real].any()


def test_autocast_takes_no_numbers_away():
    scores, transitions, real = made(scale=3.0, spread=5.0)
    right = with_gradients(log_partition(scores, transitions, real), (scores, transitions), real)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = log_partition(scores, transitions, real)
        ours = with_gradients(found, (scores, transitions), real)
    assert all(torch.equal(a, b) for a, b in zip(ours, right, strict=True))


@pytest.mark.parametrize("forbidden", [-1e4, -1e30])
def test_a_field_with_transitions_far_apart_sums_up_by_pairs(forbidden):
    # Shares would lose all but label a at the first word, from which nothing leads on.
    crf = LinearChainCrf(["a", "b", "c"])
    crf.transitions.data[0, :3] = forbidden
    scores = torch.zeros(1, 3, 3)
    scores[0, 0, 0] = 200.0
    real, labels = torch.ones(1, 3, dtype=torch.bool), torch.tensor([[1, 1, 1]])
    found = crf.log_likelihood(scores, labels, real)
    moves = crf.transitions.detach().double()
    assert found.item() == pytest.approx(-by_pairs(scores.double(), moves, real).item(), rel=1e-6)


def test_the_spread_is_of_what_sequences_take():
    transitions = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    inner, start, end = transitions[:3, :3], transitions[3, :3], transitions[:3, 4]
    start -= 40.0
    end += 50.0
    transitions[:, 3] = 900.0  # to the start
    transitions[4] = -900.0  # from the end
    right = max((part.max() - part.min()).item() for part in (inner, start, end))
    assert spread(transitions).item() == pytest.approx(right)
    assert right < 5


@pytest.mark.parametrize("shift", [30.0, -30.0, 1e3])
def test_transitions_from_the_start_can_be_far_from_others(shift):
    # A field that learned scores about 30, with zeros at what no sequence takes.
    scores, transitions, real = made(scale=3.0, spread=MOST_SPREAD)
    transitions.data[:-2, :-2] += shift
    transitions.data[-2, :-2] -= shift
    assert is_that_of_float64(scores, transitions, real, value=1e-4, gradient=2e-4)
