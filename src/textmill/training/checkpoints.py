"""The checkpoints of a training run: what it goes on from, goes back to, and is used after it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from textmill.checkpoint.layout import CHECKPOINTS, MODULES, folder_name, step_of
from textmill.checkpoint.parts import Stateful, load_into
from textmill.checkpoint.state import join_state, split_state
from textmill.checkpoint.store import Checkpoints
from textmill.checkpoint.writing import PART_NAME, split_parts, write_checkpoint
from textmill.config.registry import suggest
from textmill.errors import CheckpointError, UserError, refuse_all
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Task
from textmill.training.gradient_sums import RowsOf, TensorRows
from textmill.training.nonfinite import NonFinite
from textmill.training.progress import Clock, Progress
from textmill.training.selection import Selection

LOG = logging.getLogger("textmill")

GOING_ON = ("data", "nonfinite", "random")
"""Parts that a rollback leaves as they are: the data goes on after what broke."""


@runtime_checkable
class Shared(Stateful, Protocol):
    """A part of which each rank has a share; all of it is saved, by rank 0."""

    def joined(self, states: Sequence[Any]) -> Any:
        """The state of the whole, of those of the ranks."""

    def share(self, state: Any, rank: int, world_size: int) -> Any:
        """What one rank goes on with of a state of the whole."""


class RunCheckpoints(Checkpoints):
    """The checkpoints of one run, with the best of them, and the one that a rollback goes to.

    ``keep`` are kept besides the best, which the selection knows where something is measured. The
    task's text processor is saved with each. Rank 0 writes, all read.
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
        ranks: Ranks,
    ) -> None:
        super().__init__(run / CHECKPOINTS, keep=keep, writes=ranks.env.is_main)
        self.ranks = ranks
        self.rows: Mapping[str, RowsOf] = {}
        """Of the parts that each rank has rows of, which these are."""
        self.task, self.clock = task, clock
        self.selection, self.nonfinite = selection, nonfinite
        self._recorded: tuple[Progress, Progress] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the run is just where it was saved last."""
        return self._recorded == (self.clock.now, self.clock.seen)

    def resume(self, parts: Mapping[str, Stateful]) -> int | None:
        """Loads the newest good checkpoint; returns its step, or None on a fresh start."""
        with self.ranks.main_first():  # which mends what a process that was killed has left
            step = self.restore(self._shares_of(parts))
        self.kept_steps = self.nonfinite.kept_steps
        if step is not None:
            self._recorded = (self.clock.now, self.clock.seen)
            best = self.selection.best if self.selection else None
            # It may have been killed between saving and marking, or the pointer may be damaged.
            if best is not None and (self.folder / folder_name(best[0])).is_dir():
                self.mark_best(best[0])
        return step

    def record(self, parts: Mapping[str, Stateful], *, best: bool) -> Path:
        """Saves where the run is; a best one is pointed to only when it is safe."""
        step, whole = self.clock.now.steps, self._joined(parts)
        self.kept_steps = self.nonfinite.kept_steps
        with self.ranks.main_first():
            if self.writes:
                self.save(step, whole, write_text=self.task.text.save)
            if best:
                self.mark_best(step)
        self._recorded = (self.clock.now, self.clock.seen)
        return self.folder / folder_name(step)

    def set_rollback_target(self) -> None:
        """Has a rollback go to the checkpoint that is saved next, unless its weights are spoilt."""
        self.nonfinite.offer(self.clock.now.steps)

    def roll_back(self, parts: Mapping[str, Stateful]) -> bool:
        """Goes back to the target, with the data where it is; tells whether it is the best step."""
        seconds = self.clock.seconds
        # To load the place of the data would draw its batches again, with other random numbers.
        left = {name: _StandIn() for name in parts if name.partition(".")[0] in GOING_ON}
        shares = self._shares_of({**parts, **left})
        tensors, _ = split_state(parts.get("weights", parts["model"]).state_dict())
        spoilt = self.ranks.any(not all(bool(t.isfinite().all()) for t in tensors.values()))
        with self.ranks.main_first():
            step = self.restore(shares, step=self.nonfinite.goal(finite=not spoilt))
        assert step is not None, "a run that rolls back begins with a checkpoint"
        self.task.rolled_back()
        self.clock.spent(seconds)
        self.nonfinite.went_to(step)  # another than the goal where that checkpoint was damaged
        LOG.warning(f"Back at step {step:,}; the data goes on after what broke.")
        return self.selection is not None and self.selection.is_best(step)

    def use_best(self) -> int:
        """Loads the best weights, or the newest good ones; returns the step they are of."""

        def load(path: Path) -> int:
            load_into(path, "model", self.task.module)
            return step_of(path)

        try:
            used = self.use("best", load)
        except CheckpointError as error:
            LOG.warning("%s\nThe weights of the last step are used.", error)
            used = None
        return self.clock.now.steps if used is None else used

    def save_modules(self, names: Sequence[str], *, step: int) -> None:
        """Writes submodules and the text processor to ``modules``, for ``trainer.initialize``.

        It has the format of a checkpoint, one safetensors file a part, each with its hash; what an
        earlier end of the run left is replaced.
        """
        if names and self.writes:
            parts = {name: self.task.module.get_submodule(name) for name in names}
            tensors, document = split_parts(step, parts)
            write_checkpoint(
                self.folder.parent / MODULES,
                step=step,
                serial=1,
                tensors=tensors,
                document=document,
                write_text=self.task.text.save,
            )

    def _shared(self, parts: Mapping[str, Stateful]) -> dict[str, Shared]:
        if self.ranks.size == 1:
            return {}
        rows = {name: _Rows(parts[name], of) for name, of in self.rows.items() if name in parts}
        return {**{n: part for n, part in parts.items() if isinstance(part, Shared)}, **rows}

    def _joined(self, parts: Mapping[str, Stateful]) -> dict[str, Stateful]:
        """The parts as rank 0 saves them: of those that are shared, the whole."""
        whole = dict(parts)
        for name, part in self._shared(parts).items():
            if states := self.ranks.gather_to_main(part.state_dict()):
                whole[name] = _StandIn(partial(part.joined, states))
        return whole

    def _shares_of(self, parts: Mapping[str, Stateful]) -> dict[str, Stateful]:
        rank, size = self.ranks.env.rank, self.ranks.size

        def load(part: Shared, state: Any) -> None:
            part.load_state_dict(part.share(state, rank, size))

        shared = self._shared(parts).items()
        return {**parts, **{n: _StandIn(p.state_dict, partial(load, p)) for n, p in shared}}


def check_modules(module: nn.Module, names: Sequence[str]) -> None:
    """Refuses names that the module lacks or that no file can have, before anything is trained."""
    named = module.named_modules(remove_duplicate=False)  # by each of its names what is shared
    known = [name for name, inner in named if name and inner.state_dict()]
    refused = []
    for name in names:
        if name == "model" or not PART_NAME.fullmatch(name):
            why = (
                "cannot be the name of a saved part: "
                "small letters, digits, '_', '.' and '-' after a first small letter, 64 at most, "
                "and not 'model', which is the whole module."
            )
        elif name not in known:
            tops = ", ".join(each for each in known if "." not in each)
            hint = suggest(name, known).rstrip() or f"It has: {tops}."
            why = f"the module does not have. {hint}"
        else:
            continue
        refused.append(UserError(f"trainer.save_modules names '{name}', which {why}"))
    refuse_all(refused)


@dataclass(frozen=True)
class _StandIn:
    """Takes the place of a part while it is saved or loaded."""

    state_dict: Callable[[], Any] = dict
    load_state_dict: Callable[[Any], Any] = bool


class _Rows:
    """A part of whose tensors each rank has some rows; rank 0 joins them in its own memory."""

    def __init__(self, part: Stateful, rows: RowsOf) -> None:
        self._part, self._rows = part, rows

    def state_dict(self) -> Any:
        tensors, plain = split_state(self._part.state_dict())
        return {name: tensor.cpu() for name, tensor in tensors.items()}, plain

    def load_state_dict(self, state: Any) -> None:
        self._part.load_state_dict(state)

    def joined(self, states: Sequence[Any]) -> Any:
        (first, plain), *_ = states
        whole = dict(first)
        for name, one in first.items():
            if self._of(name, one):
                whole[name] = torch.cat([tensors[name] for tensors, _ in states])
        return join_state(whole, plain)

    def share(self, state: Any, rank: int, world_size: int) -> Any:
        tensors, plain = split_state(state)
        for name, whole in tensors.items():
            if of := self._of(name, whole):
                if whole.shape != of.shape:
                    found, wanted = list(whole.shape), list(of.shape)
                    raise ValueError(f"{name!r} wants {wanted}, found {found}")
                tensors[name] = whole[of.first : of.first + of.count].clone()
        return join_state(tensors, plain)

    def _of(self, name: str, tensor: Tensor) -> TensorRows | None:
        return self._rows(name) if tensor.ndim else None
