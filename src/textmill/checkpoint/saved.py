"""The checkpoints that a run has: which is the newest, which the best, and which can be used."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, TypeVar

from textmill.checkpoint.layout import (
    BEST,
    CHECKPOINTS,
    LAST,
    MANIFEST,
    folder_name,
    is_folder_name,
    step_of,
)
from textmill.checkpoint.manifest import Manifest, Pointer
from textmill.checkpoint.parts import plain_parts
from textmill.checkpoint.run_seal import CONFIG, RunSeal
from textmill.errors import CheckpointError

T = TypeVar("T")
Which = Literal["best", "last"]
FILES: Mapping[Which, str] = {"best": BEST, "last": LAST}

_logger = logging.getLogger("textmill.checkpoint")


class SavedCheckpoints:
    """Finds checkpoints, and changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._good: set[str] = set()
        self._bad: set[str] = set()

    @classmethod
    def of(cls, run: Path) -> Self:
        """The checkpoints of a run folder."""
        return cls(run / CHECKPOINTS)

    def paths(self) -> list[Path]:
        """The folder of each, good or not, those of earlier steps first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if is_folder_name(path.name)]
        return sorted(found, key=step_of)

    @cached_property
    def seal(self) -> RunSeal | None:
        """The seal of their run; None for a folder outside a run."""
        return RunSeal.read(self.folder.parent)

    def newest_good(self, first: int | None = None) -> tuple[Path, Manifest] | None:
        """The newest checkpoint of which every byte is as saved; of a step, if ``first`` is good.

        One line of the log says why another is used. None if there is no checkpoint.
        """

        def good(path: Path) -> tuple[Path, Manifest]:
            manifest = self.manifest(path)
            if problems := manifest.unusable(path):
                raise CheckpointError("; ".join(problems[:3]))
            if extra := manifest.unlisted(path):
                text = "%s holds files that are not of it: %s"
                _logger.warning(text, path.name, ", ".join(extra))
            self._good.add(path.name)
            return path, manifest

        return self.use("last" if first is None else first, good)

    def newest(self) -> Manifest | None:
        """The manifest of the newest checkpoint that has a good one; its files are not verified."""
        return next((manifest for _, manifest in self._candidates()[0]), None)

    def verify(self, path: Path) -> list[str]:
        """Everything that is wrong with a checkpoint folder, one line each; nothing if good."""
        try:
            manifest = self.manifest(path)
        except CheckpointError as error:
            return [str(error)]
        extra = [f"{name}: not listed in {MANIFEST}" for name in manifest.unlisted(path)]
        return [*manifest.unusable(path), *extra]

    def last(self) -> Path | None:
        """The checkpoint saved last, not verified; None when there is none."""
        return self.pointed("last")[0]

    def best(self) -> Path | None:
        """The checkpoint marked as best, not verified; None when none was."""
        return self.pointed("best")[0]

    def pointer(self, name: Which) -> Pointer | None:
        """The content of ``best.json`` or ``last.json``; None if there is none."""
        return Pointer.read(self.folder / FILES[name])

    def pointed(self, name: Which) -> tuple[Path | None, Pointer | None]:
        """The checkpoint that is pointed to, which must be there."""
        if (pointer := self.pointer(name)) is None:
            return None, None
        path = self.folder / pointer.folder
        if not path.is_dir():
            raise CheckpointError(
                f"{self.folder / FILES[name]}: it points to {path.name}, which is gone"
            )
        return path, pointer

    def use(
        self,
        first: Which | int,
        use: Callable[[Path], T],
        *,
        refused: tuple[type[Exception], ...] = (CheckpointError,),
    ) -> T | None:
        """Uses the best or the last checkpoint, or that of a step; else the newest good one.

        If only ``best.json`` is damaged or missing, the evaluations in the newest checkpoint say
        which one is the best. A checkpoint of another run or step is damaged, too. One line of the
        log says why another is used, or how it was found.

        The best is the last if none was marked. ``use`` verifies what it reads; its errors that are
        ``refused`` pass a checkpoint over. Without any checkpoint None is returned.
        """
        skipped: list[str] = []
        for path, pointer in self._by_preference(first, skipped):
            try:
                self.manifest(path)
                if pointer is not None and not pointer.fits(path):
                    problem = f"it is not the one that {pointer.name} points to"
                    raise CheckpointError(f"{MANIFEST}: {problem}")
                used = use(path)
            except refused as error:
                self._bad.add(path.name)
                skipped.append(f"checkpoint {path.name} skipped: {error}")
                continue
            if skipped:
                _logger.warning("%s; using %s", "; ".join(skipped), path.name)
            return used
        if not skipped:
            return None
        lines = "\n".join(f"  {line}" for line in skipped)
        raise CheckpointError(
            f"No checkpoint in {self.folder} can be used.\n{lines}\n"
            "Restore the folder from a copy, or start a new run."
        )

    def _by_preference(
        self, first: Which | int, notes: list[str]
    ) -> Iterator[tuple[Path, Pointer | None]]:
        """The checkpoint that is asked for, then all from the newest on; each once."""
        path, pointer, problem = None, None, f"{BEST}: missing"
        if isinstance(first, int):
            path = self.folder / folder_name(first)
        elif first == "best":
            try:
                path, pointer = self.pointed("best")
            except CheckpointError as error:
                problem = str(error)
            path = path or self._selected(notes, problem)
        if path is not None:
            yield path, pointer
        last, newest = self._last_or_note(notes), 0.0
        order: dict[Path, float] = {}  # by the number of the save
        for each in self.paths():
            try:
                order[each] = self.manifest(each).serial
                newest = max(newest, order[each])
            except CheckpointError:  # it is taken to be newer than those of earlier steps
                order[each] = newest + 0.5
            if last is not None and each.name == last.folder:
                order[each] = max(order[each], last.serial)  # whatever is in the folder now
        for each in sorted(order, key=order.__getitem__, reverse=True):
            if each != path:
                yield each, last if last is not None and each.name == last.folder else None

    def _selected(self, notes: list[str], problem: str) -> Path | None:
        """The best checkpoint by the evaluations in the newest one with a good state.

        A missing pointer is no problem if nothing was selected.
        """
        for newest, manifest in self._candidates()[0]:
            try:
                state = plain_parts(newest, manifest).get("selection")
            except CheckpointError:
                continue  # the next one knows what was best when it was saved
            step = state.get("best") if isinstance(state, dict) else None
            if type(step) is not int or step < 0:
                break
            path = self.folder / folder_name(step)
            there = path.is_dir()
            gone = "" if there else ", and is gone"
            notes += [problem, f"{path.name} is the best by the evaluations in {newest.name}{gone}"]
            return path if there else None
        notes += [] if problem == f"{BEST}: missing" else [problem]
        return None

    def _candidates(self) -> tuple[list[tuple[Path, Manifest]], list[tuple[Path, str]]]:
        """Those with a readable manifest, the newest first, and the others with the reason."""
        readable, unreadable = [], []
        for path in self.paths():
            try:
                readable.append((path, self.manifest(path)))
            except CheckpointError as error:
                unreadable.append((path, str(error)))
        return sorted(readable, key=lambda pair: -pair[1].serial), unreadable[::-1]

    def manifest(self, path: Path) -> Manifest:
        """The manifest of a checkpoint; refuses one of another step or run than its folder's."""
        if path.is_symlink():
            raise CheckpointError("a symbolic link")
        manifest = Manifest.read(path)
        if self.seal and (other := self.seal.other_run(manifest.run)):
            raise CheckpointError(f"{MANIFEST}: {other}")
        return manifest

    def _last_or_note(self, notes: list[str]) -> Pointer | None:
        try:
            pointer = self.pointer("last")
        except CheckpointError as error:
            notes.append(str(error))
            return None
        if pointer and not (self.folder / pointer.folder).is_dir():
            gone = f"{LAST} points to it, but it is gone"
            notes.append(f"checkpoint {pointer.folder} skipped: {gone}")
        return pointer


def refuse_changed(run: Path, *, code: bool) -> None:
    """Rejects a run folder whose settings, or code to be executed, are not those of its weights."""
    saved = SavedCheckpoints.of(run)
    seal = saved.seal
    if seal is None:
        return
    readable, unreadable = saved._candidates()
    if unreadable and not readable:
        path, problem = unreadable[0]
        raise CheckpointError(
            f"{run / CONFIG} and the checkpoints beside it are not of one run. {path.name}: "
            f"{problem}. Restore {CONFIG} from a copy."
        )
    if code and (changed := seal.changed_code()):
        raise CheckpointError(
            f"{', '.join(changed)} in {run}: not as the run wrote it, and it says what the "
            "weights mean. Restore it from a copy, or go on with the run by the command that began "
            "it, which writes it anew."
        )
