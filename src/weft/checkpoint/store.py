"""The checkpoints of one run: saved whole or not at all, and verified on loading.

A save writes a temporary folder, flushes everything, renames it, points ``last.json`` to it, and
only then deletes what is older. A crash, a full disk or a power cut between any two of these steps
leaves the checkpoint before it, or the new one, never neither.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from weft.checkpoint.manifest import MANIFEST, Manifest, damage, read_small, unlisted, verify
from weft.checkpoint.parts import Stateful, load_part, load_parts
from weft.checkpoint.pointer import FOLDER, Pointer
from weft.checkpoint.selected import selected_step
from weft.checkpoint.tensors import tensors_size
from weft.checkpoint.writing import check_room, split_parts, write_checkpoint
from weft.errors import CheckpointError, StorageError, UserError
from weft.runtime.files import clean_leftovers, make_folder, remove_folder, write_atomic

__all__ = ["Checkpoints", "Found", "Stateful"]

T = TypeVar("T")

LAST, BEST = "last.json", "best.json"

_logger = logging.getLogger("weft.checkpoint")


@dataclass(frozen=True)
class Found:
    """The newest good checkpoint."""

    path: Path
    """Its folder."""
    manifest: Manifest
    """Its list of files."""
    reason: str | None
    """One line on what newer was skipped and why; None when nothing was."""


class Checkpoints:
    """Saves the parts of a run and restores them, bitwise.

    Args:
        folder: Where the checkpoints are, ``checkpoints`` in the run folder; made by the first
        save.
        keep: How many of the newest stay besides the best. At least 1.

    Example:
        >>> import tempfile
        >>> from torch import nn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(Path(folder) / "checkpoints", keep=2)
        ...     _ = checkpoints.save(1000, {"model": nn.Linear(2, 1)})
        ...     checkpoints.restore({"model": nn.Linear(2, 1)}), checkpoints.last().name
        (1000, 'step-00001000')
    """

    verify = staticmethod(verify)
    load_part = staticmethod(load_part)

    def __init__(self, folder: Path, *, keep: int = 3) -> None:
        if keep < 1:
            raise UserError(f"The number of checkpoints to keep must be at least 1, but is {keep}.")
        self.folder = folder
        self.keep = keep
        self.kept_step: int | None = None
        """The step of one more checkpoint that is not deleted; none at first."""
        self._new = not folder.parent.is_dir()  # else it is not made again: it was renamed
        self._good: set[str] = set()
        self._bad: set[str] = set()

    def save(
        self,
        step: int,
        parts: Mapping[str, Stateful],
        *,
        write_text: Callable[[Path], None] | None = None,
    ) -> Path:
        """Saves all parts under a step; a checkpoint of the same step is replaced.

        Args:
            step: Optimizer steps taken; names the folder.
            parts: What must survive, by name. Tensors of ``model`` go to ``model.safetensors``, and
            so on.
            write_text: Writes the text path into the empty folder it is given.

        Returns:
            The new folder, whole and on the disk.

        Raises:
            StorageError: no room, or the disk failed; names file, bytes needed and bytes free. The
                checkpoints before are intact.
            CheckpointError: a part holds something that cannot be saved; nothing was written.
        """
        if step < 0:
            raise CheckpointError(f"The step must not be negative, but is {step}.")
        tensors, document = split_parts(step, parts)
        make_folder(self.folder, parents=self._new)
        clean_leftovers(self.folder)
        newest = next((manifest for _, manifest in self._candidates()[0]), None)
        size = sum(map(tensors_size, tensors.values())) + len(document)
        check_room(self.folder, size, before=newest)
        final = self.folder / f"step-{step:08d}"
        self._good.discard(final.name)
        write_checkpoint(
            final,
            step=step,
            serial=self._serial(),
            tensors=tensors,
            document=document,
            write_text=write_text,
        )
        self._point(LAST, final)
        self._bad.discard(final.name)
        self._good.add(final.name)
        self._rotate()
        return final

    def restore(self, parts: Mapping[str, Stateful], *, step: int | None = None) -> int | None:
        """Loads all parts from the newest good checkpoint.

        Why a newer one was skipped is said in one line, as a warning of the logger. One whose save
        was cut off just before ``last.json`` was written is the last from now on.

        Args:
            parts: What is loaded, by name.
            step: Takes the checkpoint of this step; the newest good one only if it is damaged.

        Returns:
            The step it was saved at; None when nothing was ever saved here.

        Raises:
            CheckpointError: there are checkpoints and none is good, or the newest good one does not
            fit;
                nothing was changed.
        """
        if self.folder.is_dir():
            clean_leftovers(self.folder)
        found = (None if step is None else self._good_of(step)) or self.newest_good()
        if found is None:
            return None
        if found.reason:
            _logger.warning("%s", found.reason)
        load_parts(found.path, found.manifest, parts)
        pointer = self._last_or_note([])
        if pointer is None or pointer.serial < found.manifest.serial:
            self._point(LAST, found.path)
        return found.manifest.step

    def _good_of(self, step: int) -> Found | None:
        """The checkpoint of a step; none, and a warning, where it is damaged or gone."""
        path = self.folder / f"step-{step:08d}"
        try:
            manifest = Manifest.read(path)
        except CheckpointError as error:
            problems = [str(error)]
        else:
            problems = damage(path, manifest)
            if not problems:
                return Found(path, manifest, None)
        _logger.warning("checkpoint %s skipped: %s", path.name, "; ".join(problems[:3]))
        return None

    def newest_good(self) -> Found | None:
        """Finds the newest checkpoint of which every byte is as saved.

        Returns:
            It, with the reason why newer ones were skipped; None when there are none at all.

        Raises:
            CheckpointError: there are some, and none is good; says what is wrong with each.
        """
        skipped: list[str] = []
        pointer = self._last_or_note(skipped)
        candidates, unreadable = self._candidates()
        if pointer is not None:  # whatever is in the folder it names, that is the newest
            candidates.sort(key=lambda pair: pair[0].name != pointer.folder)
            candidates.sort(key=lambda pair: pair[1].serial <= pointer.serial)
        chosen = None
        for path, manifest in candidates:
            problems = self._problems(path, manifest, pointer)
            if not problems:
                chosen = path, manifest
                break
            self._bad.add(path.name)
            skipped.append(f"checkpoint {path.name} skipped: {'; '.join(problems[:3])}")
        for path, problem in unreadable:
            self._bad.add(path.name)
            is_last = pointer is not None and pointer.folder == path.name
            if chosen is None or is_last or path.name > chosen[0].name:
                skipped.append(f"checkpoint {path.name} skipped: {problem}")
        if chosen is None:
            if not skipped:
                return None
            raise CheckpointError(
                f"No checkpoint in {self.folder} can be used.\n"
                + "\n".join(f"  {line}" for line in skipped)
                + "\nRestore the folder from a copy, or start a new run."
            )
        self._good.add(chosen[0].name)
        reason = "; ".join([*skipped, f"using {chosen[0].name}"]) if skipped else None
        return Found(*chosen, reason)

    def last(self) -> Path | None:
        """The checkpoint saved last, not verified; None when there is none."""
        return self._pointed(LAST)

    def best(self) -> Path | None:
        """The checkpoint marked as best, not verified; None when none was.

        Raises:
            CheckpointError: ``best.json`` is damaged, or what it points to is gone.
        """
        return self._pointed(BEST)

    def use(
        self,
        name: Literal["best", "last"],
        use: Callable[[Path], T],
        *,
        refused: tuple[type[Exception], ...] = (CheckpointError,),
    ) -> T | None:
        """Uses the best or the last checkpoint; where it is damaged, the newest that is good.

        Where only ``best.json`` is damaged, the best is known from the evaluations that the newest
        checkpoint keeps. One line of the log says why another is used, or how it was found.

        Args:
            name: ``best`` (the last one where none was marked), or ``last``.
            use: Called with a checkpoint's folder; verifies what it reads.
            refused: What ``use`` raises of a checkpoint that is to be passed over.

        Returns:
            What ``use`` gives; None where there is no checkpoint.

        Raises:
            CheckpointError: there are some, and none can be used; says what is wrong with each.
        """
        skipped: list[str] = []
        for path in self._by_preference(name, skipped):
            try:
                used = use(path)
            except refused as error:
                skipped.append(f"checkpoint {path.name} skipped: {error}")
                continue
            if skipped:
                _logger.warning("%s; using %s", "; ".join(skipped), path.name)
            return used
        if not skipped:
            return None
        lines = "\n".join(f"  {line}" for line in skipped)
        raise CheckpointError(f"No checkpoint in {self.folder} can be used.\n{lines}")

    def _by_preference(self, name: str, notes: list[str]) -> Iterator[Path]:
        """The best where it is asked for, the last, then all from the newest on; each once."""
        seen = set[str]()
        for pointer in (BEST, LAST) if name == "best" else (LAST,):
            try:
                path = self._pointed(pointer)
            except CheckpointError as error:
                notes.append(str(error))
                path = self._selected(notes) if pointer == BEST else None
            if path is not None and path.name not in seen:
                seen.add(path.name)
                yield path
        others = [path for path in self._folders() if path.name not in seen]
        yield from sorted(others, key=lambda path: -int(path.name.removeprefix("step-")))

    def _selected(self, notes: list[str]) -> Path | None:
        """The best by what the newest checkpoint with a good state kept of the evaluations."""
        for newest, _ in self._candidates()[0]:
            try:
                step = selected_step(newest)
            except CheckpointError:
                continue  # the next one knows what was best when it was saved
            if step is None:
                return None
            path = self.folder / f"step-{step:08d}"
            if not path.is_dir():
                return None
            notes.append(f"{path.name} is the best by the evaluations in {newest.name}")
            return path
        return None

    def mark_best(self, step: int) -> None:
        """Points ``best.json`` to the checkpoint of a step, which then outlives rotation.

        Raises:
            CheckpointError: there is no checkpoint of that step.
            StorageError: the pointer cannot be written; the old one is still there.
        """
        path = self.folder / f"step-{step:08d}"
        if not path.is_dir():
            raise CheckpointError(f"{path} cannot be marked as best: there is no such checkpoint.")
        self._point(BEST, path)
        self._rotate()

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if FOLDER.fullmatch(path.name)]
        return sorted(found, key=lambda path: path.name)

    def _candidates(self) -> tuple[list[tuple[Path, Manifest]], list[tuple[Path, str]]]:
        """Those with a readable manifest, the newest first, and the others with the reason."""
        readable, unreadable = [], []
        for path in self._folders():
            try:
                if path.is_symlink():
                    raise CheckpointError("a symbolic link")
                manifest = Manifest.read(path)
                if path.name != f"step-{manifest.step:08d}":
                    raise CheckpointError(f"{MANIFEST}: it is of step {manifest.step}")
                readable.append((path, manifest))
            except CheckpointError as error:
                unreadable.append((path, str(error)))
        return sorted(readable, key=lambda pair: -pair[1].serial), unreadable[::-1]

    def _problems(self, path: Path, manifest: Manifest, pointer: Pointer | None) -> list[str]:
        if pointer and pointer.folder == path.name and manifest.serial <= pointer.serial:
            found = hashlib.sha256(read_small(path / MANIFEST)).hexdigest()
            if found != pointer.manifest_sha256:
                return [f"{MANIFEST}: it is not the one that {LAST} points to"]
        problems = damage(path, manifest)
        if not problems and (extra := unlisted(path, manifest)):
            _logger.warning("%s holds files that are not of it: %s", path.name, ", ".join(extra))
        return problems

    def _last_or_note(self, notes: list[str]) -> Pointer | None:
        try:
            pointer = Pointer.read(self.folder / LAST)
        except CheckpointError as error:
            notes.append(str(error))
            return None
        if pointer and not (self.folder / pointer.folder).is_dir():
            gone = f"{LAST} points to it, but it is gone"
            notes.append(f"checkpoint {pointer.folder} skipped: {gone}")
        return pointer

    def _pointed(self, name: str) -> Path | None:
        pointer = Pointer.read(self.folder / name)
        if pointer is None:
            return None
        path = self.folder / pointer.folder
        if not path.is_dir():
            raise CheckpointError(
                f"{self.folder / name} points to {pointer.folder}, which is gone."
            )
        return path

    def _point(self, name: str, path: Path) -> None:
        write_atomic(self.folder / name, Pointer.to(path).to_bytes())

    def _serial(self) -> int:
        candidates, _ = self._candidates()
        serials = [manifest.serial for _, manifest in candidates]
        try:
            pointer = Pointer.read(self.folder / LAST)
        except CheckpointError:
            pointer = None
        return max([*serials, pointer.serial if pointer else 0], default=0) + 1

    def _rotate(self) -> None:
        """Deletes what is too old: never the best or the kept step's, and not before a good one."""
        try:
            best = Pointer.read(self.folder / BEST)
        except CheckpointError as error:
            _logger.warning("%s; no checkpoint is deleted, since one of them is the best.", error)
            return
        serials = {path.name: manifest.serial for path, manifest in self._candidates()[0]}
        ranked = sorted(
            self._folders(),
            key=lambda path: (path.name not in self._bad, serials.get(path.name, 0), path.name),
            reverse=True,
        )
        if not ranked or ranked[0].name not in self._good:
            return
        stay = set() if best is None else {best.folder}
        stay |= set() if self.kept_step is None else {f"step-{self.kept_step:08d}"}
        others = [path for path in ranked if path.name not in stay]
        for path in others[self.keep :]:
            try:
                remove_folder(path)
            except StorageError as error:
                _logger.warning("The old %s is not deleted: %s", path.name, error)
