"""Freed memory stays with the process where glibc can be told so."""

import os
import platform
import subprocess
import sys

import pytest

from textmill.runtime.memory import KERNELS, few_kernels, keep_memory

FAULTS = """
import resource, numpy
from textmill.runtime.memory import keep_memory
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


GROWN = """
import torch
from textmill.runtime.memory import few_kernels, resident
if {few}: few_kernels()
torch.manual_seed(0)
lstm = torch.nn.LSTM(128, 128, bidirectional=True).eval()
def answer(lengths):
    with torch.inference_mode():
        for length in lengths: lstm(torch.ones(length, 16, 128))
answer(range(300, 360))
before = resident()
answer(range(20, 300))
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.system() != "Linux", reason="other systems tell no memory in use")
def test_texts_of_other_lengths_leave_no_kernels_behind():
    def grown(few: bool) -> int:
        here = {name: value for name, value in os.environ.items() if name != KERNELS}
        words = [sys.executable, "-c", GROWN.format(few=few)]
        return int(subprocess.run(words, capture_output=True, check=True, env=here).stdout)

    assert grown(few=True) < 0.5 * grown(few=False)


def test_a_number_of_kernels_that_the_environment_has_stays(monkeypatch):
    monkeypatch.setenv(KERNELS, "7")
    few_kernels()
    assert os.environ[KERNELS] == "7"
    monkeypatch.delenv(KERNELS)
    few_kernels()
    assert os.environ[KERNELS] == "64"
