"""Settings that no tensor shows: two encoders of the same shapes may still read text otherwise."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from weft.config.component import Config
from weft.config.values.raw_values import untyped
from weft.config.values.typed_values import plain
from weft.config.values.yaml_files import read_yaml
from weft.errors import UserError

__all__ = ["other_settings"]

FREE = ("dropout", "vectors", "frozen", "max_length")
"""Parts of names of settings that another run may well have otherwise."""


def other_settings(source: Path, module: nn.Module, taken: Mapping[str, str]) -> list[str]:
    """Settings of submodules that are others in the run that their weights come from.

    Number of heads, positions, activations: with others, weights of the same shapes mean nothing.

    Args:
        source: A run folder, one of its checkpoints, or its modules.
        module: The module here.
        taken: Names of tensors there by those here.

    Returns:
        One text for each setting; none where the source has no settings beside it.
    """
    there = _model_of(source)
    said = []
    for name, inner in module.named_modules():
        config, elsewhere = getattr(inner, "config", None), _elsewhere(name, taken)
        if elsewhere is None:
            continue
        saved = there.get(elsewhere.rpartition(".")[2]) if elsewhere else there
        if not (isinstance(config, Config) and isinstance(saved, Mapping)):
            continue
        others = dict(_flat(saved))
        for setting, value in _flat(plain(config)):
            if setting in others and others[setting] != value and not _is_free(setting):
                said.append(f"{name}.{setting} is {value} here and {others[setting]} there")
    return said


def _elsewhere(name: str, taken: Mapping[str, str]) -> str | None:
    """What a submodule is called there, ``""`` for all of it; None where nothing of it is taken."""
    for key, there in taken.items():
        inside = key[len(name) :]
        within = name and key.startswith(f"{name}.")
        if within and f".{there}".endswith(inside):
            return f".{there}".removesuffix(inside).lstrip(".")
    return None


def _is_free(setting: str) -> bool:
    return any(word in setting for word in FREE)


def _model_of(source: Path) -> Mapping[str, Any]:
    """The saved settings of the model that a source belongs to; empty where there are none."""
    for folder in (source, source.parent, source.parent.parent):
        if (folder / "config.yaml").is_file():
            try:
                settings = read_yaml(folder / "config.yaml").entries.get("settings")
            except UserError:
                return {}
            model = untyped(settings).get("model") if settings is not None else None
            return model if isinstance(model, Mapping) else {}
    return {}


def _flat(data: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting by its dotted name."""
    if not isinstance(data, Mapping):
        yield before, data
        return
    for name, value in data.items():
        yield from _flat(value, f"{before}.{name}" if before else str(name))
