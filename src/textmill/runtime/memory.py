"""Memory: what this process holds, what it can still take, and what is kept for the next step."""

import ctypes
import os
import platform
import resource
import sys
from collections.abc import Iterator
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


def room(device: str) -> int | None:
    """Bytes that this process can still take on a device as torch names it; None: not known.

    Of a CUDA device that is what is free and what torch has in reserve, as it is now.
    """
    kind = device.partition(":")[0]
    if kind == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(device)
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + reserve
    return host_room() if kind == "cpu" else None


def held_words(device: str) -> str:
    """What has been held so far, and what can still be taken: on CUDA by torch, else by all."""
    held, of = peak_resident(), ""
    if device.startswith("cuda"):
        import torch

        held, of = torch.cuda.max_memory_allocated(device), " of CUDA memory"
    left = room(device if of else "cpu")
    return f"at most {as_size(held)}{of} so far" + (
        "" if left is None else f", {as_size(left)} free"
    )


def as_size(count: int) -> str:
    """Bytes as people read them.

    Example:
        >>> as_size(1_500), as_size(2_340_000_000)
        ('0.0 MB', '2.3 GB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 999_950_000 else f"{count / 1e6:,.1f} MB"


def host_room(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that this process can still take without swapping or being killed.

    The least of what the kernel has available and what the process's control groups leave it: a
    container and a batch job have such a limit. Cache of files is given back where it is needed,
    so that it counts as free. Control groups may be of version 2 or 1.

    Returns:
        The bytes, 0 or more; None where the system does not say (macOS).
    """
    known = []
    with suppress(OSError):
        lines = (proc / "meminfo").read_text().splitlines()
        found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        known += [int(found[0]) * 1024] if found else []
    known += [left for folder in _groups_of(proc, groups) if (left := _left(folder)) is not None]
    return max(0, min(known)) if known else None


def _groups_of(proc: Path, groups: Path) -> Iterator[Path]:
    """The folders of the control groups around this process, its own first.

    Inside a container its own path may not be there; its limit then is that of the root.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        if names and "memory" not in names.split(","):
            continue
        root = groups / "memory" if names else groups
        folder = root / path.strip("/")
        yield folder
        while folder != root:
            folder = folder.parent
            yield folder


def _left(folder: Path) -> int | None:
    """What the limit of a control group leaves; None: it has no limit."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most = int((folder / limit).read_text())  # "max" is no number: no limit
            if most >= 1 << 60:  # none: version 1 has some 2**63 for it
                continue
            facts = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
            idle = sum(int(value) for name, value in facts if name == cache)
            return most - int((folder / used).read_text()) + idle
        except (OSError, ValueError):
            continue
    return None


def keep_memory() -> bool:
    """Lets glibc keep what is freed, for the process.

    By its own choice glibc asks the kernel for each large block anew and gives it back when it is
    freed. A training step on a CPU frees and asks for the same tensors hundreds of times, and
    every page of them is cleared and mapped again: 10,000 to 20,000 page faults a step of 2,048
    tokens. Blocks up to 32 MB then come from the heap, whose end is given back no more; larger ones
    come and go as before.

    Returns:
        Whether it was done: on glibc only. Calling it again does no harm.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    trim, top_pad, mmap = -1, -2, -3  # of malloc.h: part of glibc's binary interface
    settings = ((mmap, 32 * 2**20), (trim, 2**31 - 1), (top_pad, 64 * 2**20))
    answers = [mallopt(name, value) for name, value in settings]
    return all(answer == 1 for answer in answers)


def few_kernels() -> None:
    """Has oneDNN, torch's library for CPUs, keep few of the kernels that it makes, from here on.

    It makes one for each shape and keeps 1,024, with their memory, and texts to answer have other
    lengths in each batch: in 8,000 references a tagger's process came to 650 MB, and so comes to
    450 in the same time. No effect if the environment has a number, or torch has computed.
    """
    # 64 are more than a pass through a tagger has of shapes: it is as fast as with 1,024.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
