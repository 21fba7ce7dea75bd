"""Which way to compute is the fastest on this processor: measured, or known of its kind.

``textmill bench --machine`` measures, by :mod:`textmill.preflight.machine_steps`, and keeps what it
finds in the cache folder. Without it the kind of the processor decides.
"""

import functools
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

from textmill.errors import UserError
from textmill.runtime.devices import processor
from textmill.runtime.files import cache_folder, parse_json, read_all, write_atomic

LOG = logging.getLogger("textmill")

FILE = "machine.json"
LARGEST = 100_000
"""Bytes of that file."""
STEADY = 1.3
"""The largest spread of measurements beside which little else was at work."""
WINS = 1.2
"""So many times as fast a step in bf16 has to be, for it to be chosen over float32."""


@dataclass(frozen=True)
class Kernels:
    """What settings of ``auto`` stand for on a CPU."""

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
    spread: float
    """The median of the repetitions over the least, of the way that varied most."""
    fp32_torch: float
    """In float32, products by torch's own choice of a library."""
    fp32_onednn: float
    """In float32, products by oneDNN."""
    bf16_but_attention: float
    """In bfloat16, fused attention in float32."""
    bf16: float
    """In bfloat16, fused attention, too."""

    @property
    def kernels(self) -> Kernels:
        wide = min(self.fp32_torch, self.fp32_onednn)
        narrow = min(self.bf16_but_attention, self.bf16)
        return Kernels(
            linear="onednn" if self.fp32_onednn < self.fp32_torch else "torch",
            attention="bf16" if self.bf16 < self.bf16_but_attention else "fp32",
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
        """Keeps it, in the cache folder that is there, for processes that begin from now on."""
        path = cache_folder() / FILE
        write_atomic(path, json.dumps(asdict(self), indent=1) + "\n")
        return path


def measured() -> Measured | None:
    """What was measured on this processor with this torch; None if nothing was."""
    import torch

    try:
        path = cache_folder() / FILE
        if not path.exists():
            return None
        found = Measured.read(path)
    except UserError as error:
        LOG.warning("%s", error)
        return None
    except (OSError, RuntimeError):  # no folder that this process may look into, or no home
        return None
    return found if (found.processor, found.torch) == (processor(), torch.__version__) else None


@functools.cache
def present() -> Kernels:
    """What settings of ``auto`` stand for in this process."""
    found = measured()
    return usual() if found is None else found.kernels


def usual() -> Kernels:
    """What is known of the processor's kind."""
    # MKL, torch's own choice, leaves AVX-512 unused on some of AMD's processors: oneDNN then takes
    # 0.45 of the time. Without AMX the backward pass of attention in bf16 takes up to 12 times as
    # long as in float32 (texts of 7 to 24 tokens, torch 2.13, Zen 4).
    instructions = processor()
    onednn = "AuthenticAMD" in instructions and "avx512f" in instructions
    return Kernels(
        linear="onednn" if onednn else "torch",
        attention="bf16" if "amx_bf16" in instructions else "fp32",
        precision="fp32",
    )


@functools.cache
def has_onednn() -> bool:
    """Whether this torch has oneDNN, its library for CPUs."""
    import torch

    return bool(torch.backends.mkldnn.is_available())


@functools.cache
def has_bf16() -> bool:
    """Whether oneDNN computes in bfloat16 here."""
    import torch

    return has_onednn() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
