"""Faster paths of a training step, and which of them are taken.

Each path computes what torch's own functions compute, to the rounding of the numbers in use (the
mask of dropout is another sample of the same distribution). They are chosen for the machine at
hand; settings of :class:`Fast` choose otherwise, for a comparison.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from typing import Any, Literal

from textmill.config.component import Config as BaseConfig
from textmill.runtime import machine


class Fast(BaseConfig):
    """Settings of the faster paths: ``trainer.fast``."""

    linear: Literal["auto", "torch", "onednn"] = "auto"
    """Library of large matrix products of float32 on a CPU. ``auto`` takes what ``textmill bench
    --machine`` found to be faster; if that was not run, oneDNN on AMD's processors with AVX-512:
    torch's own choice, MKL, leaves it unused on some, where oneDNN takes 0.45 of the time."""
    attention: Literal["auto", "fp32", "bf16"] = "auto"
    """Type of fused attention on a CPU in steps of bf16. ``auto`` takes what ``textmill bench
    --machine`` found to be faster; if that was not run, bf16 on processors with AMX."""
    dropout_masks: bool = True
    """Dropout masks on a CPU out of 16 random bits a feature, added to the residual in the same
    pass: 174 instead of 838 microseconds for 1,040 tokens of 128 features."""
    split_loss: bool = True
    """The cross-entropy of a few hundred labels at a time, its gradient made with it, so that the
    scores of all labels over the vocabulary never lie in memory together."""
    keep_memory: bool = True
    """Whether memory that was freed stays with the process (glibc): on a CPU every step else asks
    the kernel for the same pages again, which takes a tenth of its time."""


KERNELS = ("linear", "attention")
"""The paths that are chosen by :mod:`textmill.runtime.machine`."""

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


def settled(paths: Fast, recorded: Mapping[str, Any] | None = None) -> Fast:
    """The paths without any ``auto``: what a run has recorded at its first start, else the best."""
    known = recorded or asdict(machine.present())
    chosen = {name: known[name] for name in KERNELS if getattr(paths, name) == "auto"}
    return replace(paths, **chosen)


def linear_library() -> Literal["torch", "onednn"]:
    """The library of matrix products in use on a CPU."""
    chosen = now().linear
    library = machine.present().linear if chosen == "auto" else chosen
    return library if machine.has_onednn() else "torch"


def attention_type() -> Literal["fp32", "bf16"]:
    """The type of fused attention in use on a CPU in steps of bf16."""
    chosen = now().attention
    return machine.present().attention if chosen == "auto" else chosen
