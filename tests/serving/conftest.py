"""One browser for the tests of a page."""

import pytest

from tests.serving.browser import Browser


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()
