"""What a process holds and can still take, and what it keeps for its next step."""

import os
import platform
import re
import subprocess
import sys

import pytest

from textmill.runtime.memory import held_words, peak_resident

MB = 1 << 20


def test_what_was_held_and_what_is_free_is_told():
    found = re.fullmatch(r"at most ([\d.]+) (M|G)B so far, [\d,.]+ (M|G)B free", held_words("cpu"))
    assert float(found[1]) * {"M": 1, "G": 1000}[found[2]] == pytest.approx(
        peak_resident() / 1e6, rel=0.2
    )


@pytest.mark.skipif(sys.platform != "linux", reason="what others' kernels give is their own")
def test_the_peak_is_not_that_of_the_process_that_started_this_one():
    held = bytearray(b"x") * (300 * MB)
    text = "from textmill.runtime.memory import peak_resident; print(peak_resident())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert int(done.stdout) < len(held)


KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
FAULTS = """
import resource, numpy
from textmill.runtime.memory import keep_memory
keep_memory()
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step(): [numpy.ones(2_000_000) for _ in range(4)]  # one alone glibc keeps by itself
for _ in range(3): step()
before = faults()
for _ in range(20): step()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_blocks_of_16_mb_are_not_mapped_anew():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, check=True)
    assert int(done.stdout) < 100


GROWN = """
import torch
from textmill.runtime.memory import few_kernels
if {few}: few_kernels()
torch.manual_seed(0)
lstm = torch.nn.LSTM(128, 128, bidirectional=True).eval()
def answer(lengths):
    with torch.inference_mode():
        for length in lengths: lstm(torch.ones(length, 16, 128))
answer(range(300, 360))
def resident(): return 4096 * int(open("/proc/self/statm").read().split()[1])
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
