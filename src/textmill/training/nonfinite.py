"""What a run does about a loss or a gradient that is NaN or infinite."""

import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from torch import Tensor

from textmill.checkpoint.parts import Stateful
from textmill.errors import DataError, NonFiniteError

LOG = logging.getLogger("textmill")

Policy = Literal["stop", "skip", "rollback"]

SHOWN_ROWS = 20
"""Row numbers in an error; a step of many batches has thousands."""
REPORTED = {"skip": "skipped_steps", "rollback": "rollbacks"}
"""Name of the count among the training values."""


class NonFinite:
    """Counts the steps that broke, and ends the run after ``limit`` in a row.

    ``skip`` leaves the update of a broken step out. ``rollback`` goes back to where
    ``trainer.evaluate_every`` last fell due and on with the data after what broke the step, as
    PaLM was trained (Chowdhery et al. 2022, section 5.1): the batches since then are not seen
    again, since the same batches from the same weights would break again, and the count ends when
    the run gets further. It does not go to the newest checkpoint: when those are saved is up to
    the clock, to signals and to settings that are not in the key of a run.

    A step is broken, too, if its loss a target is above ``loss_bound``.

    The last update before a checkpoint may have spoilt its weights. So the one before it is kept
    until a step from the newer one was fine, and is gone back to where the weights of the newer one
    are not finite, or where a second step from it breaks, too.
    """

    def __init__(self, policy: Policy, *, limit: int, loss_bound: float | None = None) -> None:
        self.policy, self.limit, self.loss_bound = policy, limit, loss_bound
        self.unreported, self.in_a_row, self.furthest = 0, 0, 0
        self.target: int | None = None
        """The step that a rollback goes to; a run's first checkpoint sets it."""
        self.candidate: int | None = None
        """A later step, which is the target once a step from it was fine."""
        self.tried = False
        """Whether the run has gone back to the candidate."""

    def bounded(self, total: Tensor, count: Tensor) -> Tensor:
        """The loss of a step, infinite where it is above the bound; nothing waits for the device.

        A sum and its targets, of the shape ``[]`` both.
        """
        if self.loss_bound is None:
            return total
        return total.masked_fill(total > self.loss_bound * count, math.inf)

    def broken(
        self,
        step: int,
        *,
        norm: Tensor,
        total: Tensor,
        count: Tensor,
        examples: Iterable[Mapping[str, Any]],
    ) -> NonFiniteError | DataError:
        """Says where the numbers broke: the step, and the rows of its batches, from 1.

        The norm of the gradient, the loss and its targets have the shape ``[]``.
        """
        rows = [int(row["row"]) + 1 for row in examples if "row" in row]
        more = f", ... ({len(rows)} rows)" if len(rows) > SHOWN_ROWS else ""
        listed = ", ".join(map(str, rows[:SHOWN_ROWS])) + more
        where = f" Rows of train_data in this step: {listed}." if rows else ""
        if not count:
            return DataError(
                f"Step {step} has no target to learn from: the count of its loss is 0; "
                f"this step did not touch the weights.{where} Leave such rows out of train_data."
            )
        if not total.isfinite():
            found = f"loss is {total.item():g} at step {step}"
        elif not norm.isfinite():
            found = f"gradient norm is {norm.item():g} at step {step}"
        else:
            mean, most = (total / count).item(), f"trainer.loss_upper_bound={self.loss_bound:g}"
            found = f"loss is {mean:g} a target at step {step}, above {most}"
        return NonFiniteError(
            f"The {found}; this step did not touch the weights.{where} "
            "Lower optimizer.lr, lengthen lr_scheduler's warm-up, or look at these rows."
        )

    def take(self, error: NonFiniteError | DataError, *, step: int) -> None:
        """Takes note of a broken step, from 1, and of what broke."""
        if self.policy == "stop" or isinstance(error, DataError):
            raise error
        self.unreported, self.in_a_row = self.unreported + 1, self.in_a_row + 1
        self.furthest = max(self.furthest, step)
        if self.in_a_row >= self.limit:
            raise NonFiniteError(
                f"{error}\nIt is number {self.in_a_row} in a row "
                f"(trainer.max_nonfinite={self.limit}): the run ends."
            )
        done = {"skip": "its update is left out", "rollback": "the run goes back"}[self.policy]
        LOG.warning("%s\nNumber %d in a row: %s.", error, self.in_a_row, done)

    def offer(self, step: int) -> None:
        """Takes a step as the candidate; the first of a run is the target."""
        self.candidate, self.tried = step, False
        self.target = step if self.target is None else self.target

    def goal(self, *, finite: bool) -> int | None:
        """The step to go back to from where a step broke, ``finite`` if the weights there are."""
        if self.candidate is None or self.tried or not finite:
            return self.target
        return self.candidate

    def went_to(self, step: int) -> None:
        """Takes note of the step that the run went back to."""
        if step == self.candidate:
            self.tried = True
        else:
            self.target, self.candidate = step, None

    @property
    def kept_steps(self) -> set[int]:
        """The steps whose checkpoints are kept to go back to."""
        return {step for step in (self.target, self.candidate) if step is not None}

    def fine(self, step: int) -> None:
        if step > self.furthest:
            self.in_a_row = 0
        if self.candidate is not None:
            self.target, self.candidate = self.candidate, None

    def pop(self) -> dict[str, float]:
        """How many steps broke since the last report, by the policy's name for it; none if 0."""
        count, self.unreported = self.unreported, 0
        return {REPORTED[self.policy]: float(count)} if count else {}

    @property
    def parts(self) -> dict[str, Stateful]:
        return {} if self.policy == "stop" else {"nonfinite": self}

    def state_dict(self) -> dict[str, Any]:
        names = ("unreported", "in_a_row", "furthest", "target", "candidate", "tried")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in ("unreported", "in_a_row", "furthest"):
            setattr(self, name, int(state[name]))
        self.target, self.candidate = state["target"], state["candidate"]
        self.tried = bool(state["tried"])
