"""Submodules by the same name, one level out or in; and nothing that could be two things."""

import pytest
import torch

from textmill.training.initial_weights import moved_modules


def state(**shapes):
    return {name.replace("__", "."): torch.zeros(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (state(encoder__w=2), state(text__encoder__w=2), {"encoder": "text.encoder"}),
        (state(text__encoder__w=2), state(encoder__w=2), {"text.encoder": "encoder"}),
        (state(a__encoder__layers__w=2), state(encoder__layers__w=2), {"a.encoder": "encoder"}),
        # What has its own name there is nowhere else, whatever its shape.
        (state(encoder__w=2), state(text__encoder__w=2, encoder__w=3), {}),
        # One of another shape is found, and then not taken.
        (state(encoder__w=2), state(text__encoder__w=3), {"encoder": "text.encoder"}),
        # Of two places none is taken.
        (state(encoder__w=2), state(one__encoder__w=2, two__encoder__w=2), {}),
        (
            state(encoder__w=2),
            state(one__encoder__w=2, two__encoder__w=9),
            {"encoder": "one.encoder"},
        ),
        # A tensor alone is no submodule, and two levels are too far.
        (state(mask=2), state(text__mask=2), {}),
        (state(a__b__encoder__w=2), state(encoder__w=2), {}),
        ({}, state(encoder__w=2), {}),
    ],
)
def test_where_a_submodule_is_found(here, there, expected):
    assert moved_modules(here, there) == expected
