"""Memory: what this process has held, what is free, and what is kept for the next step."""

import ctypes
import os
import platform
import resource
import sys
from contextlib import suppress
from pathlib import Path


def peak_resident() -> int:
    """The most bytes that this process has held so far.

    Linux gives a process that another one started the peak of its parent before it, in ``rusage``:
    there it is read from the kernel's page on this process.
    """
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cuda_room(device: str) -> int:
    """Bytes that this process can still take: what is free, and what torch has in reserve."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def held_words(device: str) -> str:
    """What has been held so far, and what is free: on CUDA by torch, else by all processes."""
    if device.startswith("cuda"):
        import torch

        held = as_size(torch.cuda.max_memory_allocated(device))
        return f"at most {held} of CUDA memory so far, {as_size(cuda_room(device))} free"
    known, group = [], Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError, IndexError):  # macOS has neither
        available = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2]
        known.append(int(available.split()[0]) * 1024)
    with suppress(OSError, ValueError):  # the limit of a container; "max" is no number
        most, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        known.append(max(0, int(most) - int(used)))
    free_words = f", {as_size(min(known))} free" if known else ""
    return f"at most {as_size(peak_resident())} so far{free_words}"


def as_size(count: int) -> str:
    """Bytes as people read them.

    Example:
        >>> as_size(1_500), as_size(2_340_000_000)
        ('0.0 MB', '2.3 GB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 999_950_000 else f"{count / 1e6:,.1f} MB"


def keep_memory() -> None:
    """Lets glibc keep what is freed, for the process; calling it again does no harm.

    By its own choice glibc asks the kernel for each large block anew and gives it back when it is
    freed. A training step on a CPU frees and asks for the same tensors hundreds of times, and
    every page of them is cleared and mapped again: 10,000 to 20,000 page faults a step of 2,048
    tokens. Blocks up to 32 MB then come from the heap, whose end is given back no more; larger ones
    come and go as before.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    trim, top_pad, mmap = -1, -2, -3  # of malloc.h: part of glibc's binary interface
    for name, value in ((mmap, 32 * 2**20), (trim, 2**31 - 1), (top_pad, 64 * 2**20)):
        mallopt(name, value)


def few_kernels() -> None:
    """Has oneDNN, torch's library for CPUs, keep few of the kernels that it makes, from here on.

    It makes one for each shape and keeps 1,024, with their memory, and texts to answer have other
    lengths in each batch: in 8,000 references a tagger's process came to 650 MB, and so comes to
    450 in the same time. No effect if the environment has a number, or torch has computed.
    """
    # 64 are more than a pass through a tagger has of shapes: it is as fast as with 1,024.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
