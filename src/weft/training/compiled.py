"""The compiled training step: ``trainer.compile``."""

import importlib.util
import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch import nn

from weft.errors import UserError

__all__ = ["blocks_of", "check_compiler", "compiled", "eager"]

BACKEND = "inductor"
VARIANTS = 64
"""Times that torch compiles one function before it gives up: blocks of one class share theirs, and
each is compiled with and without a mask and for a few ranges of sizes."""


def blocks_of(module: nn.Module) -> list[nn.Module]:
    """What is compiled, each for itself: what stands in a list of modules, else the module.

    A stack of like layers is compiled once, where a whole model would be one long function.

    Example:
        >>> stack = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        >>> len(blocks_of(stack)), len(blocks_of(nn.Linear(2, 2)))
        (2, 1)
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
