"""The parts of a checkpoint: read back by name, and checked before anything changes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from textmill.checkpoint.layout import STATE, tensor_file
from textmill.checkpoint.manifest import FORMAT, Manifest
from textmill.checkpoint.state import join_state
from textmill.checkpoint.tensors import read_tensors
from textmill.errors import CheckpointError
from textmill.runtime.files import check_version, parse_json

LARGEST_STATE = 64 << 20
"""Bytes of ``state.json``; that of a model with 10,000 tensors has 3 million."""
_REFUSALS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_SWITCHES = {"foreach", "fused"}
"""Settings of an optimizer that say how it computes on a device, and not what."""
_SHOWN = 8
"""A wrong module differs in every key; the first few say which one it is."""


@runtime_checkable
class Stateful(Protocol):
    """What can be a part: a module, an optimizer, batches, or anything else with a state."""

    def state_dict(self) -> Mapping[str, Any]:
        """Everything that must survive, nested, of tensors and plain values."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Goes on from there."""


def load_part(path: Path, name: str) -> Any:
    """The saved state of one part; only its own files are read, and they are verified."""
    try:
        manifest = Manifest.read(path)
        return read_part(path, manifest, plain_parts(path, manifest), name)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def load_into(path: Path, name: str, part: Stateful) -> None:
    """Loads one part of a checkpoint into an object, which must fit it."""
    state = load_part(path, name)
    problems = check_fit(part, state)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise CheckpointError(f"{path}: part {name!r} does not fit; nothing was changed.\n{lines}")
    part.load_state_dict(state)


def plain_parts(path: Path, manifest: Manifest) -> dict[str, Any]:
    """What ``state.json`` holds of each part."""
    if STATE not in manifest.files:
        raise CheckpointError(f"{STATE}: not in the manifest")
    if (size := manifest.files[STATE].size) > LARGEST_STATE:
        raise CheckpointError(
            f"{STATE}: {size:,} bytes are more than the {LARGEST_STATE:,} allowed"
        )
    document = parse_json(manifest.read_file(path, STATE), STATE, CheckpointError)
    check_version(document, FORMAT, STATE, CheckpointError)
    parts = document.get("parts")
    if not isinstance(parts, dict):
        raise CheckpointError(f"{STATE}: it holds no parts")
    return parts


def read_part(path: Path, manifest: Manifest, plain: Mapping[str, Any], name: str) -> Any:
    """Joins the plain half of a part with its tensors, read from verified bytes."""
    if name not in plain:
        has = ", ".join(map(repr, sorted(plain))) or "no parts"
        raise CheckpointError(f"part {name!r} is not in the checkpoint, which has {has}")
    file, tensors = tensor_file(name), {}
    try:
        if file in manifest.files:
            tensors = read_tensors(manifest.read_file(path, file))
        return join_state(tensors, plain[name])
    except RecursionError:
        raise CheckpointError(f"part {name!r}: nested too deeply") from None


def load_parts(path: Path, manifest: Manifest, parts: Mapping[str, Stateful]) -> None:
    """Loads every part from a checkpoint, after all of them have been found to fit."""
    states = {}
    plain = plain_parts(path, manifest)
    problems = [
        f"part {name!r} is in the checkpoint, but nothing here takes it"
        for name in plain
        if name not in parts
    ]
    for name, part in parts.items():
        try:
            states[name] = read_part(path, manifest, plain, name)
            problems += [f"part {name!r}: {line}" for line in check_fit(part, states[name])]
        except CheckpointError as error:
            problems.append(str(error))
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise CheckpointError(f"{path} does not fit; nothing was changed.\n{lines}")
    for name, part in parts.items():
        try:
            part.load_state_dict(states.pop(name))
        except _REFUSALS as error:
            raise CheckpointError(
                f"{path} does not fit: part {name!r} ({type(part).__qualname__}) refused its "
                f"state: {type(error).__name__}: {error}"
            ) from error


def check_fit(part: Stateful, state: Any) -> list[str]:
    """Why a saved state does not fit a module or an optimizer, one line each; empty if it does."""
    if isinstance(part, nn.Module):
        problems = _module_problems(part.state_dict(), state)
    elif isinstance(part, torch.optim.Optimizer):
        problems = _optimizer_problems(part.state_dict(), state)
    else:
        return []
    if len(problems) > _SHOWN:
        return [*problems[:_SHOWN], f"and {len(problems) - _SHOWN} more"]
    return problems


def _module_problems(wanted: Mapping[str, Any], found: Any) -> list[str]:
    if not isinstance(found, dict):
        return [f"wants a state of keys, found a {type(found).__name__}"]
    problems = [f"missing key {key!r}" for key in wanted if key not in found]
    problems += [f"unexpected key {key!r}" for key in found if key not in wanted]
    for key in [key for key in wanted if key in found]:
        here, there = _describe(wanted[key]), _describe(found[key])
        if here != there and isinstance(wanted[key], Tensor):
            problems.append(f"{key!r} wants {here}, found {there}")
    return problems


def _optimizer_problems(wanted: Mapping[str, Any], found: Any) -> list[str]:
    if not isinstance(found, dict) or not {"state", "param_groups"} <= found.keys():
        return ["wants the keys 'state' and 'param_groups'"]
    here, there = wanted["param_groups"], found["param_groups"]
    if len(here) != len(there):
        return [f"'param_groups' wants {len(here)} groups, found {len(there)}"]
    problems = []
    for index, (group, saved) in enumerate(zip(here, there, strict=True)):
        name = f"'param_groups.{index}"
        wants, has = len(group["params"]), len(saved.get("params", ()))
        if wants != has:
            problems.append(f"{name}.params' wants {wants} parameters, found {has}")
        problems += [
            f"{name}.{key}' cannot be {saved[key]!r:.40} where it is {group[key]!r:.40}"
            for key in saved.keys() & group.keys() - {"params"}
            if _kind(group[key]) != _kind(saved[key])
            and not (key in _SWITCHES and (saved[key] is None or isinstance(saved[key], bool)))
        ]
        problems += [f"missing key {name}.{key}'" for key in group if key not in saved]
        problems += [f"unexpected key {name}.{key}'" for key in saved if key not in group]
    return problems


def _kind(value: Any) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(_kind, value))
    if value is None or isinstance(value, bool):
        return value
    return "number" if isinstance(value, int | float | Tensor) else type(value)


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
