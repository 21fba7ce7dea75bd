"""Tensors counted while they are there, against counts by hand."""

import sys

import torch
from torch import nn

from textmill.preflight.step_memory import LiveBytes


def test_only_what_is_made_inside_counts_and_only_while_it_is_there():
    before = torch.ones(100)
    with LiveBytes() as live:
        a = before + 1
        view = a[:10].view(2, 5)
        before.add_(1)
        before[:5].zero_()
        assert live.now == 400
        del a
        assert live.now == 400, "a view keeps its storage"
        del view
        assert live.now == 0
        torch.ones(50).double()
    assert live.peak == 600
    assert live.now == 0


def test_a_training_step_holds_gradients_at_its_end_and_activations_in_between():
    module = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 1))
    weights = sum(p.numel() for p in module.parameters()) * 4
    with LiveBytes() as live:
        loss = module(torch.ones(1000, 30)).sum()
        loss.backward()
        del loss
    assert live.now == weights
    hidden = 1000 * 40 * 4
    assert hidden + 1000 * 30 * 4 <= live.peak <= 4 * hidden + weights


def test_counting_does_not_import_the_compiler():
    """Its import takes 2.5 s and 90 MB; this process may have it from elsewhere."""
    had = "torch._dynamo" in sys.modules
    with LiveBytes():
        torch.ones(2).sum()
    assert had or "torch._dynamo" not in sys.modules
    assert LiveBytes._should_skip_dynamo() is False
