"""The allocator of the C library: memory that a step has freed is there for the next one."""

import ctypes
import platform

__all__ = ["keep_memory"]

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Of ``malloc.h``; the numbers are part of glibc's binary interface."""
LARGEST_THRESHOLD = 32 * 2**20
"""The most that glibc takes for M_MMAP_THRESHOLD on a machine of 64 bits."""


def keep_memory() -> bool:
    """Lets glibc keep what is freed, for the process.

    By its own choice glibc asks the kernel for each large block anew and gives it back when it is
    freed. A training step on a CPU frees and asks for the same tensors hundreds of times, and
    every page of them is cleared and mapped again: 10,000 to 20,000 page faults a step of 2,048
    tokens. Blocks up to 32 MB then come from the heap, whose end is given back no more; larger ones
    come and go as before.

    Returns:
        Whether it was done: on glibc only. Calling it again does no harm.

    Example:
        >>> keep_memory() == (platform.libc_ver()[0] == "glibc")
        True
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = (
        (M_MMAP_THRESHOLD, LARGEST_THRESHOLD),
        (M_TRIM_THRESHOLD, 2**31 - 1),
        (M_TOP_PAD, 64 * 2**20),
    )
    answers = [mallopt(name, value) for name, value in settings]
    return all(answer == 1 for answer in answers)
