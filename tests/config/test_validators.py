"""What numbers must be."""

import math
import re

import pytest

from textmill.config.component import Config
from textmill.config.validators import require
from textmill.errors import UserError


class Numbers(Config):
    size: int | None = 1
    rate: float = 1.0
    decay: float = 0.0
    betas: tuple[float, float] = (0.0, 0.9)

    def __post_init__(self):
        require(
            self, "thing", sizes=["size"], positive=["rate"], not_negative=["decay"],
            shares=["betas"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"size": 0}, "thing.size must be at least 1, but is 0."),
        ({"rate": 0.0}, "thing.rate must be positive, but is 0.0."),
        ({"rate": math.inf}, "thing.rate must be positive, but is inf."),
        ({"decay": -1e-9}, "thing.decay must be at least 0, but is -1e-09."),
        ({"decay": math.nan}, "thing.decay must be at least 0, but is nan."),
        ({"betas": (0.9, 1.0)}, "thing.betas must be from 0 to below 1, but is (0.9, 1.0)."),
        ({"betas": (-0.1, 0.5)}, "thing.betas must be from 0 to below 1, but is (-0.1, 0.5)."),
    ],
)
def test_what_is_out_of_its_range_is_refused(given, text):
    with pytest.raises(UserError, match=f"^{re.escape(text)}$"):
        Numbers(**given)


def test_what_is_none_and_what_is_at_the_border_is_taken():
    Numbers(size=None, rate=5e-324, decay=1e300, betas=(0.0, math.nextafter(1.0, 0.0)))
