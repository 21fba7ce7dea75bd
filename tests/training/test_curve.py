"""The committed loss curve is reproduced to the last digit; a change of it is a decision."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CURVE = Path(__file__).parent / "curves" / "translation_tiny.txt"


def test_the_committed_curve():
    """To renew it: ``OMP_NUM_THREADS=1 python -m tests.training.curve > CURVE``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.curve"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    wanted, found = CURVE.read_text().splitlines(), done.stdout.splitlines()
    assert len(found) == 21
    if found[0] != wanted[0]:  # the last digits are of this torch on this kind of CPU
        pairs = zip(wanted[1:], found[1:], strict=True)
        for one, other in pairs:
            assert float(other.split()[1]) == pytest.approx(float(one.split()[1]), rel=1e-3)
        return
    assert found == wanted
