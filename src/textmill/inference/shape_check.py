"""A module's sizes are compared with its weights before it takes any memory.

Settings in a run folder may come from anyone. The module is first built on torch's ``meta``
device, where tensors have shapes and no memory; what grows beyond its checkpoint is refused while
it grows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from textmill.errors import CheckpointError

SLACK = 1 << 20
"""Numbers a module may make beyond twice its checkpoint: tables that are replaced meanwhile."""
BUFFERS = 1 << 23
"""Numbers in buffers that are not saved (positions), beyond four times the checkpoint's bytes."""
HEADER = 16 << 20
"""Bytes of a file of weights that are no weights."""

DRAWS = frozenset({nn.init.normal_, nn.init.trunc_normal_, Tensor.normal_})
"""What torch's compiler is imported for where there is no memory; it takes a second."""


class Budget:
    """What a module may at most be made of, by the checkpoint that is to be loaded into it.

    Args:
        size: Bytes of the file of weights.
        keys: Tensors it holds, by all their names.
    """

    def __init__(self, *, size: int, keys: int) -> None:
        self.size, self.keys = size, keys
        self.numbers, self.buffers, self.tensors = 0, 0, 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Refuses, while it lasts, to make more parameters than the checkpoint can fill."""
        hooks = [
            register_module_parameter_registration_hook(self._parameter),
            register_module_buffer_registration_hook(self._buffer),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def refuse_larger(self, module: nn.Module) -> None:
        """Refuses a file that is much larger than the module, before it is read."""
        numbers = sum(value.numel() for value in module.state_dict().values())
        if self.size > 8 * numbers + HEADER:
            raise CheckpointError(
                f"its weights have {self.size:,} bytes, but the model in config.yaml has "
                f"{numbers:,} numbers"
            )

    def _parameter(self, module: nn.Module, name: str, value: Tensor | None) -> None:
        self.tensors += 1
        self.numbers += 0 if value is None else value.numel()
        if self.numbers > 2 * self.size + SLACK or self.tensors > 2 * self.keys + 100:
            raise CheckpointError(
                f"config.yaml describes a larger model than its weights, which have {self.size:,} "
                f"bytes in {self.keys:,} tensors (at {type(module).__name__}.{name})"
            )

    def _buffer(self, module: nn.Module, name: str, value: Tensor | None) -> None:
        self.buffers += 0 if value is None else value.numel()
        if self.buffers > 4 * self.size + BUFFERS:
            raise CheckpointError(
                f"config.yaml describes a model whose tables have {self.buffers:,} numbers, but "
                f"its weights have {self.size:,} bytes (at {type(module).__name__}.{name})"
            )


def shape_of(build: Callable[[], nn.Module], budget: Budget) -> nn.Module | None:
    """The module without memory; None for one that cannot be built so.

    Raises:
        CheckpointError: It is larger than its checkpoint.
    """
    try:
        with budget.watching(), torch.device("meta"), _Undrawn():
            return build()
    except (NotImplementedError, RuntimeError):
        return None  # a package's own module that reads numbers while it is built


class _Undrawn(TorchFunctionMode):
    """Leaves numbers undrawn that have no memory."""

    @override
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        x = args[0] if args else given.get("tensor")  # nn.init gives it by its name
        if func in DRAWS and isinstance(x, Tensor) and x.is_meta:
            return x
        return func(*args, **given)
