"""Making room: which checkpoints and runs can be deleted, and how much that frees."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from textmill.checkpoint.layout import BEST, CHECKPOINTS, LAST, MODULES
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.checkpoint.store import Checkpoints
from textmill.errors import CheckpointError, TextmillError, UserError, worded
from textmill.run_folder.folder import (
    WRITTEN_FOLDERS,
    RunFolder,
    is_of_lightning,
    is_run_folder,
    runs_in,
)
from textmill.runtime.disk import outward_links
from textmill.runtime.files import LEFTOVER, clean_leftovers, leftovers, remove_folder, size_of
from textmill.runtime.lock import Lock, owner_of

LOG = logging.getLogger("textmill")

_AGE = re.compile(r"(\d+)\s*([dhw])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


@dataclass(frozen=True)
class Deletion:
    """A folder to delete, or a file that was left half-written."""

    path: Path
    """A checkpoint, or a whole run folder."""
    run: Path
    """The run that it belongs to."""
    size: int
    """Bytes that are freed."""


@dataclass(frozen=True)
class PrunePlan:
    """The files to delete, and the runs that are not touched."""

    deletions: tuple[Deletion, ...]
    kept: Mapping[Path, str]
    """Why nothing is deleted of other runs: ``not finished``, ``younger``, ``in use by host:pid``,
    or what is wrong with the run."""
    written: Mapping[Path, tuple[int | None, ...]] = field(default_factory=dict)
    """When the record and the values of each run were last written."""

    @property
    def size(self) -> int:
        return sum(item.size for item in self.deletions)


def age(text: str) -> timedelta:
    """An age as it is typed: ``12h``, ``30d``, ``8w``."""
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
) -> PrunePlan:
    """Finds what can be deleted; nothing is changed.

    Only finished runs are touched, those below ``root`` or itself, and only if no process works in
    them. The best checkpoint of a run and the ``keep`` newest stay, unless whole runs are deleted.
    """
    if not root.is_dir():
        raise UserError(f"There is no folder {root}; wanted the folder that runs are in.")
    if keep < 0:
        raise UserError(f"{worded('--keep', 'keep')} must be 0 or more, but is {keep}.")
    deletions: list[Deletion] = []
    kept: dict[Path, str] = {}
    written: dict[Path, tuple[int | None, ...]] = {}
    at = now or datetime.now().astimezone()
    for run in runs_in(root):
        written[run] = _written(run)  # before anything is read of it
        why = _why_not(run, older_than, at)
        if why is None and (owner := owner_of(run)):
            why = f"in use by {owner}"
        # A run inside the folder of another would be deleted with it, finished or not.
        if why is None and whole_runs and any(other != run for other in runs_in(run)):
            why = "another run lies in its folder"
        try:
            going = [] if why else [run] if whole_runs else _going(run, keep=keep)
        except CheckpointError as error:
            why, going = f"its best checkpoint cannot be told: {error}", []
        if why is not None:
            kept[run] = why
        for path in going:
            size = size_of(path) if path.is_dir() else path.lstat().st_size
            deletions.append(Deletion(path, run, size))
    return PrunePlan(tuple(deletions), kept, written)


def _why_not(run: Path, older_than: timedelta | None, now: datetime) -> str | None:
    if run.is_symlink() or not is_run_folder(run):
        return "not a run folder of its own"
    if links := outward_links(run, WRITTEN_FOLDERS):
        return f"{links[0].relative_to(run)} is a link to {os.path.realpath(links[0])}"
    try:
        if not RunFolder(run).finished:
            return "not finished"
    except TextmillError as error:
        return f"unreadable: {error}"
    newest = max(time for time in _written(run) if time is not None)
    written = datetime.fromtimestamp(newest / 1e9, now.tzinfo)
    return "younger" if older_than is not None and written > now - older_than else None


def _written(run: Path) -> tuple[int | None, ...]:
    """When a run's record and values were last written, in ns; None for a missing file."""
    return tuple(
        file.stat().st_mtime_ns if file.exists() else None
        for file in (run / "run.json", run / "metrics.jsonl")
    )


def _going(run: Path, *, keep: int) -> list[Path]:
    """What killed processes left half-written; then checkpoints to delete, the oldest first."""
    saved = SavedCheckpoints.of(run)
    found = [path for path in saved.paths() if path.is_dir() and not path.is_symlink()]
    best = saved.pointer("best")
    named = RunFolder(run).result.get("best")
    points = not is_of_lightning(run)  # there a ModelCheckpoint decides where the best is
    points = points and isinstance(named, Mapping) and named.get("step") is not None
    if best is None and found and points:
        raise CheckpointError(f"{BEST} is missing, and run.json names a best one")
    best = best or saved.pointer("last")
    if found and (best is None or not (saved.folder / best.folder).is_dir()):
        raise CheckpointError(f"neither {BEST} nor {LAST} points to one that is there")
    if found and best is not None:
        saved.manifest(saved.folder / best.folder)
        if not best.fits(saved.folder / best.folder):
            raise CheckpointError(f"{best.folder} is not the one that was marked as the best")
    stay = {path.name for path in found[len(found) - keep :]} if keep else set()
    stay |= set() if best is None else {best.folder}
    places = (run, *(run / name for name in (CHECKPOINTS, "predictions", "export", MODULES)))
    left = [pair for place in places for pair in leftovers(place).items()]
    return [
        *(path for path, final in left if ".tmp-" in path.name or final.exists()),
        *(path for path in found if path.name not in stay),
    ]


def prune(plan: PrunePlan) -> int:
    """Deletes what a plan says, run by run under its lock; returns the bytes that were freed.

    A run that went on since the plan was made is left alone, even if it has ended again: its best
    checkpoint may be another now.
    """
    freed = 0
    for run in dict.fromkeys(item.run for item in plan.deletions):
        with Lock(run, WRITTEN_FOLDERS):
            if not RunFolder(run).finished or _written(run) != plan.written.get(run):
                LOG.warning("%s was gone on with meanwhile: it is left alone.", run)
                continue
            for item in (item for item in plan.deletions if item.run == run):
                if LEFTOVER.fullmatch(item.path.name):
                    clean_leftovers(item.path.parent)
                else:
                    if item.path != run:
                        Checkpoints.of(run).point_elsewhere(item.path)
                    remove_folder(item.path)
                freed += item.size
    return freed
