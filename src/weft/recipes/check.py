"""Checking a recipe before it runs: the plan, every row, one real batch to its answer."""

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.checkpoint.store import Checkpoints
from weft.config.key import local_modules
from weft.config.recipe import Recipe
from weft.config.session import Session
from weft.data.seq2seq import Seq2SeqBatch
from weft.errors import PlanError, SeveralError, UserError, WeftError, raised_at
from weft.inference.predictor import Predictor
from weft.metrics.formats import format_value
from weft.recipes.export import refuse_exports
from weft.recipes.max_tokens import auto_data, settle_max_tokens
from weft.recipes.need import measure_need, room_for
from weft.recipes.planning import Planned, plan_recipe
from weft.recipes.reading import DATA, read_data, refuse_other_header
from weft.recipes.run import exports_of, seed_of
from weft.recipes.run_folder import refuse_collision
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.runtime.seeds import seed_all
from weft.tasks.evaluate import evaluate
from weft.tasks.ready_batches import ReadyBatches
from weft.tasks.row_batches import RowBatches
from weft.tasks.task import Batches, Task
from weft.text.paths import Seq2SeqText
from weft.training.loop import Trainer
from weft.training.outset import batches_of
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


class _EncodedOnce:
    """A task's ``batches``: rows that were encoded for the check are not encoded for the trainer.

    What is ready is made anew, since only rows cost time and know their place exactly.
    """

    def __init__(self, task: Task) -> None:
        self.make = task.batches
        self.made: dict[tuple[int, bool, int], tuple[RowBatches, dict[str, Any]]] = {}

    def __call__(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        key = id(data), train, seed  # the session keeps the data, so its id is nobody else's
        if key not in self.made:
            batches = self.make(data, train=train, seed=seed)
            if type(batches) is not RowBatches:
                return batches
            self.made[key] = batches, batches.state_dict()
        batches, start = self.made[key]
        batches.load_state_dict(start)
        return batches


def check(
    recipe: str | Path | Recipe,
    words: Sequence[str] = (),
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
    if planned.script is not None:
        try:
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
        if not (all(read) and self.attempt("build", self.build)):
            return
        if auto_data(self.session) and not self.attempt("max_tokens", self.max_tokens):
            return
        task: Task = self.session.get("task")
        steps = _Steps(self, task)
        if not self.attempt("encode", steps.encode):
            return
        if isinstance(steps.train, ReadyBatches):
            self.attempt("batches against the text path", steps.ready_batches)
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
        count = read_data(name, data)
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
        task: Task = self.session.get("task")
        task.module.to(self.session.get("env").device)
        size = sum(p.numel() for p in task.module.parameters())
        return f"{type(task.module).__name__}, {size:,} parameters"

    def max_tokens(self) -> str:
        """Finds what ``auto`` stands for."""
        trainer = self.plan.settings.get("trainer", {})
        found = settle_max_tokens(self.session, trainer, seed=seed_of(self.plan))
        return f"auto is {found:,} cells on this machine"


class _Steps:
    """What is tried on a built task; each step returns the line that is said of it."""

    def __init__(self, walk: _Walk, task: Task) -> None:
        self.session, self.plan, self.folder = walk.session, walk.plan, walk.folder
        self.found, self.task = walk.found, task
        vars(task)["batches"] = _EncodedOnce(task)  # of this task alone; its class stays as it is
        self.train: Batches
        self.few: _Batches

    def encode(self) -> str:
        """Encodes all rows of all data, and draws the first batches."""
        seed = seed_of(self.plan)
        made = partial(batches_of, task=self.task, seed=seed)
        self.train = made("train_data", self.session.get("train_data"), train=True)
        self.few = self.held_out = _Batches(self.train, 2)
        if not self.few.batches:
            raise WeftError("train_data gives no batch.")
        for name in reversed([n for n in DATA[1:] if n in self.plan.order]):
            batches = made(name, self.session.get(name), train=False)
            self.held_out = _Batches(batches, 1)
            if not self.held_out.batches:
                raise WeftError(f"{name} gives no batch.")
        self.found.notes += getattr(self.task, "notes", [])
        sized: Any = self.train
        return f"{len(sized):,} batches an epoch" if hasattr(sized, "__len__") else ""

    def ready_batches(self) -> str:
        """Ids of a recipe's own batches must be those the text path gives to their text."""
        assert isinstance(self.train, ReadyBatches)
        if self.train.replayed:
            self.found.notes.append(
                "train_data has no state_dict: after a crash its batches are drawn again up to "
                "the place."
            )
        batch, text = self.few.batches[0], self.task.text
        if not (isinstance(batch, Seq2SeqBatch) and isinstance(text, Seq2SeqText)):
            return "not compared: these batches are of a type of the recipe's own"
        target = None if batch.target is None else batch.target.cpu().numpy()
        wrong = text.roundtrip(batch.source.cpu().numpy(), target)
        if wrong:
            raise WeftError(
                f"{len(wrong)} of the batch's sequences have other ids than their own text: "
                f"{wrong[0]}. The model would be trained on what it never sees in prediction."
            )
        return "the same ids"

    def one_step(self) -> str:
        """A training step without its update: loss and gradients are finite, and reach all."""
        module = self.task.module
        module.train()
        loss = self.task.training_step(self.few.batches[0])
        mean, count = float(loss.total.detach()) / max(1.0, float(loss.count)), float(loss.count)
        if not count > 0:
            raise WeftError(f"the loss is a sum over {count:g} targets; wanted at least one.")
        if not math.isfinite(mean):
            raise WeftError(f"the loss of the first batch is {mean:g}; wanted a finite number.")
        loss.total.backward()  # type: ignore[no-untyped-call,unused-ignore]
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        bad = [n for n, p in named if p.grad is not None and not p.grad.isfinite().all()]
        idle = [n for n, p in named if p.grad is None]
        module.zero_grad(set_to_none=True)
        if bad:
            raise WeftError(f"gradients that are not finite, at a loss of {mean:g}: {_few(bad)}.")
        if idle:
            self.found.notes.append(
                f"no gradient reaches {_few(idle)}: the loss does not depend on it, so training "
                "never changes it."
            )
        return f"loss {mean:.3f} a target"

    def one_evaluation(self) -> str:
        """Evaluates a batch of valid_data, else one of train_data."""
        values = evaluate(self.task, self.held_out).values
        return ", ".join(f"{name} {format_value(name, value)}" for name, value in values.items())

    def optimizer(self) -> str:
        """Builds the optimizer; it must have the parameters that training is to change."""
        optimizer = self.session.get("optimizer")
        groups = getattr(optimizer, "param_groups", [])
        held = {id(p) for group in groups for p in group["params"]}
        if groups and not held:
            raise WeftError("the optimizer has no parameters: nothing would be trained.")
        named = self.task.module.named_parameters()
        left = [n for n, p in named if p.requires_grad and id(p) not in held]
        if groups and left:
            self.found.notes.append(f"the optimizer does not have {_few(left)}: it stays as it is.")
        return f"{type(optimizer).__name__}, {len(held):,} tensors"

    def checkpoint(self) -> str:
        """Saves and loads all weights and the optimizer's state; there is room for the run's.

        The state is that after a step, which is measured with gradients of zero; the weights are
        put back.
        """
        store = Checkpoints(self.folder / "tried", keep=1)  # the trainer is to find a fresh run
        parts = {"model": self.task.module, "optimizer": self.session.get("optimizer")}
        _take_empty_step(self.task.module, parts["optimizer"])
        trainer = self.plan.settings.get("trainer", {})
        if trainer.get("ema") is not None:
            parts["weights"] = self.task.module
        saved = store.save(1, parts, write_text=self.task.text.save)
        if store.restore(parts) != 1:
            raise WeftError("what was saved could not be loaded again.")
        size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
        rollback = trainer.get("on_nonfinite") == "rollback"
        return f"{size / 1e6:.1f} MB{room_for(size, trainer.get('keep'), rollback=rollback)}"

    def predict(self) -> str:
        """From a row's text to an answer."""
        example = self.few.examples(self.few.batches[0])[0]
        row = {name: str(value) for name, value in self.task.asked(example).items()}
        answer = str(Predictor(self.task)(row))
        return f"{_short(next(iter(row.values())))} -> {_short(answer)}"

    def trainer(self) -> str:
        """Builds the trainer, which checks what it selects by."""
        return type(self.session.get("trainer")).__name__

    def memory(self) -> str:
        """Measures what a step will hold at most; the batches of the check are gone by now."""
        trainer = self.session.get("trainer")
        if not isinstance(trainer, Trainer):
            return "not known of a trainer of the recipe's own"
        words, short = measure_need(trainer).memory_words(trainer.task.device)
        self.found.notes += [short] if short else []
        return words


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


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _told(error: Exception) -> list[str]:
    """Each error with the notes; of one that is not weft's own also its type and line."""
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, SeveralError):
        return ["\n".join([str(each), *notes]) for each in error.errors]
    if isinstance(error, WeftError):
        return ["\n".join([str(error), *notes])]
    head = f"{type(error).__name__}: {error}".rstrip(": ")
    return ["\n".join([head, *notes, f"raised at {raised_at(error)}"])]
