"""Another run as an ingredient of a task: a teacher, or a member of an ensemble."""

from pathlib import Path

from typing_extensions import override

from textmill.checkpoint.layout import BEST, CALIBRATION, CHECKPOINTS, LAST, MANIFEST
from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.tasks.registries import trained_tasks
from textmill.tasks.task import Task


class TrainedTask(Component):
    """The task of a finished run, for its module and its answers.

    A task has it as a setting, ``teacher: TrainedTask.Config``, which a file or the command line
    names by its path, ``task.teacher.path=RUN``. Build it in the first training step: a run that
    only predicts does not need the other one. It is not part of the module, so it is neither
    trained nor saved.

    ``inference/of_run.py``, a higher room, loads it under the name ``of_run`` in
    ``tasks/registries.py``. A new use registers nothing.
    """

    class Config(BaseConfig):
        path: Path
        """The run folder."""
        checkpoint: str = "best"
        """``best``, ``last``, or the name of one of its checkpoints."""

        @property
        def deciding_files(self) -> tuple[Path, ...]:
            """What says by checksums which weights it answers with, and which calibration."""
            named = {"best": BEST, "last": LAST}
            pointer = named.get(self.checkpoint, f"{self.checkpoint}/{MANIFEST}")
            return tuple(self.path / CHECKPOINTS / name for name in (pointer, CALIBRATION))

        @override
        def build(self, *, device: str = "auto") -> Task:  # type: ignore[override]
            """Loads it. Its weights stay as they are: in ``eval`` mode, without gradients."""
            task: Task = trained_tasks.get("of_run")(self.path, self.checkpoint, device)
            return task
