"""Losses of labels against torch's own, and what holds for each."""

import numpy as np
import pytest
import torch
from scipy.special import expit, rel_entr, softmax
from torch.nn import functional as F

from textmill.errors import UserError
from textmill.models.label_losses import (
    AutoLoss,
    BinaryCrossEntropy,
    CrossEntropyLoss,
    averaged_scores,
)

NAMES = ["a", "b", "c"]
torch.manual_seed(3)
SCORES = torch.randn(8, 3)
ONE = torch.tensor([0, 1, 2, 0, 1, 1, 2, 0])
MANY = (torch.rand(8, 3) > 0.5).float()
CASES = [(CrossEntropyLoss, False), (BinaryCrossEntropy, False), (BinaryCrossEntropy, True)]


@pytest.mark.parametrize(("kind", "multiple"), CASES)
def test_two_halves_are_the_whole(kind, multiple):
    targets = MANY if multiple else ONE
    for weights in ({}, {"a": 3.0, "c": 0.5}):
        loss = kind.Config(weights=weights).build(names=NAMES, multiple=multiple)
        whole, count = loss(SCORES, targets)
        parts = [loss(SCORES[i::2], targets[i::2]) for i in range(2)]
        assert torch.allclose(whole, sum(total for total, _ in parts))
        assert torch.allclose(count.float(), sum(n.float() for _, n in parts))


@pytest.mark.parametrize(("kind", "multiple"), CASES)
def test_right_scores_cost_less_and_probabilities_are_such(kind, multiple):
    targets = MANY if multiple else ONE
    loss = kind.Config().build(names=NAMES, multiple=multiple)
    hot = MANY if multiple else F.one_hot(ONE, 3).float()
    good, bad = loss(10 * hot - 5, targets)[0], loss(5 - 10 * hot, targets)[0]
    assert good < 0.1 < bad
    shares = loss.probabilities(SCORES)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (loss.probabilities(10 * hot - 5).round() == hot).all()


def test_weights_are_those_of_torch():
    weights = torch.tensor([3.0, 1.0, 0.5])
    loss = CrossEntropyLoss.Config(weights={"a": 3.0, "c": 0.5}, label_smoothing=0.0)
    total, count = loss.build(names=NAMES, multiple=False)(SCORES, ONE)
    assert torch.allclose(total / count, F.cross_entropy(SCORES, ONE, weight=weights))
    total, count = BinaryCrossEntropy.Config(weights={"a": 3.0, "c": 0.5}).build(
        names=NAMES, multiple=True
    )(SCORES, MANY)
    expected = F.binary_cross_entropy_with_logits(SCORES, MANY, weight=weights)
    assert torch.allclose(total / count, expected)


def test_smoothing_is_that_of_torch():
    for weights in ({}, {"a": 1.0}):
        config = CrossEntropyLoss.Config(label_smoothing=0.2, weights=weights)
        total, count = config.build(names=NAMES, multiple=False)(SCORES, ONE)
        assert torch.allclose(total / count, F.cross_entropy(SCORES, ONE, label_smoothing=0.2))


def test_one_against_the_rest():
    total, count = BinaryCrossEntropy.Config().build(names=NAMES, multiple=False)(SCORES, ONE)
    hot = F.one_hot(ONE, 3).float()
    assert torch.allclose(total / count, F.binary_cross_entropy_with_logits(SCORES, hot))


def one(**settings):
    return CrossEntropyLoss.Config(**settings).build(names=NAMES, multiple=False)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: CrossEntropyLoss.Config().build(names=NAMES, multiple=True), "one label a row"),
        (lambda: one(label_smoothing=1.0), "label_smoothing"),
        (lambda: one(weights={"z": 1.0}), "names 'z'"),
        (lambda: one(weights=dict.fromkeys(NAMES, 0)), "0 for every label"),
        (lambda: one(weights={"a": -1.0}), "'a' must be 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, error):
    with pytest.raises(UserError, match=error):
        make()


def test_the_automatic_loss_is_the_one_that_fits_with_its_settings():
    config = AutoLoss.Config(weights={"a": 3.0}, label_smoothing=0.1)
    one = CrossEntropyLoss.Config(weights={"a": 3.0}, label_smoothing=0.1)
    for found, wanted in zip(
        config.build(names=NAMES, multiple=False)(SCORES, ONE),
        one.build(names=NAMES, multiple=False)(SCORES, ONE),
        strict=True,
    ):
        assert torch.equal(found, wanted)
    several = AutoLoss.Config(weights={"a": 3.0}).build(names=NAMES, multiple=True)
    assert isinstance(several, BinaryCrossEntropy)
    assert several.weights.tolist() == [3, 1, 1]
    with pytest.raises(UserError, match="label_smoothing is for one label"):
        config.build(names=NAMES, multiple=True)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_divergence_from_a_teacher_is_that_of_the_formula(temperature):
    """With scipy's relative entropy: over all labels, or over a label and its absence."""
    teacher = 3 * torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
    for kind, multiple in CASES:
        loss = kind.Config().build(names=NAMES, multiple=multiple)
        found = loss.divergence(SCORES, teacher, temperature)
        told, given = ((x.double() / temperature).numpy() for x in (teacher, SCORES))
        if kind is CrossEntropyLoss:
            parts = rel_entr(softmax(told, axis=1), softmax(given, axis=1)).sum(axis=1)
        else:
            p, q = expit(told), expit(given)
            parts = (rel_entr(p, q) + rel_entr(1 - p, 1 - q)).mean(axis=1)
        np.testing.assert_allclose(found.numpy(), temperature**2 * parts, rtol=1e-4)
        np.testing.assert_allclose(loss.divergence(teacher, teacher, temperature), 0, atol=1e-6)


@pytest.mark.parametrize(("kind", "multiple"), CASES)
def test_averaged_scores_have_the_mean_of_the_probabilities(kind, multiple):
    loss = kind.Config().build(names=NAMES, multiple=multiple)
    made = averaged_scores([loss] * 2, [SCORES, 9 * SCORES.flip(0)])
    wanted = (loss.probabilities(SCORES) + loss.probabilities(9 * SCORES.flip(0))) / 2
    torch.testing.assert_close(loss.probabilities(made), wanted)
    sure = loss.scores_of(loss.log_probabilities(torch.tensor([[200.0, -200.0, 0.0]])))
    assert sure.isfinite().all()
