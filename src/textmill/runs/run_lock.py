"""Holding the folder of a run: only one process works in it."""

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
    """Makes and locks the folder, and writes its log.

    If a start fails before anything of a run is written, the folders made here are removed.
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
            # The folder, if it holds nothing of a run; then its parents, if they are empty.
            ours = {LOG_FILE, LOCK_FILE} if fresh and folder.is_dir() else set()
            if ours and {path.name for path in folder.iterdir()} <= ours:
                with suppress(OSError):  # another process may just have begun in it
                    for name in ours:
                        (folder / name).unlink(missing_ok=True)
                    for empty in fresh:
                        empty.rmdir()
            raise


def clean(folder: RunFolder, *, key: str | None) -> None:
    """Removes what a killed process left half-written.

    A run of another ``key`` that has saved nothing gives way; None: the run that is there goes on.
    """
    for place in (folder.path, folder.path / "predictions", folder.path / "export"):
        clean_leftovers(place)
    if key is not None:
        folder.take_over(key)


@contextmanager
def recorded(folder: RunFolder, *, writes: bool = True) -> Iterator[None]:
    """Records in ``run.json`` how a run ended that did not finish, and a lost rank in its log.

    A finished run stays finished until it really goes on: that may be refused before.
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
