"""The folder of a run, from its choice to the process that has it to itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textmill.config.planning.key import plan_files, run_key, settings_key
from textmill.errors import (
    OtherRankError,
    RankLostError,
    RunStoppedError,
    TextmillError,
    UserError,
    worded,
)
from textmill.inference.load import edited_files
from textmill.recipes.planning import Planned
from textmill.run_folder.folder import WRITTEN_FOLDERS, RunFolder
from textmill.runs.resume_checks import named_again
from textmill.runtime.files import clean_leftovers
from textmill.runtime.lock import LOCK_FILE, Lock
from textmill.runtime.logging import LOG_FILE, log_to_folder

LOG = logging.getLogger("textmill")


def choose_folder(planned: Planned, *, run_dir: str | Path | None, again: bool) -> RunFolder:
    """The folder of the run: the one continued, the one named, or the one of its key."""
    key = run_key(planned.plan)
    if planned.run is not None and not again:
        refuse_other(planned.run, run_dir)
        return RunFolder(planned.run)
    if run_dir is None:
        return RunFolder.place(planned.name, key, again=again)
    folder = RunFolder(Path(run_dir)).free() if again else RunFolder(Path(run_dir))
    if folder.has_other(key):
        edited = _edited(folder, planned, settings_key(planned.plan))
        raise UserError(
            f"{run_dir} holds another run (key {folder.info['key']}, this one has {key}). "
            f"{edited}Choose another {worded('--run-dir', 'run_dir')}. "
            + named_again(folder, planned, "To go on with that run: ", [])
        )
    return folder


def tell_edited(folder: RunFolder, planned: Planned) -> None:
    """Says of a run that is still to be made which code it differs in from the newest like it."""
    if folder.info or not plan_files(planned.plan):  # without own code no record is looked at
        return
    others, settings = folder.path.parent.glob("*/run.json"), settings_key(planned.plan)
    for other in sorted(others, key=lambda file: file.stat().st_mtime, reverse=True):
        run = RunFolder(other.parent)
        if edited := _edited(run, planned, settings):
            way = named_again(run, planned, "To go on with that one: ", [])
            LOG.warning("%sThis is another run. %s", edited, way)
            return


def _edited(folder: RunFolder, planned: Planned, settings: str) -> str:
    """Which code changed since a run of the same settings; empty of another run."""
    with suppress(TextmillError):  # a damaged record says so where its run is used
        same = folder.info.get("settings_key") == settings
        if same and (files := edited_files(folder.path, plan_files(planned.plan))):
            return f"{files} changed since {folder.path} was trained. "
    return ""


def refuse_other(run: Path, run_dir: str | Path | None) -> None:
    """Refuses a second folder for a run that is named by its own."""
    if run_dir is not None and Path(run_dir).resolve() != run.resolve():
        raise UserError(
            f"{run} is a run, which continues in its own folder, so "
            f"{worded('--run-dir ', 'run_dir=')}{run_dir} cannot be. Leave one of them out, or "
            f"train anew there with {worded('--again', 'again=True')}."
        )


@contextmanager
def entered(folder: Path) -> Iterator[None]:
    """Makes the folder, which no other process may be in, and keeps its log.

    Folders that were made here go again where a start fails before anything of a run is written.

    Raises:
        UserError: It cannot be made.
    """
    fresh = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the run folder {folder} cannot be made: {error.strerror}. "
            f"Choose another one with {worded('--run-dir', 'run_dir')}."
        ) from error
    with Lock(folder, WRITTEN_FOLDERS), log_to_folder(folder):
        try:
            yield
        except BaseException:  # an interruption too
            # A folder that holds nothing of a run; then those around it that hold nothing else.
            ours = {LOG_FILE, LOCK_FILE} if fresh and folder.is_dir() else set()
            if ours and {path.name for path in folder.iterdir()} <= ours:
                with suppress(OSError):  # such as that another process has just begun in it
                    for name in ours:
                        (folder / name).unlink(missing_ok=True)
                    for empty in fresh:
                        empty.rmdir()
            raise


def clean(folder: RunFolder, *, key: str | None) -> None:
    """Removes what a killed process left half-written, and the record of a run of another key.

    Without a ``key`` the run that is there goes on. Another one, that has saved nothing, gives way.
    """
    for place in (folder.path, folder.path / "predictions", folder.path / "export"):
        clean_leftovers(place)
    if key is not None:
        folder.take_over(key)


@contextmanager
def recorded(folder: RunFolder, *, writes: bool = True) -> Iterator[None]:
    """Keeps in ``run.json`` how a run that did not finish ended, and in its log who was lost.

    A finished one stays so until it really goes on: a continuation may be refused before.
    """
    try:
        yield
    except TextmillError as error:
        how = "stopped" if isinstance(error, RunStoppedError) else "failed"
        if writes and folder.info and not folder.finished:
            folder.write_info(finished=False, **{how: str(error)})
        if writes and isinstance(error, RankLostError) and not isinstance(error, OtherRankError):
            LOG.error("%s", error, extra={"to_file": True})  # who typed the command reads it anyway
        raise
