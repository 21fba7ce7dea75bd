"""The run folder: all that says what a run is, so that it can be repeated.

runs/<recipe>/<key>/
  recipe.py  local modules  config.yaml  run.json
  checkpoints/  metrics.jsonl  predictions/  log.txt  lock
"""

import hashlib
import itertools
import json
import logging
import os
import platform
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS, MODULES, has_checkpoints, tensor_file
from textmill.checkpoint.manifest import RUN_NAME, Manifest
from textmill.checkpoint.run_seal import RunSeal, sealed_config
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.config.values.yaml_files import dump_yaml
from textmill.errors import CheckpointError, StorageError, TextmillError, UserError
from textmill.runtime.devices import processor, usable_cores
from textmill.runtime.disk import refuse_outward_folder
from textmill.runtime.files import (
    LEFTOVER,
    VERSION,
    check_version,
    parse_json,
    read_all,
    sha256,
    write_atomic,
)


def hardware() -> dict[str, Any]:
    """Host, processor, cores that this process may use, and memory."""
    bytes_ = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "host": socket.gethostname(),
        "processor": processor(),
        "cores": usable_cores(),
        "memory": f"{bytes_ / 1e9:.1f} GB",
    }


FORMAT = 1
"""Version of the run folder's layout; a newer one is refused."""

SCRIPT = "recipe.py"
"""The run folder's copy of the script, whatever the script is called."""

PRETRAINED = "pretrained"
"""What a run keeps of the pretrained models that it began with."""

WRITTEN_FOLDERS = {
    CHECKPOINTS: False,
    MODULES: True,
    "export": True,
    "predictions": True,
    PRETRAINED: True,
    "wandb": True,
}
"""Folders that textmill writes, and whether it writes into one that exists already."""

LOG = logging.getLogger("textmill")
ROOT = Path("runs")
"""Where runs are unless a person names another folder."""
PLACES = Path(".textmill") / "run_places.txt"
"""A line for each run folder elsewhere that was trained from this working directory."""

LARGEST_INFO = 16 << 20
"""Bytes of ``run.json`` that are read; a run's own has some thousand."""

NEEDED = ("recipe", "key")
"""Facts that every ``run.json`` has."""

_FACTS: dict[str, type[Any]] = {
    "recipe": str,
    "key": str,
    "settings_key": str,
    "id": str,
    "length": dict,
    "data": dict,
    "starts": list,
    "starts.*.versions": dict,
    "starts.*.versions.*": str,
    "changes": list,
    "max_tokens": int,
    "pretrained": dict,
    "finished": bool,
    "result": dict,
    "result.steps": int,
    "result.epochs": int,
}
"""The types of facts in ``run.json``; ``*`` stands for each item of a list or mapping."""

_PACKAGES = ("textmill", "torch", "numpy", "sentencepiece", "safetensors", "sacrebleu")


def is_run_folder(path: Path) -> bool:
    """Whether a folder was written by a run."""
    return (path / "run.json").is_file() and (path / "config.yaml").is_file()


def refuse_no_run(path: Path) -> None:
    if not is_run_folder(path):
        raise UserError(
            f"{path} is not a run folder (no run.json and config.yaml in it). "
            "'textmill runs list' shows the runs there are."
        )


def wrote_in(folder: Path) -> bool:
    """Whether a run wrote its record or its weights into a folder."""
    return (folder / "run.json").exists() or has_checkpoints(folder)


def runs_in(root: Path) -> list[Path]:
    """The folders of runs below one, or itself, without those that are half-deleted."""
    found = sorted(file.parent for file in root.glob("**/run.json"))
    return [p for p in found if not any(map(LEFTOVER.fullmatch, p.relative_to(root).parts))]


def is_of_lightning(run: Path) -> bool:
    """Whether ``textmill train --hydra`` made a run; False for a folder that cannot be read."""
    try:
        return RunFolder(run).info.get("trained_by") == "lightning"
    except (OSError, TextmillError):
        return False


def refuse_lightning(run: Path) -> None:
    """Refuses to load, or to plan anew, a run that Lightning trained."""
    if not is_of_lightning(run):
        return
    saved = sorted(run.glob(f"{CHECKPOINTS}/*/{tensor_file('model')}"))
    weights = saved[0] if saved else run / CHECKPOINTS
    config = RunFolder(run).info.get("config", "its configs")
    raise UserError(
        f"{run} is a run of Lightning's: its model is code of the project of {config}, which no run"
        " folder may execute. Type the command that began it to go on, or to see its result "
        "(textmill train --hydra …). Another program reads the weights: "
        f"safetensors.torch.load_file('{weights}')."
    )


def _facts(info: Any, path: Sequence[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """What ``run.json`` has at a path of names, each with its place."""
    if not path:
        yield place, info
        return
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(info, list | dict):
        entries = enumerate(info) if isinstance(info, list) else info.items()
    for name, fact in entries:
        if path[0] in ("*", name):
            yield from _facts(fact, path[1:], f"{place}.{name}".lstrip("."))


def _not_ours(why: str) -> UserError:
    return UserError(f"{why}. It is not the JSON a run writes: restore it from a copy.")


def refuse_collision(script: Path, modules: Iterable[Path]) -> None:
    """Refuses a local module that would take the place of the script in the run folder."""
    home = script.resolve()
    if any(module.resolve() == home.with_name(SCRIPT) != home for module in modules):
        raise UserError(
            f"{script} imports {script.with_name(SCRIPT)}, but the run folder keeps the script "
            f"itself as {SCRIPT}, beside its local modules. Give that module another name."
        )


@dataclass(frozen=True)
class RunFolder:
    """A run's folder, read and written."""

    path: Path

    @classmethod
    def place(
        cls, recipe: str, key: str, run_dir: str | Path | None = None, *, again: bool = False
    ) -> "RunFolder":
        """The folder that is named, else that of a recipe and a key; ``again``: the next free."""
        stem = recipe.removesuffix(".py").removesuffix(".yaml")
        name = re.sub(r"[^\w.-]+", "-", stem).strip("-.")
        folder = cls(Path(run_dir) if run_dir else Path("runs", name or "recipe", key))
        if not again:
            return folder
        return next(each for each in folder.numbered() if not each.path.exists())

    def numbered(self) -> "Iterator[RunFolder]":
        """This folder, then ``-2``, ``-3``, … beside it, whether they exist or not."""
        yield self
        for number in itertools.count(2):
            yield RunFolder(self.path.with_name(f"{self.path.name}-{number}"))

    @property
    def info(self) -> dict[str, Any]:
        """The content of ``run.json``; empty for a folder that was not written yet."""
        file = self.path / "run.json"
        if not file.is_file():
            return {}
        data = read_all(file, LARGEST_INFO, _not_ours, name=str(file), links=True)
        info: dict[str, Any] = parse_json(data, str(file), _not_ours, nan=True)
        check_version(info, FORMAT, str(file), lambda why: UserError(f"{why}. Train anew."))
        for name, kind in _FACTS.items():
            for place, fact in _facts(info, name.split(".")):
                if not isinstance(fact, kind):
                    found = type(fact).__name__
                    raise UserError(
                        f"{file}: '{place}' must be a {kind.__name__}, found a {found}. Restore "
                        "the file from a copy."
                    )
        for name in NEEDED:
            if name not in info:
                raise UserError(f"{file} does not say the '{name}' of the run.")
        return info

    def has_other(self, key: str) -> bool:
        """Whether it holds a run of another key; a run that saved nothing does not count."""
        info = self.info
        saved = bool(info.get("finished")) or has_checkpoints(self.path)
        return bool(info) and info["key"] != key and saved

    def take_over(self, key: str) -> None:
        """Removes the record of a run of another key, which saved nothing; its log stays."""
        if self.info and self.info["key"] != key:
            LOG.info("%s: the run that began here saved nothing, and gives way.", self.path)
            for name in ("run.json", "config.yaml"):
                (self.path / name).unlink(missing_ok=True)

    @property
    def finished(self) -> bool:
        return bool(self.info.get("finished"))

    @property
    def result(self) -> dict[str, Any]:
        return dict(self.info.get("result") or {})

    @property
    def identity(self) -> str:
        """The run's own name, which its checkpoints have; a new one before the first is saved.

        It is in ``config.yaml`` and ``run.json``; if they differ, the checkpoints decide.
        """
        names: list[str] = []
        with suppress(CheckpointError):
            seal = RunSeal.read(self.path)
            names += [] if seal is None else [seal.run]
        if RUN_NAME.fullmatch(known := self.info.get("id", "")):
            names.append(known)
        saved = SavedCheckpoints.of(self.path)
        saved.seal = None
        newest = saved.newest()
        if newest is not None and newest.run in names:
            return newest.run
        return next(iter(names), secrets.token_hex(8))

    @property
    def newest(self) -> Manifest | None:
        """The manifest of the newest of the run's checkpoints that has a good one."""
        saved = SavedCheckpoints.of(self.path)
        saved.seal = RunSeal(self.path, self.identity)
        return saved.newest()

    def write_config(
        self,
        recipe: str | None,
        settings: Mapping[str, Any],
        built: Mapping[str, Any],
        *,
        swaps: Mapping[str, str],
        run: str | None = None,
        code: Sequence[str] = (),
        parts: Mapping[str, str] | None = None,
        include: Sequence[str] = (),
    ) -> None:
        try:
            RunSeal.read(self.path)
        except CheckpointError as error:
            LOG.warning("%s It is written anew.", str(error).partition(" It says what")[0])
        named: dict[str, Any] = {} if recipe is None else {"recipe": recipe}
        named |= {"include": list(include)} if include else {}
        swapped = {"swaps": dict(swaps)} if swaps else {}
        content = {**named, "settings": dict(settings), **swapped, "built": dict(built)}
        digests = {name: sha256(self.path / name) for name in code}
        text = sealed_config(
            dump_yaml(content), run=run or self.identity, code=digests, parts=parts
        )
        write_atomic(self.path / "config.yaml", text)

    def write_sources(self, files: Mapping[str, bytes]) -> list[str]:
        """Writes the recipe's own code; returns the paths in the folder."""
        for name, data in files.items():
            target = self.path / name
            refuse_outward_folder(target.parent, self.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(target, data)
        return list(files)

    def write_info(self, **facts: Any) -> None:
        """Writes facts into ``run.json``, which keeps its others; None removes a fact."""
        merged = {VERSION: FORMAT, **self.info, **facts}
        info = {name: fact for name, fact in merged.items() if fact is not None}
        if not all(name in info for name in NEEDED):
            raise StorageError(
                f"There is no {self.path / 'run.json'} any more: was the run deleted while it was "
                "at work? Start again with the same command."
            )
        text = json.dumps(info, indent=2, ensure_ascii=False) + "\n"
        data = text.encode("utf-8", "backslashreplace")  # a name may not be UTF-8: JSON's escape
        write_atomic(self.path / "run.json", data)

    def write_start(self, code: Path, facts: Mapping[str, Any], **more: Any) -> None:
        """Writes facts, and a start of the run with ``more``, into ``run.json``.

        ``code`` is the folder whose repository is recorded.
        """
        start = {"command": command_line(), "versions": versions(), "git": git_state(code)}
        start |= {"hardware": hardware(), **more}
        starts = [*(self.info.get("starts") or []), start]
        self.write_info(**facts, starts=starts, finished=False, stopped=None, failed=None)
        remember_place(self.path)


def remember_place(folder: Path) -> None:
    """Remembers where a run is, once; not in a directory that cannot be written to."""
    if folder.is_relative_to(ROOT) or folder.absolute() in remembered_places():
        return
    with suppress(OSError):
        PLACES.parent.mkdir(exist_ok=True)
        with PLACES.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{folder}\n")


def remembered_places() -> dict[Path, Path]:
    """The remembered run folders that still exist, as they were named, by absolute path."""
    try:
        lines = PLACES.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    named = [Path(line) for line in lines if line]
    return {path.absolute(): path for path in named if (path / "run.json").is_file()}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages whose numbers a run depends on."""
    installed = {package: _version(package) for package in _PACKAGES}
    return {"python": platform.python_version(), "platform": platform.platform(), **installed}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


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
        changes = hashlib.sha256(git("diff", "HEAD").encode()).hexdigest()[:12] if status else None
        return {"commit": git("rev-parse", "HEAD"), "clean": not status, "changes": changes}
    except (OSError, subprocess.SubprocessError):
        return None


def command_line() -> list[str]:
    return [Path(sys.argv[0]).name, *sys.argv[1:]]
