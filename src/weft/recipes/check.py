"""Checking a recipe before it runs: the plan, every row, and one real batch all the way to an answer."""

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from weft.checkpoint.store import Checkpoints
from weft.config.session import Session
from weft.data.seq2seq import Seq2SeqBatch
from weft.errors import PlanError, WeftError
from weft.inference.predictor import Predictor
from weft.recipes.planning import Planned, plan_recipe
from weft.recipes.run import DATA, seed_of
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.runtime.seeds import seed_all
from weft.tasks.evaluate import evaluate
from weft.tasks.row_batches import ReadyBatches
from weft.tasks.task import Batches, Task
from weft.text.paths import Seq2SeqText
from weft.training.progress import Every

__all__ = ["Check", "check"]

Say = Callable[[str], None]


@dataclass
class Check:
    """What a check found."""

    problems: list[str] = field(default_factory=list)
    """Everything wrong; empty means the recipe is ready to train."""
    notes: list[str] = field(default_factory=list)
    """What a person should know, though it is not wrong."""


class _Batches:
    """A few batches that pass for an epoch."""

    def __init__(self, source: Batches, count: int) -> None:
        self.examples, self.epoch = source.examples, 0
        self.batches = list(itertools.islice(iter(source), count))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        return


def check(
    recipe: str | Path,
    words: Sequence[str] = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
    say: Say = lambda line: None,
) -> Check:
    """Checks a recipe: what could go wrong an hour into training goes wrong here.

    Args:
        recipe: A script, an experiment, a YAML file or a run folder.
        words: Settings as on the command line.
        configs: YAML files of settings.
        allow_code: Whether code that a run folder brings may be executed.
        device: ``auto``, or a device as torch names it.
        say: Called with a line for each thing that was tried.

    Returns:
        All problems found; a later step that needs what is broken is left out.
    """
    found = Check()
    try:
        planned = plan_recipe(recipe, words, configs=configs, targets=["trainer"], allow_code=allow_code)
    except PlanError as error:
        found.problems += [str(problem) for problem in error.problems]
        return found
    found.notes += planned.plan.notes
    found.notes += _promises(planned)
    say(f"plan: {len(planned.plan.order)} ingredients: {', '.join(planned.plan.order)}")
    with tempfile.TemporaryDirectory(prefix="weft-check-") as folder:
        _Walk(planned, Path(folder), device, found, say).run()
    return found


def _promises(planned: Planned) -> list[str]:
    """What a run by the clock cannot promise."""
    trainer = planned.plan.settings.get("trainer", {})
    timed = [name for name in ("evaluate_every",) if name in trainer and Every.parse(trainer[name]).timed]
    timed += ["max_time"] if trainer.get("max_time") is not None else []
    if not timed:
        return []
    return [
        f"trainer.{' and trainer.'.join(timed)} follow the clock: two runs agree only in the steps "
        "they have in common."
    ]


class _Walk:
    """The way of one batch, step by step; each step that fails is a problem, and ends the way."""

    def __init__(self, planned: Planned, folder: Path, device: str, found: Check, say: Say) -> None:
        self.planned, self.plan, self.folder = planned, planned.plan, folder
        self.found, self.say = found, say
        xp = Experiment(folder=folder, recipe=planned.name)
        provided = {"env": Env.detect(device), "xp": xp, "entry_point": "check"}
        self.session: Session = planned.plan.start(provided)

    @contextmanager
    def trying(self, what: str) -> Iterator[list[str]]:
        """Times one step and turns its error into a problem; lines put in the list are said."""
        start, lines = time.perf_counter(), list[str]()
        try:
            yield lines
        except Exception as error:  # noqa: BLE001  # all of a recipe's own errors are its problems
            self.found.problems.append(f"{what}: {_told(error)}")
            raise _BrokenError from None
        seconds = time.perf_counter() - start
        self.say(f"{what}: {'; '.join(lines) or 'ok'} ({seconds:.1f} s)")

    def run(self) -> None:
        """Tries everything; data files are all read even if one is bad."""
        good = [self.data(name) for name in DATA if name in self.plan.order]
        if not all(good):
            return
        try:
            self.task_and_batch()
        except _BrokenError:
            return

    def data(self, name: str) -> bool:
        """Builds one data ingredient and reads every row of it."""
        try:
            with self.trying(name) as lines:
                data = self.session.get(name)
                if hasattr(data, "read"):
                    count = data.read(ingredient=name).count
                    lines.append(f"{count.good:,} rows, {count.bad:,} bad")
        except _BrokenError:
            return False
        return True

    def task_and_batch(self) -> None:
        """Module, loss, backward, metric, checkpoint and answer on real rows."""
        with self.trying("build") as lines:
            seed_all(seed_of(self.plan), 0)
            task: Task = self.session.get("task")
            task.module.to(self.session.get("env").device)
            size = sum(p.numel() for p in task.module.parameters())
            lines.append(f"{type(task.module).__name__}, {size:,} parameters")
        with self.trying("encode") as lines:
            train = task.batches(self.session.get("train_data"), train=True, seed=1)
            few = _Batches(train, 2)
            lines += [f"{len(train):,} batches an epoch"] if hasattr(train, "__len__") else []
            self.found.notes += getattr(task, "notes", [])
        if isinstance(train, ReadyBatches):
            self.ready_batches(task, few, train)
        with self.trying("loss and backward") as lines:
            lines.append(_one_step(task, few.batches[0]))
        with self.trying("metrics") as lines:
            lines.append(_one_evaluation(task, self.evaluated(task, few)))
        with self.trying("checkpoint"):
            self.checkpoint(task)
        with self.trying("predict") as lines:
            example = few.examples(few.batches[0])[0]
            row = {name: str(example[name]) for name in task.text.input_columns}
            lines.append(f"{next(iter(row.values()))!r} -> {str(Predictor(task)(row))!r}")
        with self.trying("trainer"):
            self.session.get("trainer")

    def evaluated(self, task: Task, few: _Batches) -> Batches:
        """A batch of valid_data, else one of train_data."""
        if "valid_data" not in self.plan.order:
            return few
        valid = task.batches(self.session.get("valid_data"), train=False, seed=1)
        return _Batches(valid, 1)

    def ready_batches(self, task: Task, few: _Batches, train: ReadyBatches) -> None:
        """Ids of a recipe's own batches must be those that the task's text path gives to their text."""
        with self.trying("batches against the text path") as lines:
            batch = few.batches[0]
            if isinstance(batch, Seq2SeqBatch) and isinstance(task.text, Seq2SeqText):
                target = None if batch.target is None else batch.target.cpu().numpy()
                wrong = task.text.roundtrip(batch.source.cpu().numpy(), target)
                if wrong:
                    raise WeftError(
                        f"{len(wrong)} of the batch's sequences have other ids than their own text: {wrong[0]}. "
                        "The model would be trained on what it never sees in prediction."
                    )
                lines.append("the same ids")
            if train.replayed:
                self.found.notes.append(
                    "train_data has no state_dict: after a crash its batches are drawn again up to the place."
                )

    def checkpoint(self, task: Task) -> None:
        """Saves and loads all weights and the optimizer's state."""
        optimizer = self.session.get("optimizer")
        store = Checkpoints(self.folder / "checkpoints", keep=1)
        parts = {"model": task.module, "optimizer": optimizer}
        store.save(1, parts, write_text=task.text.save)
        if store.restore(parts) != 1:
            raise WeftError("what was saved could not be loaded again")


class _BrokenError(Exception):
    """A step failed and was noted."""


def _told(error: Exception) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    kind = "" if isinstance(error, WeftError) else f"{type(error).__name__}: "
    return f"{kind}{error}{f' ({notes})' if notes else ''}"


def _one_step(task: Task, batch: Any) -> str:
    """One training step without its update: loss and gradients must be finite, and reach every weight."""
    task.module.train()
    loss = task.training_step(batch)
    loss.total.backward()  # type: ignore[no-untyped-call]
    mean = float(loss.total.detach()) / max(1.0, float(loss.count))
    named = [(n, p) for n, p in task.module.named_parameters() if p.requires_grad]
    bad = [n for n, p in named if p.grad is not None and not torch.isfinite(p.grad).all()]
    idle = [n for n, p in named if p.grad is None]
    if not math.isfinite(mean) or bad:
        raise WeftError(f"the loss is {mean:g}; gradients that are not finite: {', '.join(bad[:5]) or 'none'}")
    task.module.zero_grad(set_to_none=True)
    without = f", no gradient for {', '.join(idle[:5])}" if idle else ""
    return f"loss {mean:.3f} a target{without}"


def _one_evaluation(task: Task, batches: Batches) -> str:
    values = evaluate(task, batches).values
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())
