"""Spans of answers against all of them, one by one."""

import itertools

import pytest
import torch

from textmill.models.readers.answer_spans import SpanScores, best_spans, right_spans, windows_of

LENGTHS = torch.tensor([5, 1, 0, 3])
REAL = torch.arange(5) < LENGTHS[:, None]


def drawn(*, none=True):
    generator = torch.Generator().manual_seed(3)
    start, end = torch.randn(2, 4, 5, generator=generator)
    return SpanScores(start, end, torch.randn(4, generator=generator) if none else None)


@pytest.mark.parametrize("none", [True, False])
def test_all_spans_and_none_have_probability_one(none):
    start, end, without = drawn(none=none).log_probabilities(REAL)
    for row, length in enumerate(LENGTHS.tolist()):
        if not length:
            assert start[row].eq(-torch.inf).all()
            continue
        pairs = itertools.product(range(length), repeat=2)
        total = sum((start[row, i] + end[row, j]).exp() for i, j in pairs) + without[row].exp()
        assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_the_best_span_is_that_of_brute_force(most):
    start, end, _ = drawn().log_probabilities(REAL)
    best = best_spans(start, end, most=most)
    for row, length in enumerate(LENGTHS.tolist()):
        spans = [
            (float(start[row, i] + end[row, j]), i, j)
            for i in range(length)
            for j in range(i, min(length, i + most))
        ]
        found = tuple(part[row].item() for part in best)
        assert found == max(spans) if spans else found[0] == -torch.inf


def test_right_answers_are_added_up_and_have_a_gradient():
    scores = drawn()
    scores.start.requires_grad_()
    start, end, _ = scores.log_probabilities(REAL)
    answers = torch.tensor([[[0, 1], [3, 3]], [[0, 0], [-1, -1]], [[-1, -1]] * 2, [[-1, -1]] * 2])
    found = right_spans(start, end, answers)
    wanted = (start[0, 0] + end[0, 1]).exp() + (start[0, 3] + end[0, 3]).exp()
    assert found[0].exp().item() == pytest.approx(wanted.item(), rel=1e-5)
    assert found[1].item() == pytest.approx((start[1, 0] + end[1, 0]).item())
    assert found[2:].tolist() == [0, 0]
    found.sum().backward()
    assert scores.start.grad.isfinite().all()
    assert scores.start.grad[0].any()
    assert right_spans(start, end, answers[:, :0]).tolist() == [0] * 4


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (4, 1), (4, 2), (4, 4), (7, 3), (50, 20)])
def test_windows_cover_all_places_and_are_joined_by_the_most_context(size, stride):
    lengths = torch.tensor([0, 1, 4, 5, 11, 24])
    windows = windows_of(lengths, size=size, stride=stride)
    places = torch.arange(24).expand(6, 24) + 100 * torch.arange(6)[:, None]
    cut = windows.cut(places, pad=-1)
    assert windows.lengths.max() <= size
    seen = {}  # the windows of each place by what is on its shorter side
    for number, (row, begin, length) in enumerate(
        zip(
            *(part.tolist() for part in (windows.rows, windows.begins, windows.lengths)),
            strict=True,
        )
    ):
        wanted = [100 * row + begin + i for i in range(length)]
        assert cut[number].tolist() == wanted + [-1] * (cut.shape[1] - length)
        for i in range(length):
            seen.setdefault((row, begin + i), []).append((-min(i, length - 1 - i), number, i))
    assert set(seen) == {(row, i) for row, n in enumerate(lengths.tolist()) for i in range(n)}
    scores = torch.randn(cut.shape, generator=torch.Generator().manual_seed(1))
    joined = windows.joined(scores, 24)
    assert joined.shape == (6, 24)
    for (row, place), found in seen.items():
        _, number, i = min(found)
        assert joined[row, place] == scores[number, i]
    assert not joined[torch.arange(24) >= lengths[:, None]].any()


def test_gradients_go_to_the_windows_that_were_taken():
    windows = windows_of(torch.tensor([6]), size=4, stride=2)
    scores = torch.zeros(2, 4, requires_grad=True)
    windows.joined(scores, 6).sum().backward()
    assert scores.grad.tolist() == [[1, 1, 1, 0], [0, 1, 1, 1]]


def test_least_is_by_row_and_features_are_cut_too():
    windows = windows_of(torch.tensor([6, 2]), size=4, stride=2)
    assert windows.least(torch.tensor([3.0, -1.0, 2.0])).tolist() == [-1.0, 2.0]
    spelled = torch.arange(2 * 6 * 3).view(2, 6, 3)
    cut = windows.cut(spelled, pad=0)
    assert cut.shape == (3, 4, 3)
    assert torch.equal(cut[1], spelled[0, 2:6])
    assert torch.equal(cut[2, :2], spelled[1, :2])
    assert not cut[2, 2:].any()
