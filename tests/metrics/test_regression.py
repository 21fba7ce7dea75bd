import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from textmill.metrics.metric import MetricError
from textmill.metrics.regression import Regression


def scored(gold, predicted):
    metric = Regression()
    metric.update(gold, predicted)
    return metric.compute()


@pytest.mark.parametrize("digits", [0, 1, 6])  # 0: many ties
@pytest.mark.parametrize("rows", [3, 50])
def test_as_scipy_and_scikit_learn(digits, rows):
    chance = random.Random(rows + digits)
    gold = [round(chance.gauss(0, 3), digits) for _ in range(rows - 1)] + [9.0]
    predicted = [round(g + chance.gauss(0, 2), digits) for g in gold[:-1]] + [8.0]
    values = scored(gold, predicted)
    assert values["mse"] == pytest.approx(oracle.mean_squared_error(gold, predicted))
    assert values["mae"] == pytest.approx(oracle.mean_absolute_error(gold, predicted))
    assert values["r2"] == pytest.approx(oracle.r2_score(gold, predicted))
    assert values["pearson"] == pytest.approx(stats.pearsonr(gold, predicted).statistic)
    assert values["spearman"] == pytest.approx(stats.spearmanr(gold, predicted).statistic)


def test_far_from_zero_nothing_is_lost():
    # In float64, sums of squares near 1e16 would leave nothing of these differences.
    near = [1.0, 2.0, 4.0, 3.0]
    values = scored([1e8 + x for x in near], [1e8 + 2 * x for x in near])
    assert values["pearson"] == 1.0
    assert values["mse"] == statistics.mean(x**2 for x in near)


@given(st.lists(st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)), min_size=1))
def test_correlations_stay_in_their_range(rows):
    values = scored([a for a, _ in rows], [b for _, b in rows])
    for name in ("pearson", "spearman"):
        assert math.isnan(values[name]) or -1 <= values[name] <= 1
    assert not math.isnan(values["mse"])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_prediction_that_is_no_number_makes_no_value(bad):
    metric = Regression()
    metric.update([1.0, 2.0, 3.0], [1.0, bad, 3.0])
    assert all(math.isnan(value) for value in metric.compute().values())
    assert metric.details()["mse"] == "1 of 3 predictions are not finite"


def test_a_right_number_that_is_none_adds_nothing():
    metric = Regression()
    with pytest.raises(MetricError, match="row 2 of 2 must be finite, but is nan"):
        metric.update([1.0, math.nan], [1.0, 1.0])
    assert math.isnan(metric.compute()["mse"])
