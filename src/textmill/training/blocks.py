"""The blocks of a module in training steps: compiled, or computed again in the backward pass."""

import importlib.util
import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from textmill.errors import UserError

BACKEND = "inductor"
VARIANTS = 64
"""Times that torch compiles one function before it gives up: blocks of one class share theirs, and
each is compiled with and without a mask and for a few ranges of sizes."""


def blocks_of(module: nn.Module) -> list[nn.Module]:
    """What is compiled, each for itself: what stands in a list of modules, else the module.

    A stack of like layers is compiled once, where a whole model would be one long function.
    """
    lists = [m for m in module.modules() if isinstance(m, nn.ModuleList)]
    blocks = dict.fromkeys(block for each in lists for block in each)
    inner = {m for block in blocks for m in block.modules() if m is not block}
    return [block for block in blocks if block not in inner] or [module]


@contextmanager
def compiled(module: nn.Module, *, use: bool) -> Iterator[None]:
    """Compiles the calls of the blocks while it is open; names of parameters stay as they are.

    Sizes of a batch are symbols: batches of other shapes do not compile anew.
    """
    if not use:
        yield
        return
    import torch._dynamo  # takes a second, which no other run pays

    blocks = blocks_of(module)
    for block in blocks:
        block.compile(backend=BACKEND, dynamic=True)
    try:
        with torch._dynamo.config.patch(recompile_limit=VARIANTS), warnings.catch_warnings():
            # torch's compiler says so of what it looks at itself.
            warnings.filterwarnings("ignore", message=r"The \.grad attribute of a Tensor")
            yield
    finally:
        for block in blocks:
            block._compiled_call_impl = None  # torch has no word for it


@contextmanager
def eager(*, use: bool) -> Iterator[None]:
    """Calls what was compiled as it was written: an evaluation would compile everything again."""
    with torch.compiler.set_stance("force_eager") if use else nullcontext():
        yield


def check_compiler(device: str) -> None:
    """Refuses a machine on which torch cannot compile for a device, with what is missing."""
    kind = torch.device(device).type
    name = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if kind == "cuda" and importlib.util.find_spec("triton") is None:
        missing = "the package triton, which is not installed: pip install triton"
    elif kind == "cpu" and shutil.which(name) is None:
        missing = (
            f"a C++ compiler, and there is no {name}. Install one (apt install g++, or "
            "xcode-select --install), or name one in the environment variable CXX"
        )
    elif kind == "cpu" and not header.is_file():
        missing = (
            f"Python's C headers, and there is no {header}. Install them (apt install python3-dev)"
        )
    else:
        return
    raise UserError(f"trainer.compile needs {missing}; or leave trainer.compile at false.")


@contextmanager
def checkpointed(module: nn.Module, *, use: bool) -> Iterator[None]:
    """Keeps only the inputs of each block in training, while it is open (Chen et al. 2016).

    A block is computed again in the backward pass, with the same dropout: loss and gradients are
    the same to the last bit. Names of parameters stay as they are, and so does what is compiled.
    """
    blocks = blocks_of(module) if use else []
    before = [block._compiled_call_impl for block in blocks]
    for block in blocks:
        # What __call__ calls where there is such a thing; it is in no state and in no copy.
        compute = block._compiled_call_impl or block._call_impl
        block._compiled_call_impl = partial(_call, block, compute)
    try:
        yield
    finally:
        for block, call in zip(blocks, before, strict=True):
            block._compiled_call_impl = call


def _call(block: nn.Module, compute: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    if not (block.training and torch.is_grad_enabled()):
        return compute(*given, **named)
    buffers = dict(block.named_buffers())
    before = {name: buffer._version for name, buffer in buffers.items()}
    # torch looks among the arguments for the devices whose generators it is to put back.
    made = checkpoint(_apply, compute, given, named, use_reentrant=False)
    for name, buffer in block.named_buffers():
        if buffers.get(name) is not buffer or before[name] != buffer._version:
            raise UserError(
                "trainer.activation_checkpointing computes each block twice, and "
                f"{type(block).__name__} changes its buffer '{name}' whenever it is computed. "
                "Leave it at false."
            )
    return made


def _apply(compute: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return compute(*given, **named)


def check_blocks(module: nn.Module) -> None:
    """Refuses a module without blocks: computed again as a whole it would need as much memory."""
    if blocks_of(module) == [module]:
        raise UserError(
            "trainer.activation_checkpointing computes the blocks of a module again (what stands "
            f"in an nn.ModuleList), and {type(module).__name__} has none: it would save "
            "nothing. Leave it at false; smaller batches and more of trainer.accumulate take less "
            "memory, too."
        )
