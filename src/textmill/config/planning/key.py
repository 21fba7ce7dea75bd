"""The key of a run: a hash of what decides its result.

In it: resolved settings, the bytes of the recipe's script and of all other files of a person's own
whose code is used, and which ingredient is built from which. Not in it: settings marked
``in_key=False`` (device, workers, saving, run length), and the observers: reporters and callbacks,
with what only they need, but for the text of a script. A callback may ask to stop: that is length,
as ``max_steps`` is, and no key tells two lengths apart.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from textmill.config.code_names import SCRIPT_MODULE, code_in, is_code
from textmill.config.ingredient import documented
from textmill.config.parameters import MISSING, deciding
from textmill.config.planning.plan import Plan
from textmill.config.planning.wiring import reached
from textmill.config.sources.own_files import OwnFile, own_files
from textmill.config.values.typed_values import INVALID
from textmill.config.values.yaml_files import is_utf8
from textmill.errors import UserError

OBSERVERS = ("reporters", "callbacks")
"""Ingredients that see a run and do not decide what it computes."""


def run_key(plan: Plan) -> str:
    """Twelve hex digits that name what the run computes."""
    return _digest(plan, {file.name: file.sha256 for file in plan_files(plan)})


def settings_key(plan: Plan) -> str:
    """As :func:`run_key`, of the settings alone: runs of edited code have the same."""
    return _digest(plan, {})


def _digest(plan: Plan, code: dict[str, str]) -> str:
    content: dict[str, Any] = {"settings": key_settings(plan), "code": code}
    if plan.tasks:
        content["tasks"] = {name: _digest(task, {}) for name, task in plan.tasks.items()}
    order = deciding_names(plan)
    swaps = {name: path for name, path in plan.swaps.items() if name in order}
    # Of a recipe without a script of its own: where its ingredients are defined.
    values = {} if plan.table.files else {name: plan.nodes[name].value for name in order}
    objects = {n: _dotted(shown) for n, v in values.items() if (shown := documented(v)) is not None}
    content |= {"swaps": swaps, "objects": objects}
    # What is built from an ingredient of another name: .given(vocabulary="labels").
    wired = {name: plan.nodes[name].wiring.dependencies for name in order}
    other = {n: {k: w for k, (w, _) in each.items() if k != w} for n, each in wired.items()}
    if rebound := {name: names for name, names in other.items() if names}:
        content["wiring"] = rebound
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    if not is_utf8(text):
        odd = sorted(n for n, item in content["settings"].items() if not is_utf8(str(item)))
        raise UserError(
            f"{', '.join(odd) or 'A setting'}: it has text that is not UTF-8, such as the name "
            "of a file, but files of settings are UTF-8. Rename what it names."
        )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def deciding_names(plan: Plan) -> list[str]:
    """The planned names, without the observers and what only they need."""
    return reached(plan.nodes, plan.targets, without=OBSERVERS)


def _dotted(value: Any) -> str:
    name, module = getattr(value, "__qualname__", ""), getattr(value, "__module__", "")
    return str(name) if str(module).startswith(SCRIPT_MODULE) else f"{module}.{name}"


def key_settings(plan: Plan) -> dict[str, Any]:
    """The resolved settings of the plan that are in the key."""
    found = {}
    for name in sorted(deciding_names(plan)):
        node = plan.nodes[name]
        values = {}
        for parameter in (p for p in node.wiring.settings if p.in_key):
            value = node.settings.get(parameter.name, MISSING)
            unset = value is MISSING or value is INVALID
            values[parameter.name] = None if unset else deciding(value)
        head = {"type": node.type_name} if node.type_name else {}
        if head or values:
            found[name] = {**head, **values}
    return found | {name: key_settings(task) for name, task in plan.tasks.items()}


def plan_files(plan: Plan) -> list[OwnFile]:
    """The files of a person's own whose code decides what the plan computes, the script first."""
    return own_files(plan_parts(plan, observers=False), script=plan.table.files)


def plan_parts(plan: Plan, *, observers: bool = True) -> Iterator[Any]:
    """The classes and functions that the planned ingredients are made of."""
    for node in (plan.nodes[name] for name in (plan.nodes if observers else deciding_names(plan))):
        yield from code_in(node.value) if is_code(node.value) else ()
        if node.is_config:
            yield from (node.kind, getattr(node.kind, "owner", node.kind))
        settings = {p.name: node.settings.get(p.name) for p in node.wiring.settings if p.in_key}
        yield from code_in(settings)
    for task in plan.tasks.values():
        yield from plan_parts(task, observers=observers)
