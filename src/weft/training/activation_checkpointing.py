"""Blocks that are computed again in the backward pass: ``trainer.activation_checkpointing``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from weft.errors import UserError
from weft.training.compiled import blocks_of

__all__ = ["check_blocks", "checkpointed"]


@contextmanager
def checkpointed(module: nn.Module, *, use: bool) -> Iterator[None]:
    """Keeps only the inputs of each block in training, while it is open (Chen et al. 2016).

    A block is computed again in the backward pass, with the same dropout: loss and gradients are
    the same to the last bit. Names of parameters stay as they are, and so does what is compiled.

    Raises:
        UserError: A block changes a buffer of its own, as a batch norm does: it would do so twice.

    Example:
        >>> stack = nn.Sequential(nn.ModuleList([nn.Linear(2, 2)])[0])
        >>> with checkpointed(stack, use=False):
        ...     stack(torch.ones(1, 2)).shape
        torch.Size([1, 2])
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
    """Refuses a module without blocks: computed again as a whole it would need as much memory.

    Raises:
        UserError: It has no list of modules.
    """
    if blocks_of(module) == [module]:
        raise UserError(
            "trainer.activation_checkpointing computes the blocks of a module again (what stands "
            f"in an nn.ModuleList), and {type(module).__name__} has none: it would save "
            "nothing. Leave it at false; smaller batches and more of trainer.accumulate take less "
            "memory, too."
        )
