"""Settings of a search that cannot work are refused."""

import pytest

from textmill.errors import UserError
from textmill.models.decoding import Decoding

INF = float("inf")


@pytest.mark.parametrize(
    ("named", "settings"),
    [
        ("n_best", {"beam_size": 2, "n_best": 3}),
        ("n_best", {"beam_size": 0}),
        ("n_best", {"sample": True, "n_best": 0}),
        ("n_best", {"sample": True, "n_best": 1001}),
        ("beam_size", {"beam_size": 1001}),
        ("length_penalty", {"length_penalty": 500.0}),
        ("length_penalty", {"length_penalty": float("nan")}),
        ("max_length_a", {"max_length_a": -1.0}),
        ("min_length", {"min_length": -1}),
        ("no_repeat_ngram", {"no_repeat_ngram": -2}),
        ("repetition_penalty", {"repetition_penalty": 0.0}),
        ("unknown_penalty", {"unknown_penalty": -INF}),
        ("temperature", {"sample": True, "temperature": float("nan")}),
        ("top_k", {"sample": True, "top_k": -1}),
        ("top_p", {"sample": True, "top_p": 1.5}),
        ("sample", {"sample": True, "beam_size": 4}),
        ("top_p=0.9 is for drawn", {"top_p": 0.9}),
        ("early_stopping=first is for beams", {"early_stopping": "first"}),
    ],
)
def test_settings_that_cannot_work_are_refused(named, settings):
    with pytest.raises(UserError, match=f"decoding.{named}"):
        Decoding(**settings)
