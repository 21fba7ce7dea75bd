"""Methods that textmill calls of a person's own class: one is missing, or takes something else."""

import inspect
import re
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

from textmill.errors import UserError, refuse_all


def refuse_other_methods(kind: type[Any]) -> None:
    """Refuses a subclass one of whose methods cannot be called as textmill calls it.

    Raises:
        UserError: With what each takes, and how it is called.
    """
    name = kind.__qualname__.rpartition("<locals>.")[2]
    found = (
        text
        for base in (() if _is_library(kind) else kind.__mro__[1:])
        for method in sorted(vars(base).keys() & vars(kind).keys())
        for text in _called_otherwise(vars(base)[method], vars(kind)[method])
    )
    refuse_all([UserError(f"{name}.{text}") for text in found])


def _called_otherwise(hook: Any, own: Any) -> Iterator[str]:
    """Whether a method takes what is given to the hook that it overrides."""
    if not (isinstance(hook, FunctionType) and isinstance(own, FunctionType)):
        return
    named = hook.__qualname__.startswith("Callback.") and not hook.__name__.startswith("_")
    if not (_is_library_function(hook) and (named or _is_abstract(hook))):
        return
    _, *wanted = inspect.signature(hook).parameters.values()
    by_name = {p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY}
    by_place = [None for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = inspect.signature(own)
    try:
        taken.bind(None, *by_place, **by_name)
    except TypeError:
        has = ", ".join(list(taken.parameters)[1:])
        called = f"{hook.__name__}({', '.join(p.name for p in wanted)})"
        yield f"{hook.__name__} takes ({has}), and is called as {called}."


def _is_library_function(hook: FunctionType) -> bool:
    """Whether textmill has it, and says all that it is given."""
    open_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = inspect.signature(hook).parameters.values()
    return hook.__module__.startswith("textmill.") and not any(p.kind in open_kinds for p in taken)


def _is_abstract(hook: Any) -> bool:
    return bool(getattr(hook, "__isabstractmethod__", False))


@lru_cache
def missing_methods(kind: type[Any]) -> tuple[str, ...]:
    """The abstract methods that a user's class lacks, each with its first line of documentation.

    A method whose callers in its class are all overridden is not needed.
    """
    found = []
    for name in () if _is_library(kind) else dir(kind):
        hook = inspect.getattr_static(kind, name)
        if not (isinstance(hook, FunctionType) and _is_abstract(hook)):
            continue
        base = next(each for each in kind.__mro__ if vars(each).get(name) is hook)
        methods = {n: m for n, m in vars(base).items() if isinstance(m, FunctionType)}
        callers = [n for n, m in methods.items() if name in m.__code__.co_names]
        if not callers or any(getattr(kind, each) is methods[each] for each in callers):
            said = (inspect.getdoc(hook) or "").partition("\n")[0]
            said = re.sub(r":math:`([^`]*)`", r"\1", said.replace("*Shape:*", "Shape:"))
            lacks = f"{kind.__qualname__} has no {name}{inspect.signature(hook)}"
            found.append(f"{lacks}, which every {base.__qualname__} has: {said}")
    return tuple(found)


def _is_library(kind: type[Any]) -> bool:
    return kind.__module__.startswith(("textmill.", "torch."))
