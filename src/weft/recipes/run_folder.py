"""The run folder: all that says what a run is, so that it can be repeated.

runs/<recipe>/<key>/
  recipe.py  local modules  config.yaml  run.json
  checkpoints/  metrics.jsonl  predictions/  log.txt  lock
"""

import hashlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from weft.config.yaml_files import dump_yaml
from weft.errors import UserError
from weft.runtime.files import write_atomic

__all__ = ["FORMAT", "RunFolder", "is_run_folder", "versions"]

FORMAT = 1
"""Version of the run folder's layout; a newer one is refused."""

_PACKAGES = ("weft", "torch", "numpy", "sentencepiece", "safetensors", "sacrebleu")


def is_run_folder(path: Path) -> bool:
    """Whether a folder was written by a run."""
    return (path / "run.json").is_file() and (path / "config.yaml").is_file()


@dataclass(frozen=True)
class RunFolder:
    """A run's folder, read and written."""

    path: Path

    @classmethod
    def place(
        cls, recipe: str, key: str, *, root: Path = Path("runs"), again: bool = False
    ) -> "RunFolder":
        """The folder for a recipe and a key; ``again`` gives the next free one."""
        name = (
            re.sub(r"[^\w.-]+", "-", recipe.removesuffix(".py").removesuffix(".yaml")).strip("-.")
            or "recipe"
        )
        base = root / name / key
        if not again:
            return cls(base)
        number = 2
        while (candidate := base.with_name(f"{key}-{number}")).exists():
            number += 1
        return cls(candidate)

    @property
    def info(self) -> dict[str, Any]:
        """What ``run.json`` says; empty for a folder not yet written."""
        file = self.path / "run.json"
        if not file.is_file():
            return {}
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{file} is not the JSON a run writes: {error}.") from error
        if not isinstance(info, dict) or info.get("format") != FORMAT:
            found = info.get("format") if isinstance(info, dict) else type(info).__name__
            raise UserError(f"{file} has format {found!r}; this weft reads format {FORMAT}.")
        return info

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.info.get("finished"))

    @property
    def result(self) -> dict[str, Any]:
        """The result of a finished run."""
        return dict(self.info.get("result") or {})

    def write_config(
        self, recipe: str, settings: Mapping[str, Any], built: Mapping[str, Any]
    ) -> None:
        """Writes ``config.yaml``: settings, which a run reads back, and built, a record."""
        text = dump_yaml({"recipe": recipe, "settings": dict(settings), "built": dict(built)})
        write_atomic(self.path / "config.yaml", text)

    def write_sources(self, script: Path | None, modules: Sequence[Path]) -> None:
        """Keeps the script and the local modules it imports."""
        if script is None:
            return
        write_atomic(self.path / "recipe.py", script.read_bytes())
        for module in modules:
            target = self.path / module.relative_to(script.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, module.read_bytes())

    def write_info(self, **facts: Any) -> None:
        """Writes ``run.json``, keeping what it said and is not said anew."""
        info = {"format": FORMAT, **self.info, **facts}
        write_atomic(self.path / "run.json", json.dumps(info, indent=2, ensure_ascii=False) + "\n")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages whose numbers a run depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and cleanliness of the repository around a folder; None outside one."""

    def git(*words: str) -> str:
        done = subprocess.run(  # noqa: S603  # fixed words, no shell
            ["git", "-C", str(folder), *words],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return done.stdout.strip()

    try:
        status = git("status", "--porcelain")
        return {
            "commit": git("rev-parse", "HEAD"),
            "clean": not status,
            "changes": hashlib.sha256(git("diff", "HEAD").encode()).hexdigest()[:12]
            if status
            else None,
        }
    except (OSError, subprocess.SubprocessError):
        return None


def command_line() -> list[str]:
    """The command as typed."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]
