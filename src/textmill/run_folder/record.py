"""What a run folder says of its run, read without running or importing anything of it."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.checkpoint.saved import SavedCheckpoints
from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import CheckpointError, UserError
from textmill.run_folder.folder import RunFolder, refuse_no_run
from textmill.runtime.files import sha256
from textmill.runtime.jsonl_log import read_lines

MOST_LINES = 1 << 20
"""Evaluations and reports of a run; one every 100 steps of a hundred million steps."""


@dataclass(frozen=True)
class Record:
    """One run, as its folder records it; what is missing is empty."""

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
    kept_step: int | None = None
    """The step whose weights the run keeps, the best so far; None if none was selected."""

    @classmethod
    def read(cls, path: Path) -> "Record":
        refuse_no_run(path)
        values = tuple(read_lines(path / "metrics.jsonl", MOST_LINES + 1))
        if len(values) > MOST_LINES:
            raise UserError(
                f"{path / 'metrics.jsonl'} has more than {MOST_LINES:,} lines, which no run writes."
            )
        sources = sorted(p for p in path.rglob("*.py") if p.is_file() and not p.is_symlink())
        info, kept = RunFolder(path).info, None
        if info.get("finished"):
            kept = used_step(mapping(info, "result"))
        else:
            with suppress(CheckpointError):
                best = SavedCheckpoints.of(path).pointer("best")
                kept = None if best is None else best.step
        return cls(
            path=path,
            info=info,
            settings=saved_settings(path),
            code={p.relative_to(path).as_posix(): sha256(p) for p in sources},
            values=values,
            kept_step=kept,
        )

    @property
    def start(self) -> Mapping[str, Any]:
        """The last start of the run: command, versions, git, machine."""
        starts = self.info.get("starts") or []
        return starts[-1] if starts and isinstance(starts[-1], Mapping) else {}

    def kept_values(self) -> dict[str, float]:
        """The values of the kept weights, as ``split.name``; ``best.name`` is the selected one.

        For training and validation, the last ones up to the kept step; for test data, the last.
        """
        last = math.inf if self.kept_step is None else self.kept_step
        found: dict[str, float] = {}
        for line in self.values:
            split, step = str(line.get("split", "")), numbers(line, ()).get("step", 0)
            if split == "test" or not step > last:
                found |= {f"{split}.{name}": value for name, value in numbers(line).items()}
        best = numbers(mapping(mapping(self.info, "result"), "best"), ())
        return found | {f"best.{name}": value for name, value in best.items()}


def used_step(result: Mapping[str, Any]) -> int | None:
    """The step of the weights that a result belongs to; None if none was selected."""
    for name in ("weights", "best"):
        step = mapping(result, name).get("step")
        if isinstance(step, int):
            return step
    return None


def saved_settings(path: Path) -> dict[str, Any]:
    """The resolved settings of a run, nested."""
    settings = read_yaml(path / "config.yaml").entries.get("settings")
    plain = {} if settings is None else untyped(settings)
    return plain if isinstance(plain, dict) else {}


def state_of(info: Mapping[str, Any]) -> str:
    """``finished``, ``failed``, ``stopped`` or ``not finished``, from ``run.json``."""
    if info.get("finished"):
        return "finished"
    return next((word for word in ("failed", "stopped") if info.get(word)), "not finished")


def mapping(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping of that name; an empty one if it is missing or of another type."""
    found = of.get(name)
    return found if isinstance(found, Mapping) else {}


def selected_by(info: Mapping[str, Any]) -> tuple[str, float]:
    """The value that a run is selected by, and 1 where higher is better, else -1."""
    chosen = mapping(info, "selected_by")
    return str(chosen.get("metric", "")), 1.0 if chosen.get("better") == "higher" else -1.0


PLACE = ("split", "step", "epoch", "examples", "time")


def numbers(line: Mapping[str, Any], without: tuple[str, ...] = PLACE) -> dict[str, float]:
    """The numbers of a line, NaN and infinities read back from their words."""
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
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = isinstance(value, Mapping) and value
        found |= flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return found
