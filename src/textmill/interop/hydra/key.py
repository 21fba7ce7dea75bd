"""The key of a run that a config describes: a hash of what decides its result."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.config.sources.own_files import own_files

LENGTH = ("max_epochs", "max_steps", "max_time", "min_epochs", "min_steps")
"""The arguments of a Trainer that say how long a run is."""

_OBSERVERS = frozenset({"extras", "hydra", "logger", "optimized_metric", "paths", "tags", "test"})
"""Sections that see a run, or say where things are, and do not decide what it computes."""
_TRAINER = frozenset(
    {
        *LENGTH, "accelerator", "benchmark", "default_root_dir", "detect_anomaly", "devices",
        "enable_checkpointing", "enable_model_summary", "enable_progress_bar", "gpus", "logger",
        "log_every_n_steps", "num_nodes", "num_processes", "num_sanity_val_steps", "profiler",
        "progress_bar_refresh_rate", "resume_from_checkpoint", "strategy", "weights_summary",
    }
)  # fmt: skip
_ANYWHERE = frozenset({"num_workers", "persistent_workers", "pin_memory", "prefetch_factor"})
_WATCHING = re.compile(r"(ProgressBar|ModelSummary|Monitor)$")
"""How the callbacks are called that only show something."""


def key_of(settings: Mapping[str, Any], code: Sequence[Any], root: Path) -> str:
    """Twelve hex digits of the settings that decide, and of the project's own files they reach.

    A path into the project counts from its folder: a project that was moved has the same keys.
    """
    kept = {name: value for name, value in settings.items() if name not in _OBSERVERS}
    trainer = kept.get("trainer")
    if isinstance(trainer, Mapping):
        kept["trainer"] = {n: v for n, v in trainer.items() if n not in _TRAINER}
    files = {file.name: file.sha256 for file in own_files(code)}
    content = {"settings": _deciding(kept, str(root)), "code": files}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _deciding(value: Any, root: str) -> Any:
    if isinstance(value, Mapping):
        named = {str(k): v for k, v in value.items() if k not in _ANYWHERE}
        watching = [k for k, v in named.items() if isinstance(v, Mapping) and _watches(v)]
        return {k: _deciding(v, root) for k, v in named.items() if k not in watching}
    if isinstance(value, list):
        return [_deciding(item, root) for item in value]
    return value.replace(root, ".") if isinstance(value, str) else value


def _watches(node: Mapping[str, Any]) -> bool:
    return bool(_WATCHING.search(str(node.get("_target_", ""))))


def length_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the Trainer that say how long the run is."""
    trainer = settings.get("trainer") or {}
    return {name: trainer[name] for name in LENGTH if trainer.get(name) is not None}
