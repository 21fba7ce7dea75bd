"""Settings of a search that cannot work are refused."""

import pytest

from textmill.errors import UserError
from textmill.models.decoding import Decoding

INF = float("inf")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"beam_size": 2, "n_best": 3},
            "decoding.n_best must be from 1 to beam_size, but is 3 of 2.",
        ),
        ({"beam_size": 0}, "decoding.n_best must be from 1 to beam_size, but is 1 of 0."),
        (
            {"sample": True, "n_best": 0},
            "decoding.n_best must be from 1 up, but is 0.",
        ),
        (
            {"sample": True, "n_best": 1001},
            "decoding.n_best must be at most 1000, but is 1001.",
        ),
        ({"beam_size": 1001}, "decoding.beam_size must be at most 1000, but is 1001."),
        (
            {"length_penalty": 500.0},
            "decoding.length_penalty must be from -5 to 5 (0 to 2 are usual), but is 500.0.",
        ),
        (
            {"length_penalty": -5.1},
            "decoding.length_penalty must be from -5 to 5 (0 to 2 are usual), but is -5.1.",
        ),
        (
            {"length_penalty": INF},
            "decoding.length_penalty must be from -5 to 5 (0 to 2 are usual), but is inf.",
        ),
        (
            {"length_penalty": float("nan")},
            "decoding.length_penalty must be from -5 to 5 (0 to 2 are usual), but is nan.",
        ),
        (
            {"max_length_a": -1.0},
            "decoding.max_length_a must be at least 0 and max_length_b at least 1, "
            "but they are -1.0 and 10.",
        ),
        ({"min_length": -1}, "decoding.min_length must be at least 0, but is -1."),
        ({"no_repeat_ngram": -2}, "decoding.no_repeat_ngram must be at least 0, but is -2."),
        (
            {"repetition_penalty": 0.0},
            "decoding.repetition_penalty must be positive, but is 0.0.",
        ),
        (
            {"unknown_penalty": -INF},
            "decoding.unknown_penalty must be a number or .inf, but is -inf.",
        ),
        (
            {"sample": True, "temperature": float("nan")},
            "decoding.temperature must be positive, but is nan.",
        ),
        ({"sample": True, "top_k": -1}, "decoding.top_k must be at least 0, but is -1."),
        (
            {"sample": True, "top_p": 1.5},
            "decoding.top_p must be over 0 and at most 1, but is 1.5.",
        ),
        (
            {"sample": True, "beam_size": 4},
            "decoding.sample draws single sequences: leave decoding.beam_size 1 (it is 4); "
            "decoding.n_best is how many are drawn.",
        ),
        (
            {"top_p": 0.9},
            "decoding.top_p=0.9 is for drawn tokens only; set decoding.sample=true with it, "
            "or leave it out.",
        ),
        (
            {"early_stopping": "first"},
            "decoding.early_stopping=first is for beams only; set decoding.beam_size with it "
            "(4 or 5 are usual), or leave it out.",
        ),
        (
            {"early_stopping": "never", "sample": True},
            "decoding.early_stopping=never is for beams only; set decoding.beam_size with it "
            "(4 or 5 are usual), or leave it out.",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(UserError) as error:
        Decoding(**settings)
    assert str(error.value) == message
