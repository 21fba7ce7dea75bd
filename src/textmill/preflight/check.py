"""Checking a recipe before it runs: the plan, every row, one real batch to its answer."""

import itertools
import logging
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from textmill.checkpoint.store import Checkpoints
from textmill.config.ingredient import DATA
from textmill.config.planning.overrides import Overrides
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe
from textmill.config.sources.open_recipe import stages_of
from textmill.config.values.raw_values import Entries
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.errors import PlanError, SeveralError, TextmillError, UserError, raised_at
from textmill.inference.load import Predictor
from textmill.metrics.tables import format_value, is_of_label
from textmill.preflight.data_preview import first_row, nothing_selected, shared_rows, shortened
from textmill.preflight.disk_need import room_for
from textmill.preflight.export_checks import refuse_exports
from textmill.preflight.load_data import read_one, what_helps
from textmill.preflight.loadable import refuse_unloadable
from textmill.preflight.max_tokens import auto_data, settle_max_tokens
from textmill.preflight.odd_labels import odd_labels
from textmill.recipes.planning import Planned, exports_of, plan_recipe, seed_of
from textmill.run_folder.folder import RunFolder, refuse_collision
from textmill.run_folder.pretrained import pretrained_of
from textmill.runtime.files import size_of
from textmill.runtime.memory import held_words
from textmill.runtime.seeds import seed_all
from textmill.tasks.batches.row_batches import RowBatches
from textmill.tasks.batches.user_batches import ReadyBatches, known_length
from textmill.tasks.evaluation import evaluate
from textmill.tasks.task import Batches, Task, loss_of
from textmill.text.processors.seq2seq import Seq2SeqText
from textmill.training.progress import Every
from textmill.training.run_setup import check_takes_task, check_trainer

LOG = logging.getLogger("textmill")
Say = Callable[[str], None]


@dataclass
class Check:
    """What a check found."""

    problems: list[str] = field(default_factory=list)
    """Everything wrong; empty means the recipe is ready to train."""
    notes: list[str] = field(default_factory=list)
    """What a person should know, though it is not wrong."""

    def take(self, name: str, found: "Check") -> None:
        """Adds what was found of a stage or a task, under its name."""
        self.problems += [f"{name}: {problem}" for problem in found.problems]
        self.notes += [f"{name}: {note}" for note in found.notes]


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

    What is checked is named as :func:`textmill.runs.train.train` takes it; ``say`` is called with a
    line for each thing that was tried.

    Returns:
        All problems found; a later step that needs what is broken is left out.
    """
    how: dict[str, Any] = {"allow_code": allow_code, "device": device}
    stages = stages_of(recipe)
    if not stages:
        return _checked(recipe, words, configs, say=say, **how)
    found = Check()
    for name, settings in stages.items():
        said = partial(_said_of, name, say)
        found.take(name, _checked(recipe, words, [*configs, settings], say=said, **how))
    return found


def _checked(
    recipe: str | Path | Recipe,
    words: Overrides,
    configs: Sequence[str | Path | Entries],
    *,
    allow_code: bool,
    device: str,
    say: Say,
) -> Check:
    found = Check()
    try:
        planned = plan_recipe(
            recipe, words, configs=configs, targets=["trainer"], allow_code=allow_code
        )
    except PlanError as error:
        found.problems += [str(problem) for problem in error.problems]
        return found
    found.notes += [*planned.plan.notes, *_promises(planned)]
    try:
        check_takes_task(planned.plan.order)
        if planned.script is not None:
            refuse_collision(planned.script, planned.table.files)
    except UserError as error:
        found.problems.append(str(error))
    say(f"plan: {len(planned.plan.order)} ingredients: {', '.join(planned.plan.order)}")
    with tempfile.TemporaryDirectory(prefix="textmill-check-") as folder, ExitStack() as stack:
        if planned.run is not None:
            stack.enter_context(pretrained_of(RunFolder(planned.run)))
        session = planned.start(Path(folder), "check", device)
        _Walk(planned, session, Path(folder), found=found, say=say).run()
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


class _FirstBatches:
    """A few batches that pass for an epoch."""

    def __init__(self, source: Batches, count: int, name: str) -> None:
        self.examples = source.examples
        self.batches = list(itertools.islice(iter(source), count))
        if not self.batches:
            raise TextmillError(f"{name} gives no batch.")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)


class _Walk:
    """The way of one batch. What fails is a problem; all that does not need it is still tried.

    Each step returns the line that is said of it.
    """

    task: Task
    train: Batches
    few: _FirstBatches
    held_out: Any

    def __init__(
        self, planned: Planned, session: Session, folder: Path, *, found: Check, say: Say
    ) -> None:
        self.planned, self.plan = planned, planned.plan
        self.folder, self.found, self.say = folder, found, say
        self.fresh = planned.run is None
        self.notes = found.notes
        self.settings = self.plan.settings.get("trainer", {})
        self.told: set[str] = set()
        self.session = session

    def attempt(self, what: str, step: Callable[[], str]) -> bool:
        """Times one step; its error becomes a problem, once, however many steps meet it."""
        start = time.perf_counter()
        try:
            line = step()
        except Exception as error:
            for text in _told(error, what):
                if text not in self.told:
                    self.found.problems.append(f"{what}: {text}")
                self.told.add(text)
            self.say(f"{what}: failed")
            return False
        self.say(f"{what}: {line or 'ok'} ({time.perf_counter() - start:.1f} s)")
        return True

    def run(self) -> None:
        """Tries everything: of several tasks each as it would be alone, and then their trainer."""
        if not (self.several() if self.session.tasks else self.one()):
            return
        if not self.session.has("trainer"):
            return  # one of several tasks
        self.attempt("trainer", self.trainer)
        self.attempt("memory", lambda: held_words(str(self.task.device)))
        if exports_of(self.plan):
            self.attempt("export", self.export)

    def one(self) -> bool:
        """Tries a task; data files are all read even if one is bad."""
        names = [name for name in DATA if name in self.plan.order]
        read = [self.attempt(name, partial(self.data, name)) for name in names]
        if not (all(read) and self.session.has("train_data") and self.session.has("task")):
            return False
        if not self.attempt("build", self.build):
            return False
        if auto_data(self.session) and not self.attempt("max_tokens", self.max_tokens):
            return False
        if first := self.first_look():
            self.say(first)
        if not self.attempt("encode", self.encode):
            return False
        if isinstance(self.train, ReadyBatches):
            self.attempt("batches against the text processor", self.ready_batches)
        self.attempt("loss and backward", self.one_step)
        self.attempt("metrics", self.one_evaluation)
        if not self.session.has("trainer") or self.attempt("optimizer", self.optimizer):
            self.attempt("checkpoint", self.checkpoint)
        self.attempt("predict", self.predict)
        return True

    def several(self) -> bool:
        for name, own in self.session.tasks.items():
            found, folder = Check(), self.folder / name
            folder.mkdir()
            said = partial(_said_of, name, self.say)
            _Walk(self.planned.alone(name), own, folder, found=found, say=said).run()
            self.found.take(name, found)
        if self.found.problems or not self.attempt("build", self.build):
            return False
        self.attempt("optimizer", self.optimizer)
        return True

    def data(self, name: str) -> str:
        try:
            count = read_one(self.session, name)
        except UserError as error:
            error.args = (f"{error}{what_helps(name, error, self.session)}",)
            raise
        return "" if count is None else f"{count.good:,} rows, {count.bad:,} bad"

    def build(self) -> str:
        seed_all(seed_of(self.plan), 0)
        self.task = self.session.get("task")
        module = self.task.module.to(self.session.get("env").device)
        # What a fresh start reads (pretrained weights, word vectors); a run has begun already.
        lines = self.task.initialize() if self.fresh else []
        size = sum(p.numel() for p in module.parameters())
        return " · ".join([f"{type(module).__name__}, {size:,} parameters", *lines])

    def max_tokens(self) -> str:
        found = settle_max_tokens(self.session, self.settings, seed=seed_of(self.plan))
        return f"auto is {found:,} cells on this machine"

    def first_look(self) -> str:
        """What a reader sees of the training data; empty where it has no rows at hand."""
        # Rows take time and know their place exactly; what is ready is made anew.
        self.task.reuse_batches(RowBatches)
        text, data = self.task.text, self.session.get("train_data")
        self.notes += odd_labels(text, data, self.plan.settings)
        self.notes += shared_rows(self.session)
        self.notes += [note] if (note := nothing_selected(self.plan)) else []
        return first_row(text, data)

    def encode(self) -> str:
        made = partial(self.task.batches_of, seed=seed_of(self.plan))
        with self.task_notes():
            self.train = made("train_data", self.session.get("train_data"), train=True)
            self.few = self.held_out = _FirstBatches(self.train, 2, "train_data")
            for name in reversed([n for n in DATA[1:] if n in self.plan.order]):
                batches = made(name, self.session.get(name), train=False)
                self.held_out = _FirstBatches(batches, 1, name)
        length = known_length(self.train)
        return "" if length is None else f"{length:,} batches an epoch"

    @contextmanager
    def task_notes(self) -> Iterator[None]:
        """Lists what the task notes of its data, and keeps it out of the log: it is said once."""

        def unnoted(record: logging.LogRecord) -> bool:
            return record.getMessage() not in self.task.notes

        LOG.addFilter(unnoted)
        try:
            yield
        finally:
            LOG.removeFilter(unnoted)
            self.notes += self.task.notes

    def ready_batches(self) -> str:
        """Ids of a recipe's own batches must be those the text processor gives to their text."""
        assert isinstance(self.train, ReadyBatches)
        if self.train.replayed:
            self.notes.append(
                "train_data has no state_dict: after a crash its batches are drawn again up to "
                "the place."
            )
        batch, text = self.few.batches[0], self.task.text
        if not (isinstance(batch, Seq2SeqBatch) and isinstance(text, Seq2SeqText)):
            return "not compared: these batches are of a type of the recipe's own"
        target = None if batch.target is None else batch.target.cpu().numpy()
        wrong = text.roundtrip(batch.source.cpu().numpy(), target)
        if wrong:
            raise TextmillError(
                f"{len(wrong)} of the batch's sequences have other ids than their own text: "
                f"{wrong[0]}. The model would be trained on what it never sees in prediction."
            )
        return "the same ids"

    def one_step(self) -> str:
        """A training step without its update: loss and gradients are finite, and reach all."""
        module = self.task.module
        module.train()
        first = self.few.batches[0]
        loss = loss_of(self.task, first, self.few.examples(first))
        mean, count = float(loss.total.detach()) / max(1.0, float(loss.count)), float(loss.count)
        if not count > 0:
            raise TextmillError(f"the loss is a sum over {count:g} targets; wanted at least one.")
        if not math.isfinite(mean):
            raise TextmillError(f"the loss of the first batch is {mean:g}; wanted a finite number.")
        loss.total.backward()  # type: ignore[no-untyped-call,unused-ignore]
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        bad = [n for n, p in named if p.grad is not None and not p.grad.isfinite().all()]
        idle = [n for n, p in named if p.grad is None]
        module.zero_grad(set_to_none=True)
        if bad:
            raise TextmillError(
                f"gradients that are not finite, at a loss of {mean:g}: {_few(bad)}."
            )
        if idle:
            self.notes.append(
                f"no gradient reaches {_few(idle)}: the loss does not depend on it, so training "
                "never changes it."
            )
        return f"loss {mean:.3f} a target"

    def one_evaluation(self) -> str:
        """Evaluates a batch of valid_data, else one of train_data; not a label's values."""
        values = evaluate(self.task, self.held_out).values
        whole = {name: value for name, value in values.items() if not is_of_label(name)}
        return ", ".join(f"{name} {format_value(name, value)}" for name, value in whole.items())

    def optimizer(self) -> str:
        """Builds the optimizer; it must have the parameters that training is to change."""
        if not self.session.has("optimizer"):
            return "none; the trainer may have its own"
        optimizer = self.session.get("optimizer")
        groups = getattr(optimizer, "param_groups", [])
        held = {id(p) for group in groups for p in group["params"]}
        if groups and not held:
            raise TextmillError("the optimizer has no parameters: nothing would be trained.")
        named = self.task.module.named_parameters()
        left = [n for n, p in named if p.requires_grad and id(p) not in held]
        if groups and left:
            self.notes.append(f"the optimizer does not have {_few(left)}: it stays as it is.")
        return f"{type(optimizer).__name__}, {len(held):,} tensors"

    def checkpoint(self) -> str:
        """Saves and loads all weights and the optimizer's state; there is room for the run's.

        The state is that after a step, which is measured with gradients of zero; the weights are
        put back. The task is built as prediction does, too, from what was saved.
        """
        store = Checkpoints(self.folder / "tried", keep=1)  # the trainer is to find a fresh run
        parts = {"model": self.task.module}
        if self.session.has("optimizer"):
            parts["optimizer"] = self.session.get("optimizer")
            _take_empty_step(self.task.module, parts["optimizer"])
        if self.settings.get("ema") is not None or self.settings.get("swa_start") is not None:
            parts["weights"] = self.task.module
        saved = store.save(1, parts, write_text=self.task.text.save)
        if store.restore(parts) != 1:
            raise TextmillError("what was saved could not be loaded again.")
        refuse_unloadable(self.planned, self.session, saved)
        size = size_of(saved)
        rollback = self.settings.get("on_nonfinite") == "rollback"
        return f"{size / 1e6:.1f} MB{room_for(size, self.settings.get('keep'), rollback=rollback)}"

    def predict(self) -> str:
        row = dict(self.task.asked(self.few.examples(self.few.batches[0])[0]))
        answer = str(Predictor(self.task)(row))
        return f"{shortened(next(iter(row.values())))} -> {shortened(answer)}"

    def trainer(self) -> str:
        trainer = self.session.get("trainer")
        check_trainer(trainer)
        return type(trainer).__name__

    def export(self) -> str:
        formats = exports_of(self.plan)
        refuse_exports(formats, self.session)
        return ", ".join(form.folder for form in formats)


def _said_of(task: str, say: Say, line: str) -> None:
    say(f"{task}: {line}")


def _take_empty_step(module: nn.Module, optimizer: Any) -> None:
    """Gives the optimizer the state that it has in training; the weights stay as they are."""
    held = [p for group in getattr(optimizer, "param_groups", []) for p in group["params"]]
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for parameter in held:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    module.load_state_dict(before)
    module.zero_grad(set_to_none=True)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _told(error: Exception, what: str) -> list[str]:
    """Each error with the notes; of one that is not textmill's own also its type and line.

    A note that says no more than what was tried is left out.
    """
    own = f"in the ingredient '{what}'"
    notes = [str(note) for note in getattr(error, "__notes__", ()) if note != own]
    if isinstance(error, SeveralError):
        return ["\n".join([str(each), *notes]) for each in error.errors]
    if isinstance(error, TextmillError):
        return ["\n".join([str(error), *notes])]
    head = f"{type(error).__name__}: {error}".rstrip(": ")
    return ["\n".join([head, *notes, f"raised at {raised_at(error)}"])]
