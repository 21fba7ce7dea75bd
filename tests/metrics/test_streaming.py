import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from textmill.metrics.metric import MetricError
from textmill.metrics.streaming import ExactSum, Mean, Perplexity

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE), st.randoms())
def test_a_sum_is_exact_in_any_order(values, chance):
    total, shuffled = ExactSum(), ExactSum()
    for value in values:
        total.add(value)
    for value in chance.sample(values, len(values)):
        shuffled.add(torch.tensor(value, dtype=torch.float64))
    assert total.exact() == shuffled.exact() == sum(map(Fraction, values), Fraction(0))


def test_more_scalars_than_are_kept_waiting():
    mean = Mean("x")
    for i in range(3000):
        mean.update(torch.tensor(float(i)), torch.tensor(1))
    assert mean.compute() == {"x": 1499.5}


def test_scalars_of_several_dtypes_and_shapes_mix():
    mean = Mean("x")
    mean.update(torch.tensor([1.5], dtype=torch.bfloat16), torch.tensor([[1]]))
    mean.update(torch.tensor(2.5, dtype=torch.float64), 1)
    mean.update(2, True)
    assert mean.compute() == {"x": 2.0}


def test_a_tensor_changed_afterwards_does_not_change_the_sum():
    total = torch.tensor(4.0)
    mean = Mean("x")
    mean.update(total, 2)
    total += 100
    assert mean.compute() == {"x": 2.0}


def test_update_reads_no_tensor(monkeypatch):
    def refuse(*_):
        raise AssertionError("this would wait for the device")

    mean = Mean("x")
    with monkeypatch.context() as patch:
        for name in ("item", "tolist", "__float__", "__int__", "__bool__", "cpu"):
            patch.setattr(torch.Tensor, name, refuse)
        mean.update(torch.tensor(3.0), torch.tensor(2))
    assert mean.compute() == {"x": 1.5}


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_stays(special):
    mean = Mean("x")
    mean.update(torch.tensor(special), 1)
    mean.update(5.0, 1)
    value = mean.compute()["x"]
    assert math.isnan(value) if math.isnan(special) else value == special


@pytest.mark.parametrize("sign", [1, -1])
def test_a_mean_beyond_the_largest_float_is_infinite(sign):
    mean = Mean("x")
    for _ in range(4):
        mean.update(sign * 1e308, 0.25)
    assert mean.compute() == {"x": sign * math.inf}


def test_a_count_of_zero_is_not_a_number():
    mean = Mean("x")
    mean.update(3.0, 0)
    assert math.isnan(mean.compute()["x"])
    mean.update(math.inf, 0)
    assert math.isnan(mean.compute()["x"])


def test_perplexity_overflows_to_infinity():
    perplexity = Perplexity()
    perplexity.update(1000.0, 1)
    assert perplexity.compute() == {"perplexity": math.inf}
    perplexity.update(math.nan, 1)
    assert math.isnan(perplexity.compute()["perplexity"])


def test_perplexity_agrees_with_torch():
    torch.manual_seed(3)
    logits, targets = torch.randn(50, 7), torch.randint(0, 7, (50,))
    perplexity = Perplexity("ppl")
    for x, y in zip(logits.split(8), targets.split(8), strict=True):
        nll = torch.nn.functional.cross_entropy(x, y, reduction="sum")
        perplexity.update(nll, len(y))
    expected = torch.nn.functional.cross_entropy(logits, targets).exp().item()
    assert perplexity.compute()["ppl"] == pytest.approx(expected, rel=1e-6)


def test_a_vector_is_refused():
    with pytest.raises(MetricError, match=r"the shape \[2, 3\]"):
        Mean("x").update(torch.zeros(2, 3), 1)
