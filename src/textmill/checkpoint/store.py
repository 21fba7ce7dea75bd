"""The checkpoints of one run: saved whole or not at all, and verified on loading.

A save writes a temporary folder, flushes everything, renames it, points ``last.json`` to it, and
only then deletes what is older. A crash, a full disk or a power cut between any two of these steps
leaves the checkpoint before it, or the new one, never neither.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import BEST, LAST, folder_name
from textmill.checkpoint.manifest import Pointer
from textmill.checkpoint.parts import Stateful, load_part, load_parts
from textmill.checkpoint.run_seal import CONFIG
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.checkpoint.writing import split_parts, write_checkpoint
from textmill.errors import CheckpointError, StorageError, UserError
from textmill.runtime.files import clean_leftovers, make_folder, remove_folder, write_atomic

_logger = logging.getLogger("textmill.checkpoint")


class Checkpoints(SavedCheckpoints):
    """Saves the parts of a run and restores them, bitwise.

    Args:
        folder: As for `SavedCheckpoints`; made by the first save.
        keep: How many of the newest stay besides the best. At least 1.
        writes: Whether this process writes there; of many ranks one does.
    """

    load_part = staticmethod(load_part)

    def __init__(self, folder: Path, *, keep: int = 3, writes: bool = True) -> None:
        if keep < 1:
            raise UserError(f"The number of checkpoints to keep must be at least 1, but is {keep}.")
        super().__init__(folder)
        self.keep, self.writes = keep, writes
        self.kept_steps: Collection[int] = ()
        """The steps of further checkpoints that are not deleted."""
        self._new = not folder.parent.is_dir()  # else it is not made again: it was renamed

    def save(
        self,
        step: int,
        parts: Mapping[str, Stateful | Mapping[str, Any]],
        *,
        write_text: Callable[[Path], None] | None = None,
    ) -> Path:
        """Saves all parts, or their states, under a step, in place of a checkpoint of that step.

        ``write_text`` writes the text processor into the empty folder it is given. What is returned
        is the new folder, whole and on the disk.

        Raises:
            StorageError: no room, or the disk failed; names file, bytes needed and bytes free. The
                checkpoints before are intact. Or the run's ``config.yaml`` is gone since it began.
            CheckpointError: a part holds something that cannot be saved; nothing was written.
        """
        if step < 0:
            raise CheckpointError(f"The step must not be negative, but is {step}.")
        final = self.folder / folder_name(step)
        tensors, document = split_parts(step, parts)
        config = self.folder.parent / CONFIG
        if self.seal is not None and config.parent.is_dir() and not config.exists():
            raise StorageError(
                f"There is no {config} any more, which says what the weights mean: was the run "
                "deleted while it trained? Nothing was saved. Start again with the same command."
            )
        make_folder(self.folder, parents=self._new)
        clean_leftovers(self.folder)
        self._good.discard(final.name)
        serials = [manifest.serial for _, manifest in self._candidates()[0]]
        last = self._last_or_note([])
        write_checkpoint(
            final,
            step=step,
            serial=1 + max([*serials, 0 if last is None else last.serial]),
            tensors=tensors,
            document=document,
            write_text=write_text,
            run=None if self.seal is None else self.seal.run,
        )
        self._point(LAST, final)
        self._bad.discard(final.name)
        self._good.add(final.name)
        self._rotate()
        return final

    def restore(self, parts: Mapping[str, Stateful], *, step: int | None = None) -> int | None:
        """Loads all parts from the newest good checkpoint.

        Why a newer one was skipped is said in one line, as a warning of the logger. One whose save
        was cut off just before ``last.json`` was written is the last from now on. That of ``step``
        is taken unless it is damaged. Returned is the step, or None if nothing was ever saved.

        Raises:
            CheckpointError: there are checkpoints and none is good, or the newest good one does not
                fit; nothing was changed.
        """
        _ = self.seal  # of a run that begins: save compares with it
        if self.writes and self.folder.is_dir():
            clean_leftovers(self.folder)
        found = self.newest_good(step)
        if found is None:
            return None
        path, manifest = found
        load_parts(path, manifest, parts)
        pointer = self._last_or_note([])
        if pointer is None or pointer.serial < manifest.serial:
            self._point(LAST, path)
        return manifest.step

    def mark_best(self, step: int) -> None:
        """Points ``best.json`` to the checkpoint of a step, which then outlives rotation."""
        path = self.folder / folder_name(step)
        if not self.writes:
            return
        if not path.is_dir():
            raise CheckpointError(f"{path} cannot be marked as best: there is no such checkpoint.")
        self._point(BEST, path)
        self._rotate()

    def point_elsewhere(self, going: Path) -> None:
        """Points ``last.json`` to the best where the last one goes: what it names must be there."""
        last, best = self.pointer("last"), self.pointer("best")
        if last is not None and best is not None and last.folder == going.name != best.folder:
            self._point(LAST, self.folder / best.folder)

    def _point(self, name: str, path: Path) -> None:
        if self.writes:
            write_atomic(self.folder / name, Pointer.to(path, name).to_bytes())

    def _rotate(self) -> None:
        """Deletes what is too old: never the best or the kept steps', and not before a good one."""
        try:
            best = self.pointer("best")
        except CheckpointError as error:
            _logger.warning("%s; no checkpoint is deleted, since one of them is the best.", error)
            return
        serials = {path.name: manifest.serial for path, manifest in self._candidates()[0]}
        ranked = sorted(
            self.paths(),
            key=lambda path: (path.name not in self._bad, serials.get(path.name, 0), path.name),
            reverse=True,
        )
        if not ranked or ranked[0].name not in self._good:
            return
        stay = set() if best is None else {best.folder}
        stay |= {folder_name(step) for step in self.kept_steps}
        others = [path for path in ranked if path.name not in stay]
        for path in others[self.keep :]:
            try:
                remove_folder(path)
            except StorageError as error:
                _logger.warning("The old %s is not deleted: %s", path.name, error)
