"""Models that are larger than the memory there is: refused before any of it is taken."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from weft.errors import UserError
from weft.recipes.need import as_size
from weft.runtime.memory import host_room

__all__ = ["within_memory"]

MOST = 1 << 44
"""Bytes where the system does not say what it has."""
MADE = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})


@contextmanager
def within_memory(room: int | None = None) -> Iterator[None]:
    """Refuses, while it lasts, to make tensors or modules that are larger than memory.

    Without it the process is killed, or torch raises an error of its allocator.

    Args:
        room: Bytes that may be taken; by default those of the machine.

    Raises:
        UserError: One tensor, or all parameters together, would take more.

    Example:
        >>> with within_memory(1_000_000):
        ...     nn.Embedding(9, 10**12)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.UserError: a table of 9 x 1,000,000,000,000 numbers takes 36,000.0 GB of ...
    """
    most = (MOST if (found := host_room()) is None else found) if room is None else room
    held, seen = 0, set[int]()

    def count(module: nn.Module, name: str, value: Tensor | None) -> None:
        nonlocal held
        if value is None or value.is_meta or id(value) in seen:  # shared by two modules
            return
        seen.add(id(value))
        held += value.numel() * value.element_size()
        if held > most:
            what = f"the parameters up to {type(module).__name__}.{name}"
            raise _too_large(what, held, most, verb="take")

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Sized(most):
            yield
    finally:
        hook.remove()


class _Sized(TorchFunctionMode):
    """Looks at the size of what is made before it is made."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    @override
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func in MADE:
            first = args[0] if args else given.get("size", ())
            sizes = first if isinstance(first, tuple | list) else args
            if all(isinstance(size, int) for size in sizes):
                dtype = given.get("dtype") or torch.get_default_dtype()
                size = math.prod(sizes) * dtype.itemsize
                if size > self.most and str(given.get("device")) != "meta":
                    what = f"a table of {' x '.join(f'{n:,}' for n in sizes)} numbers"
                    raise _too_large(what, size, self.most, verb="takes")
        return func(*args, **given)


def _too_large(what: str, size: int, most: int, *, verb: str) -> UserError:
    return UserError(
        f"{what} {verb} {as_size(size)} of memory, and there are {as_size(most)}. Make the model "
        "smaller: its sizes are settings of model."
    )
