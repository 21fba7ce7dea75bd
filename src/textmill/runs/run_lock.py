"""The folder of a run, held by the one process that works in it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textmill.errors import (
    OtherRankError,
    RankLostError,
    RunStoppedError,
    TextmillError,
    UserError,
    worded,
)
from textmill.run_folder.folder import WRITTEN_FOLDERS, RunFolder
from textmill.runtime.files import clean_leftovers
from textmill.runtime.lock import LOCK_FILE, Lock
from textmill.runtime.logging import LOG_FILE, log_to_folder

LOG = logging.getLogger("textmill")


@contextmanager
def entered(folder: Path) -> Iterator[None]:
    """Makes the folder, which no other process may be in, and keeps its log.

    Folders that were made here go again where a start fails before anything of a run is written.
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
