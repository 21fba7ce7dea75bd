"""The checkpoints of a training run: what it goes on from, goes back to, and is used after it."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from torch import nn

from weft.checkpoint.layout import CHECKPOINTS, step_of
from weft.checkpoint.parts import Stateful, load_into
from weft.checkpoint.store import Checkpoints
from weft.errors import CheckpointError
from weft.tasks.task import Task
from weft.training.nonfinite import NonFinite, Untouched
from weft.training.progress import Clock, Progress
from weft.training.saved_modules import save_modules
from weft.training.selection import Selection

__all__ = ["RunCheckpoints"]

LOG = logging.getLogger("weft")

GOING_ON = ("data", "nonfinite", "random")
"""Parts that a rollback leaves as they are: the data goes on after what broke."""


class RunCheckpoints(Checkpoints):
    """The checkpoints of one run, with the best of them, and the one that a rollback goes to.

    Args:
        run: The run folder.
        keep: How many are kept besides the best.
        task: What is trained; its text processor is saved with every checkpoint.
        clock: Where the run is.
        selection: Knows the best; None where nothing is measured.
        nonfinite: Knows where a rollback goes to.
    """

    def __init__(
        self,
        run: Path,
        *,
        keep: int,
        task: Task,
        clock: Clock,
        selection: Selection | None,
        nonfinite: NonFinite,
    ) -> None:
        super().__init__(run / CHECKPOINTS, keep=keep)
        self.task, self.clock = task, clock
        self.selection, self.nonfinite = selection, nonfinite
        self._recorded: tuple[Progress, Progress] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the run is just where it was saved last."""
        return self._recorded == (self.clock.now, self.clock.seen)

    def resume(self, parts: Mapping[str, Stateful]) -> int | None:
        """Loads the newest good checkpoint; returns its step, or None on a fresh start."""
        step = self.restore(parts)
        self.kept_step = self.nonfinite.target
        if step is not None:
            self._recorded = (self.clock.now, self.clock.seen)
        if step is not None and self._is_best(step):
            self.mark_best(step)  # it may have been killed between saving and marking
        return step

    def record(self, parts: Mapping[str, Stateful], *, best: bool) -> Path:
        """Saves where the run is; a best one is pointed to only when it is safe."""
        path = self.save(self.clock.now.steps, parts, write_text=self.task.text.save)
        if best:
            self.mark_best(self.clock.now.steps)
        self._recorded = (self.clock.now, self.clock.seen)
        return path

    def set_rollback_target(self) -> None:
        """Makes the checkpoint that is saved next the one that a rollback goes to."""
        self.nonfinite.target = self.kept_step = self.clock.now.steps

    def roll_back(self, parts: Mapping[str, Stateful]) -> bool:
        """Goes back to the target, with the data where it is; says so.

        Returns:
            Whether that is the best step.
        """
        seconds, left = self.clock.seconds, dict.fromkeys(GOING_ON, Untouched())
        step = self.restore({**parts, **left}, step=self.nonfinite.target)
        assert step is not None, "a run that rolls back begins with a checkpoint"
        self.task.rolled_back()
        self.clock.spent(seconds)
        self.set_rollback_target()  # another step than before where that checkpoint was damaged
        LOG.warning(f"Back at step {step:,}; the data goes on after what broke.")
        return self._is_best(step)

    def use_best(self) -> int:
        """Loads the best weights, or the newest good ones; returns the step they are of."""
        try:
            used = self.use("best", partial(_load_weights, module=self.task.module))
        except CheckpointError as error:
            LOG.warning("%s\nThe weights of the last step are used.", error)
            used = None
        return self.clock.now.steps if used is None else used

    def save_modules(self, names: Sequence[str], *, step: int) -> None:
        """Writes submodules apart, as :mod:`weft.training.saved_modules` says."""
        save_modules(self.folder.parent, names, step=step, task=self.task)

    def _is_best(self, step: int) -> bool:
        return self.selection is not None and self.selection.is_best(step)


def _load_weights(path: Path, *, module: nn.Module) -> int:
    load_into(path, "model", module)
    return step_of(path)
