"""Faster paths of a training step, and which of them are taken.

Each path computes what torch's own functions compute, to the rounding of single precision (the
mask of dropout is another sample of the same distribution). They are chosen for the machine at
hand; a setting of :class:`Fast` takes one away, for a comparison.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

import torch

from textmill.config.component import Config as BaseConfig


class Fast(BaseConfig):
    """Settings of the faster paths: ``trainer.fast``."""

    linear: Literal["auto", "torch", "onednn"] = "auto"
    """Library of the matrix products on a CPU. ``auto`` takes oneDNN where torch's own choice, MKL,
    leaves AVX-512 unused: on processors that are not Intel's, where one product then takes 0.45 of
    the time; ``torch`` is torch's choice everywhere."""
    dropout_masks: bool = True
    """Dropout masks on a CPU out of 16 random bits a feature, added to the residual in the same
    pass: 174 instead of 838 microseconds for 1,040 tokens of 128 features."""
    split_loss: bool = True
    """The cross-entropy of a few hundred labels at a time, its gradient made with it, so that the
    scores of all labels over the vocabulary never lie in memory together."""
    keep_memory: bool = True
    """Whether memory that was freed stays with the process (glibc): on a CPU every step else asks
    the kernel for the same pages again, which takes a tenth of its time."""


_active: ContextVar[Fast] = ContextVar("fast", default=Fast())  # noqa: B039  # it is frozen


@contextmanager
def using(fast: Fast) -> Iterator[None]:
    """Takes these paths while it is open, in this thread or task alone."""
    token = _active.set(fast)
    try:
        yield
    finally:
        _active.reset(token)


def now() -> Fast:
    """The paths in use."""
    return _active.get()


def linear_library() -> Literal["torch", "onednn"]:
    """The library of matrix products in use on a CPU."""
    if (chosen := now().linear) != "auto":
        return chosen
    return "onednn" if has_fast_onednn() else "torch"


@functools.cache
def has_fast_onednn() -> bool:
    """Whether oneDNN beats MKL here: a processor with AVX-512 that is not Intel's.

    It is read from ``/proc/cpuinfo`` and not measured: a measurement could choose differently when
    a run is resumed.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return False
    return "AuthenticAMD" in text and "avx512f" in text
