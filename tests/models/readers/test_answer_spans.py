"""Spans of answers against all of them, one by one."""

import itertools

import pytest
import torch

from textmill.models.readers.answer_spans import SpanScores, best_spans, right_spans

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
