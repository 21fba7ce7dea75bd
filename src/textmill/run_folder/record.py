"""What a run folder says of its run, read without running or importing anything of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import UserError
from textmill.run_folder.folder import RunFolder, is_run_folder
from textmill.runtime.files import sha256
from textmill.runtime.jsonl_log import read_lines

__all__ = ["Record", "flat", "saved_settings", "state_of"]

MOST_LINES = 1 << 20
"""Evaluations and reports of a run; one every 100 steps of a hundred million steps."""


@dataclass(frozen=True)
class Record:
    """One run, as its folder tells it. Whatever is missing or damaged in it is empty."""

    path: Path
    """The run folder."""
    info: Mapping[str, Any]
    """``run.json``."""
    settings: Mapping[str, Any]
    """The resolved settings, nested."""
    code: Mapping[str, str]
    """The sha256 of the recipe's script and of each local module, by its path in the folder."""
    values: tuple[Mapping[str, Any], ...]
    """The lines of ``metrics.jsonl``."""

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Reads a run folder.

        Raises:
            UserError: It is no run folder, or what it says cannot be read.
        """
        if not is_run_folder(path):
            raise UserError(
                f"{path} is not a run folder (no run.json and config.yaml in it). "
                "'textmill runs list' shows the runs there are."
            )
        values = tuple(read_lines(path / "metrics.jsonl", MOST_LINES + 1))
        if len(values) > MOST_LINES:
            raise UserError(
                f"{path / 'metrics.jsonl'} has more than {MOST_LINES:,} lines, which no run writes."
            )
        sources = sorted(p for p in path.rglob("*.py") if p.is_file() and not p.is_symlink())
        return cls(
            path=path,
            info=RunFolder(path).info,
            settings=saved_settings(path),
            code={p.relative_to(path).as_posix(): sha256(p) for p in sources},
            values=values,
        )

    @property
    def start(self) -> Mapping[str, Any]:
        """How the run was started last: command, versions, git, machine."""
        starts = self.info.get("starts") or []
        return starts[-1] if starts and isinstance(starts[-1], Mapping) else {}

    def last_values(self) -> dict[str, float]:
        """The last number of each value, as ``split.name``; ``best.name`` is the selected one."""
        found: dict[str, float] = {}
        for line in self.values:
            split = str(line.get("split", ""))
            for name, value in numbers(line).items():
                found[f"{split}.{name}"] = value
        best = self.info.get("result", {}).get("best")
        if isinstance(best, Mapping):
            found |= {f"best.{name}": value for name, value in numbers(best, ()).items()}
        return found


def saved_settings(path: Path) -> dict[str, Any]:
    """The resolved settings of a run, nested.

    Raises:
        UserError: Its ``config.yaml`` cannot be read.
    """
    settings = read_yaml(path / "config.yaml").entries.get("settings")
    plain = untyped(settings) if settings is not None else {}
    return plain if isinstance(plain, dict) else {}


def state_of(info: Mapping[str, Any]) -> str:
    """``finished``, ``failed``, ``stopped`` or ``not finished``, by what ``run.json`` says.

    Example:
        >>> state_of({"finished": False, "failed": "there is no file vectors.txt"})
        'failed'
    """
    if info.get("finished"):
        return "finished"
    return next((word for word in ("failed", "stopped") if info.get(word)), "not finished")


PLACE = ("split", "step", "epoch", "examples", "time")


def numbers(line: Mapping[str, Any], without: tuple[str, ...] = PLACE) -> dict[str, float]:
    """The numbers of a line, NaN and infinities read back from their words.

    Example:
        >>> numbers({"split": "valid", "step": 2, "loss": "NaN", "bleu": 3.5, "note": "x"})
        {'loss': nan, 'bleu': 3.5}
    """
    found = {}
    for name, value in line.items():
        if value in ("NaN", "Infinity", "-Infinity"):
            found[name] = float(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            try:
                found[name] = float(value)
            except OverflowError:  # JSON's integers have no limit
                found[name] = math.inf if value > 0 else -math.inf
    return {name: value for name, value in found.items() if name not in without}


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names.

    Example:
        >>> flat({"trainer": {"selection": {"metric": "bleu"}, "seed": 1}})
        {'trainer.selection.metric': 'bleu', 'trainer.seed': 1}
    """
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = isinstance(value, Mapping) and value
        found |= flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return found
