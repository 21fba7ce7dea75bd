"""What an ingredient may know of its run: ``env``, where it computes, and ``xp``, the run."""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from textmill.errors import UserError


@dataclass(frozen=True)
class Env:
    """The place of this process, given to every ingredient with a parameter ``env``.

    Example:
        >>> Env().is_main, Env(rank=1, world_size=2).is_main
        (True, False)
    """

    device: str = "cpu"
    """Name of the torch device: ``cpu``, ``cuda:0``, ``mps``."""
    rank: int = 0
    """Number of this process among all, from 0."""
    world_size: int = 1
    """How many processes train together."""
    local_rank: int = 0
    """Number of this process among those on this machine, from 0; chooses the accelerator."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise UserError(
                f"The rank must be from 0 to {self.world_size - 1}, but is {self.rank} "
                f"(RANK, WORLD_SIZE)."
            )

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, the one that writes files and talks to people."""
        return self.rank == 0

    @classmethod
    def of(cls, device: str, *, device_id: int, rank: int, world_size: int) -> "Env":
        """The place of a process that knows its rank and the number of its accelerator."""
        name = _device(device, device_id)
        return cls(device=name, rank=rank, world_size=world_size, local_rank=device_id)

    @classmethod
    def detect(cls, device: str = "auto") -> "Env":
        """Reads RANK, WORLD_SIZE and LOCAL_RANK, as torchrun sets them, and chooses the device.

        Args:
            device: ``auto`` (an accelerator when there is one, else the CPU), ``cpu``, ``cuda``
                (one per local rank), ``cuda:N`` or ``mps``.
        """
        local_rank = _number("LOCAL_RANK", 0)
        return cls(
            device=_device(device, local_rank),
            rank=_number("RANK", 0),
            world_size=_number("WORLD_SIZE", 1),
            local_rank=local_rank,
        )


@dataclass(frozen=True)
class Experiment:
    """The run at hand, given to every ingredient with a parameter ``xp``."""

    folder: Path
    """Where the run writes; it exists when ingredients are built."""
    recipe: str = ""
    """The recipe as it was named: a script, an experiment or a YAML file."""
    key: str = ""
    """Hash of the settings and of the code that make this run what it is."""
    overrides: tuple[str, ...] = ()
    """The words of the command line, as typed."""


def may_have_accelerator() -> bool:
    """Whether ``auto`` may find an accelerator here; torch, which knows, is not imported."""
    apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return apple or any(Path(each).exists() for each in ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd"))


INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
"""Those of processors that decide how fast products are."""


def processor() -> str:
    """The processor's maker and name, and those of its :data:`INSTRUCTIONS`."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    core = {name.strip(): value.strip() for name, _, value in pairs}
    flags = {*core.get("flags", "").split()}
    names = core.get("vendor_id", ""), core.get("model name", platform.machine())
    return " ".join([*filter(None, names), *(each for each in INSTRUCTIONS if each in flags)])


def usable_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal():
        raise UserError(f"The environment variable {name} must be a whole number, but is {text!r}.")
    return int(text)


def _device(name: str, local_rank: int) -> str:
    if name == "cpu":
        return name
    kind, colon, index = name.partition(":")
    if kind not in ("auto", "cuda", "mps") or (colon and (kind != "cuda" or not index.isdecimal())):
        guess = " Did you mean 'cuda'?" if kind.lower() in ("gpu", "nvidia") else ""
        raise UserError(
            f"The device must be auto, cpu, cuda, cuda:N or mps, but is {name!r:.80}.{guess}"
        )
    import torch  # only a question about accelerators needs it

    asked = kind in ("auto", "cuda")
    count = torch.cuda.device_count() if asked and torch.cuda.is_available() else 0
    has_mps = kind in ("auto", "mps") and torch.backends.mps.is_available()
    if kind == "auto" and not count:
        return "mps" if has_mps else "cpu"
    if kind == "mps":
        if not has_mps:
            raise UserError(
                "The device mps was asked for, but torch finds none here. Use auto or cpu."
            )
        return name
    number = int(index) if index else local_rank
    if number >= count:
        raise UserError(
            f"The device cuda:{number} was asked for, but torch finds {count} CUDA devices here. "
            f"Use auto or cpu, or start fewer processes."
        )
    return f"cuda:{number}"
