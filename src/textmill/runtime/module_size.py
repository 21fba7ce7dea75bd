"""Sizes of modules: bounded while they are made, before they take memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SLACK = 1 << 20
"""Numbers of parameters beyond two for each byte of their file: rows of tokens that it lacks."""
TABLES = 1 << 23
"""The same of buffers, as masks of positions, beyond four for each byte."""


@contextmanager
def at_most(size: int, refuse: Callable[[], Exception]) -> Iterator[None]:
    """Refuses, while it is open, to make more numbers than files of ``size`` bytes can fill.

    Args:
        size: Bytes.
        refuse: Makes the error.

    Example:
        >>> from torch import nn
        >>> with at_most(10, lambda: ValueError("too large")):
        ...     nn.Linear(1 << 10, 1 << 11)
        Traceback (most recent call last):
        ValueError: too large
    """
    from torch.nn.modules.module import (
        register_module_buffer_registration_hook,
        register_module_parameter_registration_hook,
    )

    left = {"parameters": 2 * size + SLACK, "buffers": 4 * size + TABLES}

    def count(what: str, value: "Tensor | None") -> None:
        left[what] -= 0 if value is None else value.numel()
        if left[what] < 0:
            raise refuse()

    hooks = [
        register_module_parameter_registration_hook(
            lambda _, __, value: count("parameters", value)
        ),
        register_module_buffer_registration_hook(lambda _, __, value: count("buffers", value)),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
