"""Freed memory stays with the process where glibc can be told so."""

import platform
import subprocess
import sys

import pytest

from weft.runtime.memory import keep_memory

FAULTS = """
import resource, numpy
from weft.runtime.memory import keep_memory
if {keep}: keep_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3): numpy.ones(2_000_000)
before = faults()
for _ in range(20): numpy.ones(2_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_a_block_of_16_mb_is_not_mapped_anew():
    def faults(keep: bool) -> int:
        done = subprocess.run(
            [sys.executable, "-c", FAULTS.format(keep=keep)], capture_output=True, check=True
        )
        return int(done.stdout)

    assert faults(keep=True) < 100


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_memory() is False
