"""The machine of a measurement: what others used of it, its facts, its fastest product."""

import os
import platform
import re
import resource
import statistics
import time
from pathlib import Path
from typing import Any

QUIET = 0.1
"""Cores of other processes under which wall-clock time counts."""


def busy_seconds() -> float:
    """CPU seconds of all processes since the machine started; 0 where /proc is not."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    except OSError:
        return 0.0
    ticks = [int(field) for field in line.split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # but idle and iowait


def own_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class Watch:
    """Wall-clock and CPU seconds since it was made, and the cores that others used meanwhile."""

    def __init__(self) -> None:
        self.start = (time.perf_counter(), own_seconds(), busy_seconds())

    def read(self) -> dict[str, float]:
        now = (time.perf_counter(), own_seconds(), busy_seconds())
        wall, own, busy = (b - a for a, b in zip(self.start, now, strict=True))
        return {"wall_s": wall, "cpu_s": own, "others": max(0.0, busy - own) / max(wall, 1e-9)}


def peak_megabytes() -> float:
    """The most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def facts(threads: int) -> dict[str, Any]:
    """What a figure depends on."""
    import torch

    name = platform.processor() or platform.machine()
    cores = os.cpu_count() or 1
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": name,
        "cores": cores,
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


GPU_PEAKS = {
    r"H100 PCIe": 756,
    r"(H100|H200) NVL": 835,
    r"(H100|H200|GH200)\b": 989,
    r"A100\b": 312,
    r"L40S\b": 362,
    r"L4\b": 121,
    r"A10\b": 125,
}
"""TFLOP/s of dense products in bfloat16, by the name that torch gives: NVIDIA's data sheets, half
of what they print with sparsity. The first that fits counts."""


def gpu_peak(name: str) -> float | None:
    """GFLOP/s of a device's dense products in bfloat16; None for one that is not in the table."""
    found = (peak for pattern, peak in GPU_PEAKS.items() if re.search(rf"\b{pattern}", name))
    peak = next(found, None)
    return None if peak is None else 1e3 * peak


def gpu_name(device: str) -> str:
    """What the device is called."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "no GPU"


def has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def peak_gflops(threads: int, precision: str = "fp32") -> dict[str, float]:
    """GFLOP/s of a large product of numbers of a type, by the library that computes it."""
    import torch

    torch.set_num_threads(threads)
    n = 1536
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = torch.randn(n, n, dtype=kind), torch.randn(n, n, dtype=kind)
    ways: dict[str, Any] = {"torch": lambda: a @ b}
    if torch.backends.mkldnn.is_available():
        onednn = torch.ops.mkldnn._linear_pointwise
        ways["oneDNN"] = lambda: onednn(a, b, None, "none", [], "")
    found = {}
    for name, way in ways.items():
        way()
        speeds = []
        for _ in range(7):
            began = time.perf_counter() if threads > 1 else time.process_time()
            way()
            ended = time.perf_counter() if threads > 1 else time.process_time()
            speeds.append(2 * n**3 / (ended - began) / 1e9)
        found[name] = round(statistics.median(speeds), 1)
    return found
