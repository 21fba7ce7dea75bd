"""Calibration against scipy, the formula of the paper, and simulated rows."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import beta

from textmill.metrics.calibration import (
    DOUBT,
    LOWEST,
    CalibrationError,
    fit_temperature,
    rows_needed,
    threshold,
)
from textmill.metrics.metric import MetricError

RANDOM = np.random.default_rng(5)


def test_the_error_is_the_formula_of_the_paper():
    scores = np.append(RANDOM.uniform(0, 1, 400), [0, 1, 1 / 15, 0.2])
    right = RANDOM.random(len(scores)) < scores**2
    metric = CalibrationError()
    metric.update(scores.tolist(), right.tolist())
    wanted, rows = 0.0, 0
    for m in range(1, 16):  # B_m are the scores in ((m - 1) / M, m / M]
        inside = (scores > (m - 1) / 15) & (scores <= m / 15) | ((m == 1) & (scores == 0))
        if inside.any():
            gap = abs(right[inside].mean() - scores[inside].mean())
            wanted += inside.sum() / len(scores) * gap
            rows += inside.sum()
    assert rows == len(scores)
    assert metric.compute() == {"calibration_error": pytest.approx(wanted, abs=1e-11)}
    table = metric.table()
    assert sum(count for _, _, count, _, _ in table) == len(scores)
    assert all(low <= mean <= high for low, high, _, mean, _ in table)


def test_without_rows_or_with_a_score_that_is_none_there_is_no_error():
    metric = CalibrationError()
    assert math.isnan(metric.compute()["calibration_error"])
    metric.update([0.5, math.nan], [True, True])
    assert math.isnan(metric.compute()["calibration_error"])
    with pytest.raises(MetricError, match="1 and 2 of them"):
        metric.update([0.5], [True, True])


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_the_temperature_is_that_of_scipy(independent, scale):
    scores = RANDOM.normal(0, 2, (300, 4))
    if independent:
        right = (RANDOM.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(float)
    else:
        chances = np.exp(log_softmax(scores, axis=1))
        right = np.eye(4)[[RANDOM.choice(4, p=row) for row in chances]]
    scores = scores * scale

    def loss(inverse):
        raised = scores * inverse
        if independent:
            return (np.logaddexp(0, raised) - right * raised).sum()
        return -(log_softmax(raised, axis=1) * right).sum()

    best = minimize_scalar(loss, bounds=(0.01, 100), method="bounded", options={"xatol": 1e-9})
    found = fit_temperature(scores, right, independent=independent)
    assert found == pytest.approx(1 / best.x, rel=1e-4)
    assert loss(1 / found) <= best.fun * (1 + 1e-12)


def test_if_every_answer_is_right_the_temperature_is_the_lowest():
    assert fit_temperature(np.eye(3), np.eye(3), independent=False) == pytest.approx(LOWEST)


def test_a_threshold_keeps_the_bound_of_clopper_and_pearson():
    scores = RANDOM.uniform(0.5, 1, 2000).round(3)  # some are equal
    right = RANDOM.random(2000) < scores
    bound = threshold(scores, right, 0.9)
    kept = scores > bound
    assert beta.ppf(DOUBT, right[kept].sum(), (kept & ~right).sum() + 1) >= 0.9
    wider = scores > np.sort(scores)[::-1][int(kept.sum() * 1.3)]
    assert beta.ppf(DOUBT, right[wider].sum(), (wider & ~right).sum() + 1) < 0.9


def test_a_threshold_needs_enough_rows_and_may_be_that_of_all():
    least = rows_needed(0.9)
    assert 0.9**least <= DOUBT < 0.9 ** (least - 1)
    scores = RANDOM.uniform(0.5, 1, least)
    assert threshold(scores, np.ones(least, bool), 0.9) == 0.0
    assert threshold(scores[1:], np.ones(least - 1, bool), 0.9) is None
    assert threshold(scores, np.arange(least) > 0, 0.9) is None
    assert threshold(np.ones(500), RANDOM.random(500) < 0.5, 0.9) is None


@pytest.mark.parametrize("rows", [100, 1000])
def test_the_precision_holds_on_other_rows(rows):
    """Scores that say how often an answer is right; and, as bad as can be, scores that do not."""
    missed = flat = 0
    for _ in range(300):
        scores = RANDOM.uniform(0.5, 1, rows)
        bound = threshold(scores, RANDOM.random(rows) < scores, 0.8)
        missed += bound is not None and (1 + max(bound, 0.5)) / 2 < 0.8  # known of these rows
        flat += threshold(scores, RANDOM.random(rows) < 0.799, 0.8) is not None
    assert missed <= 0.05 * 300
    assert flat <= 0.08 * 300  # 5 %, with its error
