"""Where the services of these tests keep what they are given."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def trackio_folder(tmp_path_factory):
    """One database for all tests: trackio looks for its place only once, when it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(tmp_path_factory.mktemp("trackio")))
        yield


@pytest.fixture(autouse=True)
def quiet_services(monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the store that needs no server
    monkeypatch.setenv("WANDB_MODE", "offline")
