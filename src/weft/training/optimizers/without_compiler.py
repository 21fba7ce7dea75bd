"""torch's optimizers without the import of torch's compiler, which takes most of a second.

``torch.optim.Optimizer`` hides four of its methods from ``torch.compile`` with a decorator that
imports ``torch._dynamo`` when the method is first called (``add_param_group``: by the constructor),
and so does the decorator of ``step`` of Adam and SGD at each step. weft compiles modules, never an
optimizer, so the methods below the decorators are all it needs.
"""

import inspect
from typing import Any, TypeVar

import torch

__all__ = ["without_compiler"]

O = TypeVar("O", bound=torch.optim.Optimizer)  # noqa: E741  # an optimizer

HIDDEN = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
"""The methods that torch hides from its compiler."""
_MADE: dict[type[Any], type[Any]] = {}


def without_compiler(kind: type[O]) -> type[O]:
    """A subclass that does the same, of the same name, and leaves ``torch._dynamo`` alone.

    Args:
        kind: A class of optimizers; without effect where torch has no such decorators.

    Example:
        >>> SGD = without_compiler(torch.optim.SGD)
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = SGD([weight], lr=0.5)
        >>> weight.grad = torch.ones(2)
        >>> optimizer.step()
        >>> weight.tolist(), isinstance(optimizer, torch.optim.SGD)
        ([0.5, 0.5], True)
    """
    if kind not in _MADE:
        plain: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in HIDDEN}
        plain["step"] = torch.no_grad()(inspect.unwrap(kind.step))
        plain |= {"__doc__": kind.__doc__, "__module__": kind.__module__}
        _MADE[kind] = type(kind.__name__, (kind,), plain)
    made: type[O] = _MADE[kind]
    return made
