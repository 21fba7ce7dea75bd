import math

import pytest

from textmill.metrics.tables import format_duration, format_value, values_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.00070711, "0.0007071"), (0.05, "0.05000"), (-3.14159, "-3.142"),
        (999.96, "1,000"), (25315.2, "25,315"), (1.5e12, "1.500e+12"), (6120000, "6,120,000"),
        (True, "True"), ("cpu", "cpu"),
    ],
)  # fmt: skip
def test_values(value, text):
    assert format_value("x", value) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("token_accuracy", 0.6123, "61.2 %"),
        ("label/ham/recall_at_precision/0.9", 1.0, "100.0 %"),
        ("whole_sentence", 0.3518, "35.2 %"),
        ("precision", math.nan, "-"),
        ("mcc", 0.5, "0.5000"),
        ("accuracy", 1, "1"),
        ("rouge_loss", 0.23, "0.2300"),  # no kind of rouge
        ("rougeLsum", 0.23, "23.0 %"),
        ("valid.f1", 0.23, "23.0 %"),
        ("halff1", 0.23, "0.2300"),
        ("f1", 12.0, "12.00"),  # of a hundred already
        ("f1", -1.0, "-100.0 %"),  # a difference
        ("f1", 1.0000001, "100.0 %"),
    ],
)
def test_shares_are_percent_and_other_values_as_they_are(name, value, text):
    assert format_value(name, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"), (59.9, "59s"), (599, "9m 59s"), (3600, "1h 00m"), (86399, "23h 59m"),
        (86400, "1d 00h"), (math.inf, "?"), (math.nan, "?"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert format_duration(seconds) == text


def test_values_alone():
    assert values_table({"loss": 2.5, "accuracy": 0.5}) == (
        "value     result\nloss       2.500\naccuracy  50.0 %"
    )


def test_a_value_that_is_not_a_number_lines_up():
    table = values_table({"loss": float("nan"), "perplexity": float("inf")})
    assert table.splitlines()[1:] == ["loss           nan", "perplexity     inf"]
