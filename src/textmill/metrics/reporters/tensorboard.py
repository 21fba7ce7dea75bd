"""TensorBoard: the values of a run as ``events`` files, written by tensorboard's own writer."""

import importlib.util
import os
import re
import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import MissingExtraError, RunError
from textmill.metrics import registries
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.runtime.disk import open_in_place, operations, storing, sync_folder, write_all
from textmill.runtime.run_context import Experiment

_NAME = re.compile(r"events\.out\.tfevents\.(\d{10})\.textmill")


@final
@registries.reporters.register("tensorboard")
class TensorBoard(Component, Reporter):
    """Writes the values for TensorBoard into the run folder: ``tensorboard --logdir runs``.

    A value is called ``valid/loss``; what the clock decides is under ``time``. Every start of a run
    has a file of its own, and so has what comes after it went back; they are numbered, and no
    number is used twice. A checkpoint keeps the files' lengths, and a resumed run cuts them back:
    no step is there twice.

    Raises:
        MissingExtraError: The package tensorboard is not installed.
    """

    class Config(BaseConfig):
        """It has no settings."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            what = "The reporter 'tensorboard'"
            raise MissingExtraError("tensorboard", extra="tensorboard", what=what)
        self.config = config
        self._folder = xp.folder
        self._file: EventFile | None = None
        self._before: dict[str, int] = {}
        self._number = 0  # of the next file; a TensorBoard that looks on reads no name twice
        self._resumed = False

    @override
    def start(self, info: RunInfo) -> None:
        if not self._resumed and info.step == 0:
            self._keep({})  # left by a start that was killed before its first checkpoint
        self._open(info.step)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        step = int(progress.get("step", 0))
        file = self._file or self._open(step)
        file.scalars(step, {f"{split}/{name}": value for name, value in values.items()})
        rates = progress.get("time", {}).items() if split == "train" else ()
        file.scalars(step, {f"time/{n}": v for n, v in rates if n.endswith("_per_second")})

    @override
    def state_dict(self) -> dict[str, Any]:
        """The files' lengths in bytes."""
        if self._file is None:
            return {"files": dict(self._before)}
        self._file.sync()  # a checkpoint must not outlive the events that it counts
        return {"files": {**self._before, self._file.path.name: self._file.size}}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cuts the files back, and deletes those that began later."""
        self._resumed = True
        self.close()
        self._file = None
        self._keep({str(name): int(size) for name, size in state["files"].items()})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        """Waits for the disk: what says that the run is finished must not outlive its values."""
        if self._file is not None:
            self._file.sync()

    @override
    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self, step: int) -> "EventFile":
        self._count()
        name = f"events.out.tfevents.{self._number:010d}.textmill"
        self._file = EventFile(self._folder / name, step=step)
        return self._file

    def _count(self) -> list[Path]:
        """The files of this reporter by name; the next one comes after all that ever were."""
        found = [(p, _NAME.fullmatch(p.name)) for p in sorted(self._folder.glob("events.*"))]
        files = [(path, int(match[1])) for path, match in found if match]
        self._number = max([self._number, *(number + 1 for _, number in files)])
        return [path for path, _ in files]

    def _keep(self, sizes: Mapping[str, int]) -> None:
        """Cuts the files that are there to their sizes and deletes all others."""
        self._before = {}
        for path in self._count():
            if path.name not in sizes:
                path.unlink()
                continue
            with storing(path):
                descriptor = open_in_place(path, os.O_RDWR)
                try:
                    size = min(sizes[path.name], os.fstat(descriptor).st_size)
                    operations.truncate(descriptor, size)
                finally:
                    os.close(descriptor)
            self._before[path.name] = size


@final
class EventFile:
    """One file of events, after ``step``, that must not be there yet.

    It is whole events only; every one is handed to the system at once.

    Raises:
        StorageError: It is there, or it cannot be opened or written.
    """

    def __init__(self, path: Path, *, step: int) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.path, self.size = path, 0
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        with storing(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._descriptor = operations.open(path, flags)
            sync_folder(path.parent)
        self._records = RecordWriter(self)
        self._add(file_version="brain.Event:2")
        if step:  # a TensorBoard that is looking on forgets what it saw after this step
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._add(step=step + 1, session_log=start)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds values by their tags, in one event."""
        found = [self._summary.Value(tag=tag, simple_value=float(v)) for tag, v in values.items()]
        if found:
            self._add(step=step, summary=self._summary(value=found))

    def _add(self, **content: Any) -> None:
        if self._descriptor < 0:
            raise RunError(f"{self.path} is closed; a value came after the end of the run.")
        self._records.write(self._event(wall_time=clock.time(), **content).SerializeToString())

    def write(self, data: bytes) -> None:
        """Takes a whole record; called by tensorboard's writer."""
        with storing(self.path, len(data)):
            try:
                self.size += write_all(self._descriptor, memoryview(data), self.size)
            except OSError:
                os.ftruncate(self._descriptor, self.size)
                raise

    def sync(self) -> None:
        """Waits until all events are on the disk."""
        if self._descriptor >= 0:
            with storing(self.path):
                operations.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
