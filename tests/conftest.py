"""Fixtures every room uses."""

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from textmill.runtime.disk import operations

# Threads of several processes wait for each other, and sums are those of programs that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch is not imported yet

# The same examples in each run: what fails, fails again. Their time on the wall says little where
# several processes share the machine.
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("textmill", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("textmill")

DATA = Path(os.environ.get("TEXTMILL_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no folder of real data at {DATA} (set TEXTMILL_TEST_DATA)")
    return DATA


CALLS = ("open", "write", "fsync", "truncate", "rename", "mkdir")


class FailingDisk:
    """A disk of which the k-th call fails: the method of SQLite's tests.

    Counts the calls that change the disk and fails the k-th, once or from there on.
    """

    def __init__(self, k: int, code: int = errno.ENOSPC, *, lasting: bool = False) -> None:
        self.k, self.code, self.lasting = k, code, lasting
        self.count = 0
        self.failed: str | None = None

    def wrap(self, name: str, call: Callable) -> Callable:
        def counted(*arguments: object) -> object:
            self.count += 1
            if self.count == self.k or (self.lasting and self.count > self.k):
                self.failed = name
                if name == "write":  # a full disk takes the first bytes of a write
                    half = memoryview(arguments[1])[: len(arguments[1]) // 2]
                    if len(half) and self.count == self.k:
                        call(arguments[0], half, arguments[2])
                raise OSError(self.code, os.strerror(self.code))
            return call(*arguments)

        return counted


@pytest.fixture
def failing_disk() -> Callable:
    """A context manager that makes a disk whose k-th call fails."""

    @contextmanager
    def failing(
        k: int, code: int = errno.ENOSPC, *, lasting: bool = False
    ) -> Iterator[FailingDisk]:
        disk = FailingDisk(k, code, lasting=lasting)
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(operations, name, disk.wrap(name, getattr(operations, name)))
            yield disk

    return failing


@pytest.fixture(autouse=True)
def quiet_logger() -> None:
    """Takes back the handler that a command gave to textmill's logger: each test starts without.

    At the start, since a fixture of a whole module may have run a command.
    """
    logger = logging.getLogger("textmill")
    logger.handlers[:] = [
        handler for handler in logger.handlers if handler.name != "textmill-stderr"
    ]
    logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No power fails while the tests run: waiting for the disk is half of a tiny run's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real call, for what is tested with it."""
    monkeypatch.setattr(operations, "fsync", type(operations).fsync.__get__(operations))


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the stores of the person who runs it; programs it starts neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTMILL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Names that are not UTF-8 are in the log of some tests; what reports exchange has to be."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report
