"""Checking a recipe before it runs: the plan, every row, one real batch to its answer."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weft.config.planning.key import local_modules
from weft.config.planning.overrides import Overrides
from weft.config.planning.session import Session
from weft.config.recipe import Recipe
from weft.errors import PlanError, SeveralError, UserError, WeftError, raised_at
from weft.preflight.check_steps import CheckSteps
from weft.preflight.export_checks import refuse_exports
from weft.preflight.load_data import DATA, load_data, refuse_other_header, used_columns
from weft.preflight.max_tokens import auto_data, settle_max_tokens
from weft.preflight.resource_estimate import within_memory
from weft.recipes.planning import Planned, exports_of, plan_recipe, seed_of
from weft.run_folder.folder import refuse_collision
from weft.runtime.devices import Env
from weft.runtime.run_context import Experiment
from weft.runtime.seeds import seed_all
from weft.tasks.batches.user_batches import ReadyBatches
from weft.tasks.task import Task
from weft.training.own_trainer import check_takes_task
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


def check(
    recipe: str | Path | Recipe,
    words: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
    say: Say = lambda line: None,
) -> Check:
    """Checks a recipe: what could go wrong an hour into training goes wrong here.

    Args:
        recipe: A script, an experiment, a YAML file, a Recipe or a run folder.
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
        planned = plan_recipe(
            recipe, words, configs=configs, targets=["trainer"], allow_code=allow_code
        )
    except PlanError as error:
        found.problems += [str(problem) for problem in error.problems]
        return found
    found.notes += planned.plan.notes
    found.notes += _promises(planned)
    try:
        check_takes_task(planned.plan.order)
        if planned.script is not None:
            refuse_collision(planned.script, local_modules(planned.table))
    except UserError as error:
        found.problems.append(str(error))
    say(f"plan: {len(planned.plan.order)} ingredients: {', '.join(planned.plan.order)}")
    with tempfile.TemporaryDirectory(prefix="weft-check-") as folder:
        _Walk(planned, Path(folder), device=device, found=found, say=say).run()
    return found


def _promises(planned: Planned) -> list[str]:
    """What a run by the clock, or with a compiled step, cannot promise."""
    trainer = planned.plan.settings.get("trainer", {})
    every = trainer.get("evaluate_every")
    timed = ["evaluate_every"] if every is not None and Every.parse(every).timed else []
    timed += ["max_time"] if trainer.get("max_time") is not None else []
    notes = []
    if timed:
        notes.append(
            f"trainer.{' and trainer.'.join(timed)} follow{'s' if len(timed) == 1 else ''} the "
            "clock: two runs agree only in the steps they have in common."
        )
    if trainer.get("compile"):
        notes.append(
            "trainer.compile makes its kernels for the first batches that a process meets: a run "
            "that is resumed agrees with the undisturbed one to the rounding, and not bitwise."
        )
    return notes


class _Walk:
    """The way of one batch. What fails is a problem; all that does not need it is still tried."""

    def __init__(
        self, planned: Planned, folder: Path, *, device: str, found: Check, say: Say
    ) -> None:
        self.planned, self.plan, self.folder = planned, planned.plan, folder
        self.found, self.say = found, say
        self.told: set[str] = set()
        xp = Experiment(folder=folder, recipe=planned.name)
        provided = {"env": Env.detect(device), "xp": xp, "entry_point": "check"}
        self.session: Session = planned.plan.start(provided)

    def attempt(self, what: str, step: Callable[[], str]) -> bool:
        """Times one step; its error becomes a problem, once, however many steps meet it."""
        start = time.perf_counter()
        try:
            line = step()
        except Exception as error:
            for text in _told(error):
                if text not in self.told:
                    self.found.problems.append(f"{what}: {text}")
                self.told.add(text)
            self.say(f"{what}: failed")
            return False
        self.say(f"{what}: {line or 'ok'} ({time.perf_counter() - start:.1f} s)")
        return True

    def run(self) -> None:
        """Tries everything; data files are all read even if one is bad."""
        names = [name for name in DATA if name in self.plan.order]
        read = [self.attempt(name, lambda name=name: self.data(name)) for name in names]  # type: ignore[misc]
        if not (all(read) and self.session.has("task") and self.attempt("build", self.build)):
            return
        if auto_data(self.session) and not self.attempt("max_tokens", self.max_tokens):
            return
        task: Task = self.session.get("task")
        steps = CheckSteps(
            task, self.session, self.plan, folder=self.folder, notes=self.found.notes
        )
        if first := steps.first_look():
            self.say(first)
        if not self.attempt("encode", steps.encode):
            return
        if isinstance(steps.train, ReadyBatches):
            self.attempt("batches against the text processor", steps.ready_batches)
        self.attempt("loss and backward", steps.one_step)
        self.attempt("metrics", steps.one_evaluation)
        if self.attempt("optimizer", steps.optimizer):
            self.attempt("checkpoint", steps.checkpoint)
        self.attempt("predict", steps.predict)
        if self.attempt("trainer", steps.trainer):
            self.attempt("memory", steps.memory)
        if exports_of(self.plan):
            self.attempt("export", self.export)

    def data(self, name: str) -> str:
        """Builds one data ingredient and reads every row of it."""
        data = self.session.get(name)
        count = load_data(name, data, used_columns(self.session))
        refuse_other_header(name, data, self.session.get(DATA[0]))
        return "" if count is None else f"{count.good:,} rows, {count.bad:,} bad"

    def export(self) -> str:
        """Refuses formats of ``trainer.export`` that could not be written."""
        formats = exports_of(self.plan)
        refuse_exports(formats, self.session)
        return ", ".join(formats)

    def build(self) -> str:
        """Builds module and task."""
        seed_all(seed_of(self.plan), 0)
        with within_memory():
            task: Task = self.session.get("task")
        task.module.to(self.session.get("env").device)
        size = sum(p.numel() for p in task.module.parameters())
        return f"{type(task.module).__name__}, {size:,} parameters"

    def max_tokens(self) -> str:
        """Finds what ``auto`` stands for."""
        trainer = self.plan.settings.get("trainer", {})
        found = settle_max_tokens(self.session, trainer, seed=seed_of(self.plan))
        return f"auto is {found:,} cells on this machine"


def _told(error: Exception) -> list[str]:
    """Each error with the notes; of one that is not weft's own also its type and line."""
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, SeveralError):
        return ["\n".join([str(each), *notes]) for each in error.errors]
    if isinstance(error, WeftError):
        return ["\n".join([str(error), *notes])]
    head = f"{type(error).__name__}: {error}".rstrip(": ")
    return ["\n".join([head, *notes, f"raised at {raised_at(error)}"])]
