"""One browser for all pictures."""

from collections.abc import Iterator

import pytest

from tests.serving.browser import Browser, missing


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser | None]:
    """None where no Chromium is installed."""
    made = None if missing() else Browser()
    yield made
    if made:
        made.close()
