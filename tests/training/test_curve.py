"""The committed loss curves are reproduced to the last digit; a change of them is a decision."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CURVES = Path(__file__).parent / "curves"
LINES = 21  # what the digits depend on, and 20 losses


PATHS = ("fast", "plain")


@pytest.fixture(scope="module")
def curves():
    """The curves of this machine, from a process with one thread."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.curve", *PATHS], capture_output=True, text=True,
        check=True, cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * LINES
    return dict(zip(PATHS, (lines[:LINES], lines[LINES:]), strict=True))


@pytest.mark.parametrize("paths", PATHS)
def test_the_committed_curve(curves, paths):
    """To renew one: ``OMP_NUM_THREADS=1 python -m tests.training.curve PATHS > CURVE``."""
    wanted = (CURVES / f"translation_tiny_{paths}.txt").read_text().splitlines()
    found = curves[paths]
    if found[0] != wanted[0]:  # the last digits are of this torch on this kind of CPU
        pairs = zip(wanted[1:], found[1:], strict=True)
        for one, other in pairs:
            assert float(other.split()[1]) == pytest.approx(float(one.split()[1]), rel=1e-3)
        return
    assert found == wanted
