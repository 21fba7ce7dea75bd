"""What a run computes on, as far as the system says it."""

import os
import platform
import socket
from pathlib import Path
from typing import Any

__all__ = ["machine"]


def machine() -> dict[str, Any]:
    """Host, processor, cores that this process may use, and memory.

    Example:
        >>> sorted(machine())
        ['cores', 'host', 'memory', 'processor']
    """
    bytes_ = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    usable = getattr(os, "sched_getaffinity", None)  # not on macOS
    return {
        "host": socket.gethostname(),
        "processor": _processor(),
        "cores": len(usable(0)) if usable else os.cpu_count(),
        "memory": f"{bytes_ / 1e9:.1f} GB",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
