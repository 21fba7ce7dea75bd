"""What the ``_target_`` of a config name: imported and compared with what is passed to them."""

import importlib
import inspect
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from textmill.config.registry import suggest
from textmill.errors import Problem, UserError, raised_at
from textmill.interop.hydra.config import WrittenConfigs

PASSED = ("callbacks", "logger", "plugins")
"""Arguments of the Trainer that textmill passes, whatever a config has."""
_SPECIAL = ("_target_", "_partial_", "_recursive_", "_convert_", "_args_")


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """While the block runs, what lies in a folder can be imported; after it, nothing of it stays.

    Two projects may each have a package ``src``, which one process must not mix. ``PROJECT_ROOT``,
    where the template's paths begin, is the folder unless a person has set it.
    """
    before, place, named = set(sys.modules), str(root), "PROJECT_ROOT" in os.environ
    os.environ.setdefault("PROJECT_ROOT", place)
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(place)
        if not named:
            del os.environ["PROJECT_ROOT"]
        for name in [n for n in sys.modules.keys() - before if _lies_in(sys.modules[n], root)]:
            del sys.modules[name]


def _lies_in(module: ModuleType, root: Path) -> bool:
    homes = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(home and Path(home).is_relative_to(root) for home in homes)


class Targets:
    """All that a config will call, found and checked before any of it is called.

    Args:
        written: Where things were written.
        given: For a dotted key, the names of arguments that are passed besides those written.
    """

    def __init__(
        self, written: WrittenConfigs, given: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self.written, self.given = written, given or {}
        self.found: dict[str, Any] = {}
        """The class or function by the dotted key of what names it."""
        self.problems: list[Problem] = []
        """What is wrong, each with its place."""

    def look(self, node: Any, key: str = "") -> None:
        """Looks at a setting and all that it holds."""
        if isinstance(node, Mapping):
            if isinstance(node.get("_target_"), str):
                self._look_at(node, key)
            for name, item in node.items():
                self.look(item, f"{key}.{name}" if key else str(name))
        elif isinstance(node, list):
            for number, item in enumerate(node):
                self.look(item, f"{key}.{number}")

    def _look_at(self, node: Mapping[str, Any], key: str) -> None:
        word = node["_target_"]
        try:
            target = locate(word)
        except UserError as error:
            self._refuse(key, "_target_", str(error), word)
            return
        self.found[key] = target
        names = {str(n) for n in node if n not in _SPECIAL} | set(self.given.get(key, ()))
        try:
            signature = inspect.signature(target)
        except (ValueError, TypeError):  # of a function that is not written in Python
            return
        unknown = [] if _takes_any(signature) else sorted(names - set(signature.parameters))
        for name in unknown:
            takes = ", ".join(_words(signature)) or "nothing"
            hint = suggest(name, signature.parameters)
            self._refuse(key, name, f"{word} has no '{name}'. {hint}It takes: {takes}.", None)
        if not node.get("_partial_"):
            self._refuse_missing(node, key, signature, names)

    def _refuse_missing(
        self, node: Mapping[str, Any], key: str, signature: inspect.Signature, names: set[str]
    ) -> None:
        args = node.get("_args_") or ()
        places = [p for p in signature.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]
        names = names | {p.name for p in places[: len(args)]}
        needed = [
            p.name
            for p in signature.parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        if lacks := [name for name in needed if name not in names]:
            takes = ", ".join(_words(signature))
            why = f"{node['_target_']} needs {', '.join(lacks)}. It takes: {takes}."
            self._refuse(key, "_target_", why, node["_target_"])

    def _refuse(self, key: str, name: str, why: str, text: object) -> None:
        dotted = f"{key}.{name}" if key else name
        self.problems.append(self.written.problem(dotted, why, text))


def _takes_any(signature: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())


def _words(signature: inspect.Signature) -> Iterator[str]:
    """The parameters as a reader wants them: names, and defaults that are short."""
    for p in signature.parameters.values():
        shown = "" if p.default is p.empty else repr(p.default)
        yield f"{p.name}={shown}" if shown and len(shown) < 20 else p.name


def locate(word: str) -> Any:
    """The class or function of a dotted name; its module is imported.

    Raises:
        UserError: There is none: how far the name leads, and the nearest one from there.

    Example:
        >>> locate("pathlib.Path").__name__
        'Path'
        >>> locate("pathlib.Pth")
        Traceback (most recent call last):
        textmill.errors.UserError: pathlib has no 'Pth'. Did you mean 'Path'?
    """
    parts = word.split(".")
    module, count = _module(parts)
    value: Any = module
    for number, part in enumerate(parts[count:], count):
        if not hasattr(value, part):
            known = [*vars(value), *_modules_below(value)]
            of = ".".join(parts[:number])
            raise UserError(f"{of} has no '{part}'. {suggest(part, known)}".rstrip())
        value = getattr(value, part)
    if not callable(value):
        raise UserError(f"{word} is a {type(value).__name__}, and cannot be called.")
    return value


def _module(parts: Sequence[str]) -> tuple[Any, int]:
    """The innermost module of a dotted name, and how many of its parts that is."""
    found: tuple[Any, int] = None, 0
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        try:
            found = importlib.import_module(name), count
        except ModuleNotFoundError as error:
            if error.name != name and not name.startswith(f"{error.name}."):
                raise UserError(_failed(name, error)) from error
            break
        except Exception as error:  # whatever a module of a person's own raises
            raise UserError(_failed(name, error)) from error
    if found[0] is None:
        here = [p.stem for place in sys.path[:1] for p in Path(place).iterdir() if p.is_dir()]
        hint = suggest(parts[0], here)
        where = f"neither installed nor in {sys.path[0]}"
        raise UserError(f"there is no module '{parts[0]}', {where}. {hint}".rstrip())
    return found


def _failed(name: str, error: Exception) -> str:
    of_syntax = isinstance(error, SyntaxError) and error.filename
    at = f"{error.filename}:{error.lineno}" if of_syntax else raised_at(error)  # type: ignore[attr-defined]
    where = f" ({at})" if at else ""
    return f"importing {name} failed{where}: {type(error).__name__}: {error}"


def _modules_below(value: Any) -> list[str]:
    return [p.stem for place in getattr(value, "__path__", ()) for p in Path(place).iterdir()]
