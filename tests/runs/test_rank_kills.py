"""Some of the kills of which ``python -m tests.runs.rank_kills`` prints a table."""

import pytest

from tests.runs.many_ranks import RankedRuns
from tests.runs.rank_kills import Campaign


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "moment"),
    [("by hand", "while reading"), ("--nproc", "in a save"), ("torchrun", "in an evaluation")],
)
def test_a_rank_is_killed_and_the_run_is_the_undisturbed_one(tmp_path, way, moment):
    with RankedRuns() as runs:
        tried = Campaign(tmp_path, runs, seed=1).attempt(way, moment)
    assert tried.wrong == [], tried.line
    assert tried.named in ("log.txt", "stderr")
    assert tried.seconds < 30
