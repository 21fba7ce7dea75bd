"""What a process holds and can still take, and what it keeps for its next step."""

import os
import platform
import subprocess
import sys

import pytest

from textmill.runtime.memory import (
    host_room,
    room,
)

MB = 1 << 20


@pytest.fixture
def system(tmp_path):
    """A machine with 100 MB available; a function gives one of its control groups a limit."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 999999 kB\nMemAvailable: 102400 kB\n")
    (proc / "self" / "cgroup").write_text("0::/jobs/mine\n")

    def limit(path, most, used, cache=0, *, version=2):
        folder = groups / path
        folder.mkdir(parents=True, exist_ok=True)
        names = ("memory.max", "memory.current", "inactive_file")
        if version == 1:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        (folder / names[0]).write_text(f"{most}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cache}\n")

    return proc, groups, limit


def test_without_a_limit_it_is_what_the_kernel_has(system):
    proc, groups, limit = system
    assert host_room(proc, groups) == 100 * MB
    limit("jobs/mine", "max", 7 * MB)
    assert host_room(proc, groups) == 100 * MB
    limit("jobs/mine", 10**12, 7 * MB)
    assert host_room(proc, groups) == 100 * MB


def test_a_limit_of_the_group_or_of_one_around_it_counts_and_cache_is_free(system):
    proc, groups, limit = system
    limit("jobs/mine", 60 * MB, 20 * MB, 5 * MB)
    assert host_room(proc, groups) == 45 * MB
    limit("jobs", 30 * MB, 10 * MB)
    assert host_room(proc, groups) == 20 * MB
    limit("", 15 * MB, 20 * MB)
    assert host_room(proc, groups) == 0


def test_groups_of_version_1_have_a_folder_of_their_own_and_a_number_for_no_limit(system):
    proc, groups, limit = system
    (proc / "self" / "cgroup").write_text("9:cpu:/jobs\n4:memory:/jobs/mine\n0::/\n")
    limit("memory/jobs/mine", 9223372036854771712, MB, version=1)
    limit("cpu/jobs", MB, 0, version=1)
    assert host_room(proc, groups) == 100 * MB
    limit("memory/jobs/mine", 50 * MB, 20 * MB, 6 * MB, version=1)
    assert host_room(proc, groups) == 36 * MB


def test_a_system_that_does_not_say_is_not_known(tmp_path):
    assert host_room(tmp_path / "proc", tmp_path) is None
    assert room("mps") is None


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
