"""Where the services of these tests keep what they are given."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def trackio_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One database for all tests: trackio looks for its place only once, when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(tmp_path_factory.mktemp("trackio")))
        yield
