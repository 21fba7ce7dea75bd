"""The key of a run: a hash of what decides its result.

In it: resolved settings, the reached code of the recipe, and which ingredient is built from which.
Not in it: comments, docstrings, layout, settings marked ``in_key=False`` (device, workers, saving,
run length), and the observers: reporters and callbacks, with what only they need. A callback may
ask to stop: that is length, as ``max_steps`` is, and no key tells two lengths apart.
"""

import ast
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.config.deciding import deciding
from weft.config.graph import Node
from weft.config.ingredient import Table, documented
from weft.config.parameters import MISSING, Parameter
from weft.config.plan import Plan
from weft.config.script import SCRIPT_MODULE
from weft.config.values import INVALID

__all__ = ["OBSERVERS", "key_settings", "local_modules", "reached_code", "run_key"]

OBSERVERS = ("reporters", "callbacks")
"""Ingredients that see a run and do not decide what it computes."""


def run_key(plan: Plan) -> str:
    """Twelve hex digits that name what the run computes."""
    content: dict[str, Any] = {"settings": key_settings(plan), "code": reached_code(plan)}
    order = _deciding(plan)
    swaps = {name: path for name, path in plan.swaps.items() if name in order}
    content |= {"swaps": swaps, "objects": {} if plan.table.source else _objects(plan)}
    if wiring := _rebound(plan):
        content["wiring"] = wiring
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _deciding(plan: Plan) -> list[str]:
    """The planned names, without the observers and what only they need."""
    reached: set[str] = set()
    waiting = [name for name in plan.targets if name in plan.nodes]
    while waiting:
        name = waiting.pop()
        if name not in reached and name not in OBSERVERS:
            reached.add(name)
            waiting += [needed for needed in plan.nodes[name].needs if needed in plan.nodes]
    return [name for name in plan.order if name in reached]


def _rebound(plan: Plan) -> dict[str, dict[str, str]]:
    """What is built from an ingredient of another name: ``.given(vocabulary="labels")``."""
    found = {}
    for name in _deciding(plan):
        wired = plan.nodes[name].wiring.dependencies
        other = {key: wanted for key, (wanted, _) in wired.items() if key != wanted}
        if other:
            found[name] = other
    return found


def _objects(plan: Plan) -> dict[str, str]:
    """Where the ingredients of a recipe without a script of its own are defined."""
    found = {}
    for name in _deciding(plan):
        value = documented(plan.nodes[name].value)
        if value is not None:
            module = getattr(value, "__module__", "")
            where = "" if str(module).startswith(SCRIPT_MODULE) else f"{module}."
            found[name] = f"{where}{getattr(value, '__qualname__', '')}"
    return found


def key_settings(plan: Plan) -> dict[str, Any]:
    """The resolved settings of the plan that are in the key."""
    found = {}
    for name in sorted(_deciding(plan)):
        node = plan.nodes[name]
        values = {p.name: _kept(p, node) for p in node.wiring.settings if p.in_key}
        head = {"type": node.type_name} if node.type_name else {}
        if head or values:
            found[name] = {**head, **values}
    return found


def _kept(parameter: Parameter, node: Node) -> Any:
    value = node.settings.get(parameter.name, MISSING)
    return None if value is MISSING or value is INVALID else deciding(value)


def local_modules(table: Table) -> list[Path]:
    """The modules of the script's own folder that it imports; a run keeps a copy of them."""
    return list(table.local_modules)


def reached_code(plan: Plan) -> dict[str, str]:
    """Normalized source of everything of the recipe's own that the plan reaches.

    Of an ingredient that is a Config its settings say all: only its class is code, not the line
    ``trainer = Trainer.Config(max_steps=100)``, which may hold what is not in the key.
    """
    table = plan.table
    if not table.source:
        return {}
    tree = ast.parse(table.source)
    bound = _top_level(tree)
    own = [n for n in _deciding(plan) if n in table.ingredients and n not in plan.swaps]
    configs = [plan.nodes[n] for n in own if plan.nodes[n].is_config]
    reached = [n for n in own if not plan.nodes[n].is_config]
    reached += [name for node in configs for name in _own_classes(node.config)]
    found = {
        node.name: f"{node.config.owner.__module__}.{node.config.owner.__qualname__}"
        for node in configs
        if node.type_name is None and not _is_own(node.config.owner)
    }
    while reached:
        name = reached.pop()
        if name in found or name not in bound:
            continue
        found[name] = "\n".join(_normalized(node) for node in bound[name])
        for node in bound[name]:
            reached += sorted({leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)})
            reached += sorted(_names_in_text(node))
    folder = table.path.resolve().parent if table.path else Path()
    for path in table.local_modules:
        source = path.read_text(encoding="utf-8")
        found[f"module {path.relative_to(folder).as_posix()}"] = _normalized(ast.parse(source))
    return found


def _is_own(kind: type[Any]) -> bool:
    return kind.__module__.startswith(SCRIPT_MODULE)


def _own_classes(config: Any) -> list[str]:
    """The script's top-level names that make a Config's class and those nested in it."""
    if isinstance(config, Mapping | list | tuple):
        items = config.values() if isinstance(config, Mapping) else config
        return [name for item in items for name in _own_classes(item)]
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return []
    kinds = [type(config), getattr(config, "owner", type(config))]
    found = [kind.__qualname__.partition(".")[0] for kind in kinds if _is_own(kind)]
    for entry in dataclasses.fields(config):
        found += _own_classes(getattr(config, entry.name))
    return list(dict.fromkeys(found))


def _top_level(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements that bind each top-level name, imports included; a name may be bound twice."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _binds(statement):
            found.setdefault(name, []).append(statement)
    return found


def _binds(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return sorted({name.id for name in stored if isinstance(name.ctx, ast.Store)})


def _names_in_text(statement: ast.stmt) -> set[str]:
    """Names inside annotations that are written as text."""
    noted = (
        getattr(n, part, None) for n in ast.walk(statement) for part in ("annotation", "returns")
    )
    leaves = (leaf for note in noted if note is not None for leaf in ast.walk(note))
    texts = (leaf.value for leaf in leaves if isinstance(leaf, ast.Constant))
    return {text.partition(".")[0] for text in texts if isinstance(text, str)}


def _normalized(node: ast.AST) -> str:
    """The tree without docstrings, comments and positions."""
    copied = ast.parse(ast.unparse(node))
    for inner in ast.walk(copied):
        body = getattr(inner, "body", None)
        if isinstance(body, list):
            kept = [s for s in body if not _is_text(s)]
            inner.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(copied)


def _is_text(statement: Any) -> bool:
    """A statement that is nothing but text: a docstring, or the line under a field."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant and isinstance(statement.value.value, str)
