"""Which way to compute is the fastest on this processor: measured, or known of its kind.

``textmill bench --machine`` measures (:mod:`textmill.models.machine_steps`) and keeps what it finds
in the cache folder. Without it the kind of the processor decides.
"""

import functools
import json
import logging
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

import torch

from textmill.errors import UserError
from textmill.runtime.files import cache_folder, make_folder, parse_json, read_all, write_atomic

LOG = logging.getLogger("textmill")

FILE = "machine.json"
LARGEST = 100_000
WINS = 1.2
"""So many times as fast a step in bf16 has to be, for it to be chosen over float32."""
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
"""Those that decide how fast products are."""


@dataclass(frozen=True)
class Kernels:
    """The ways of a CPU that settings of ``auto`` stand for."""

    linear: Literal["torch", "onednn"]
    """Library of the matrix products of float32."""
    attention: Literal["fp32", "bf16"]
    """Type of fused attention in a step of bf16."""
    precision: Literal["fp32", "bf16"]
    """Type of the matrix products of training steps."""


@dataclass(frozen=True)
class Measured:
    """Milliseconds of a training step by each way, and where they were measured."""

    processor: str
    torch: str
    threads: int
    torch_products: float
    """In float32, by torch's own choice of a library."""
    onednn_products: float
    """In float32, by oneDNN."""
    fp32_attention: float
    """In bfloat16, but fused attention in float32."""
    bf16_attention: float
    """In bfloat16."""

    @property
    def kernels(self) -> Kernels:
        wide = min(self.torch_products, self.onednn_products)
        narrow = min(self.fp32_attention, self.bf16_attention)
        return Kernels(
            linear="onednn" if self.onednn_products < self.torch_products else "torch",
            attention="bf16" if self.bf16_attention < self.fp32_attention else "fp32",
            precision="bf16" if wide >= WINS * narrow else "fp32",
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads what :meth:`write` has written; a `UserError` says why it cannot be."""
        again = "Measure anew: textmill bench --machine"
        content = parse_json(
            read_all(path, LARGEST, UserError, name=str(path)), str(path), UserError
        )
        types = {name: field.type for name, field in cls.__dataclass_fields__.items()}
        if not isinstance(content, dict) or content.keys() != types.keys():
            raise UserError(f"{path} does not say {', '.join(types)}. {again}")
        for name, value in content.items():
            if not isinstance(value, types[name]) or (types[name] is float and value <= 0):  # type: ignore[arg-type]
                raise UserError(f"{path}: {name} cannot be {value!r:.40}. {again}")
        return cls(**content)

    def write(self) -> Path:
        """Keeps it for the processes that begin from now on."""
        make_folder(cache_folder())
        path = cache_folder() / FILE
        write_atomic(path, json.dumps(asdict(self), indent=1) + "\n")
        return path


def measured() -> Measured | None:
    """What was measured on this processor with this torch; None if nothing was."""
    path = cache_folder() / FILE
    if not path.exists():
        return None
    try:
        found = Measured.read(path)
    except UserError as error:
        LOG.warning("%s", error)
        return None
    return found if (found.processor, found.torch) == (processor(), torch.__version__) else None


@functools.cache
def present() -> Kernels:
    """The ways that settings of ``auto`` stand for in this process."""
    found = measured()
    return usual() if found is None else found.kernels


def usual() -> Kernels:
    """What is known of the processor's kind."""
    # MKL, torch's own choice, leaves AVX-512 unused on processors that are not Intel's: oneDNN then
    # takes 0.45 of the time. Without AMX the backward pass of attention in bf16 takes 12 times as
    # long as in float32 (torch 2.13, Zen 4).
    instructions = processor()
    onednn = torch.backends.mkldnn.is_available() and "avx512f" in instructions
    return Kernels(
        linear="onednn" if onednn and "AuthenticAMD" in instructions else "torch",
        attention="bf16" if "amx_bf16" in instructions else "fp32",
        precision="fp32",
    )


def processor() -> str:
    """The processor's name and those of its instructions that decide how fast products are."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    lines = dict[str, str]()
    for line in text.partition("\n\n")[0].splitlines():  # of the first core
        name, _, value = line.partition(":")
        lines[name.strip()] = value.strip()
    flags = {*lines.get("flags", "").split()}
    names = [lines.get("vendor_id", ""), lines.get("model name", platform.machine())]
    return " ".join([*filter(None, names), *(each for each in INSTRUCTIONS if each in flags)])
