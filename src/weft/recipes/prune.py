"""Making room: which checkpoints and runs can go, and what that frees."""

import fcntl
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from weft.checkpoint.pointer import FOLDER, Pointer
from weft.errors import CheckpointError, UserError, WeftError
from weft.recipes.run_folder import RunFolder, is_run_folder
from weft.runtime.disk import outward_links
from weft.runtime.files import remove_folder, write_atomic
from weft.runtime.lock import Lock

__all__ = ["Doomed", "Kept", "Plan", "age", "plan_prune", "prune"]

LOG = logging.getLogger("weft")

_AGE = re.compile(r"(\d+)\s*([dhw])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


@dataclass(frozen=True)
class Doomed:
    """A folder that is to go."""

    path: Path
    """A checkpoint, or a whole run folder."""
    run: Path
    """The run that it belongs to."""
    size: int
    """Bytes that are freed."""


@dataclass(frozen=True)
class Kept:
    """A run that is not touched."""

    run: Path
    """Its folder."""
    why: str
    """``not finished``, ``younger``, ``in use by host:pid``, or what is wrong with it."""


@dataclass(frozen=True)
class Plan:
    """What is to go, and which runs are not touched."""

    doomed: tuple[Doomed, ...]
    """What goes."""
    kept: tuple[Kept, ...]
    """Runs of which nothing goes whatever they hold."""
    written: Mapping[Path, tuple[int | None, ...]] = field(default_factory=dict)
    """For each run of which something goes, when its record and its values were written to last."""

    @property
    def size(self) -> int:
        """Bytes that are freed in all."""
        return sum(item.size for item in self.doomed)


def age(text: str) -> timedelta:
    """An age as it is typed: ``12h``, ``30d``, ``8w``.

    Raises:
        UserError: It is not one.

    Example:
        >>> age("30d").days
        30
    """
    found = _AGE.fullmatch(text.strip())
    if not found or len(found[1]) > 6:
        raise UserError(f"'{text}' is not an age: wanted a number of hours, days or weeks, as 30d.")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def plan_prune(
    root: Path,
    *,
    keep: int = 1,
    older_than: timedelta | None = None,
    whole_runs: bool = False,
    now: datetime | None = None,
) -> Plan:
    """Finds what can go; nothing is changed.

    Only finished runs are touched, and only those that no process works in. The best checkpoint of
    a run always stays, unless whole runs are to go.

    Args:
        root: A folder with runs in it, however deep; or one run.
        keep: So many of a run's newest checkpoints stay besides the best.
        older_than: Only runs that were written to last so long ago.
        whole_runs: Whole run folders go, with their best checkpoint, values and record.
        now: The present moment.

    Raises:
        UserError: There is no such folder, or a number is negative.
    """
    if not root.is_dir():
        raise UserError(f"There is no folder {root}; wanted the folder that runs are in.")
    if keep < 0:
        raise UserError(f"--keep must be 0 or more, but is {keep}.")
    doomed: list[Doomed] = []
    kept: list[Kept] = []
    written: dict[Path, tuple[int | None, ...]] = {}
    at = now or datetime.now().astimezone()
    for run in sorted(file.parent for file in root.glob("**/run.json")):
        written[run] = _written(run)  # before anything is read of it
        why = _why_not(run, older_than, at) or _in_use(run)
        if why is None and whole_runs and _holds_another(run):
            why = "another run lies in its folder"
        try:
            going = [] if why else [run] if whole_runs else _going(run, keep=keep)
        except CheckpointError as error:
            why, going = f"its best checkpoint cannot be told: {error}", []
        if why is not None:
            kept.append(Kept(run, why))
        doomed += [Doomed(path, run, _size(path)) for path in going]
    return Plan(tuple(doomed), tuple(kept), {item.run: written[item.run] for item in doomed})


def _why_not(run: Path, older_than: timedelta | None, now: datetime) -> str | None:
    """Why a run is not touched, or None."""
    if run.is_symlink() or not is_run_folder(run):
        return "not a run folder of its own"
    if links := outward_links(run):
        return f"{links[0].relative_to(run)} is a link to {links[0].resolve()}"
    try:
        if not RunFolder(run).finished:
            return "not finished"
    except WeftError as error:
        return f"unreadable: {error}"
    files = [path for path in (run / "run.json", run / "metrics.jsonl") if path.exists()]
    written = datetime.fromtimestamp(max(path.stat().st_mtime for path in files), now.tzinfo)
    return "younger" if older_than is not None and written > now - older_than else None


def _written(run: Path) -> tuple[int | None, ...]:
    """When the files that a run at work writes were written, in ns; None where one is not there."""
    return tuple(
        file.stat().st_mtime_ns if file.exists() else None
        for file in (run / "run.json", run / "metrics.jsonl")
    )


def _holds_another(run: Path) -> bool:
    """Whether a run lies beneath a run: it would go with it, finished or not."""
    return any(file.parent != run for file in run.glob("**/run.json"))


def _in_use(run: Path) -> str | None:
    """Who works in a run, or None; its lock file is read only."""
    try:
        descriptor = os.open(run / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        owner = os.pread(descriptor, 300, 0).decode("utf-8", "replace").strip()
        return f"in use by {owner or 'another process'}"
    finally:
        os.close(descriptor)


def _going(run: Path, *, keep: int) -> list[Path]:
    """Checkpoints that go, the oldest first.

    Raises:
        CheckpointError: There are checkpoints, but which of them is the best cannot be told.
    """
    folder = run / "checkpoints"
    found = sorted(p for p in folder.glob("step-*") if FOLDER.fullmatch(p.name) and p.is_dir())
    found = [path for path in found if not path.is_symlink()]
    best = Pointer.read(folder / "best.json") or Pointer.read(folder / "last.json")
    if found and (best is None or not (folder / best.folder).is_dir()):
        raise CheckpointError("neither best.json nor last.json points to one that is there")
    others = [path for path in found if best is None or path.name != best.folder]
    newest = {path.name for path in found[len(found) - keep :]} if keep else set()
    return [path for path in others if path.name not in newest]


def _size(path: Path) -> int:
    return sum(p.lstat().st_size for p in path.rglob("*") if p.is_file() and not p.is_symlink())


def prune(plan: Plan) -> int:
    """Deletes what a plan says, run by run under its lock; gives the bytes that were freed.

    A run that was gone on with since the plan was made is left alone, even where it has ended
    again: its best checkpoint may be another now.

    Raises:
        InUseError: A process works in a run now.
        StorageError: A folder cannot be deleted; it is then still whole.
    """
    freed = 0
    for run in dict.fromkeys(item.run for item in plan.doomed):
        with Lock(run):
            if not RunFolder(run).finished or _written(run) != plan.written.get(run):
                LOG.warning("%s was gone on with meanwhile: it is left alone.", run)
                continue
            for item in (item for item in plan.doomed if item.run == run):
                if item.path != run:
                    _point_elsewhere(run / "checkpoints", item.path)
                remove_folder(item.path)
                freed += item.size
    return freed


def _point_elsewhere(folder: Path, going: Path) -> None:
    """Points ``last.json`` to the best where the last one goes: what it names must be there."""
    last, best = (Pointer.read(folder / name) for name in ("last.json", "best.json"))
    if last is not None and best is not None and last.folder == going.name != best.folder:
        write_atomic(folder / "last.json", Pointer.to(folder / best.folder).to_bytes())
