"""The server of all runs that are forked."""

import pytest

from tests.runs.many_ranks import RankedRuns, ranked_runs


@pytest.fixture(scope="session")
def runs() -> RankedRuns:
    return ranked_runs()
