"""Fixtures every room uses."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("WEFT_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no folder of real data at {DATA} (set WEFT_TEST_DATA)")
    return DATA
