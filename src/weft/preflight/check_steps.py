"""What a check tries on a built task: a batch from its rows to a step, a checkpoint, an answer."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.checkpoint.store import Checkpoints
from weft.config.planning.plan import Plan
from weft.config.planning.session import Session
from weft.data.seq2seq_batch import Seq2SeqBatch
from weft.errors import WeftError
from weft.inference.load import Predictor
from weft.metrics.tables import format_value, is_of_label
from weft.preflight.data_preview import (
    first_row,
    nothing_selected,
    odd_labels,
    shared_rows,
    shortened,
)
from weft.preflight.load_data import DATA
from weft.preflight.resource_estimate import estimate_resources, room_for
from weft.recipes.planning import seed_of
from weft.tasks.batches.row_batches import RowBatches
from weft.tasks.batches.user_batches import ReadyBatches
from weft.tasks.evaluation import evaluate
from weft.tasks.task import Batches, Task, loss_of
from weft.text.processors.text_processor import Seq2SeqText
from weft.training.loop import Trainer
from weft.training.own_trainer import check_trainer

__all__ = ["CheckSteps"]


class _Few:
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


class CheckSteps:
    """What is tried on a built task; each step returns the line that is said of it.

    Args:
        task: The task.
        session: What was built with it, and builds the rest.
        plan: The plan.
        folder: A folder to write in.
        notes: Takes what a person should know, though it is not wrong.
    """

    def __init__(
        self, task: Task, session: Session, plan: Plan, *, folder: Path, notes: list[str]
    ) -> None:
        self.task, self.session, self.plan = task, session, plan
        self.folder, self.notes = folder, notes
        # Rows take time and know their place exactly; what is ready is made anew.
        task.reuse_batches(RowBatches)
        self.train: Batches
        self.few: _Few

    def first_look(self) -> str:
        """What a reader sees of the training data; empty where it has no rows at hand."""
        text, data = self.task.text, self.session.get("train_data")
        self.notes += odd_labels(text, data, self.plan.settings)
        self.notes += shared_rows(self.session)
        self.notes += [note] if (note := nothing_selected(self.plan)) else []
        return first_row(text, data)

    def encode(self) -> str:
        """Encodes all rows of all data, and draws the first batches."""
        seed = seed_of(self.plan)
        made = partial(self.task.batches_of, seed=seed)
        self.train = made("train_data", self.session.get("train_data"), train=True)
        self.few = self.held_out = _Few(self.train, 2)
        if not self.few.batches:
            raise WeftError("train_data gives no batch.")
        for name in reversed([n for n in DATA[1:] if n in self.plan.order]):
            batches = made(name, self.session.get(name), train=False)
            self.held_out = _Few(batches, 1)
            if not self.held_out.batches:
                raise WeftError(f"{name} gives no batch.")
        self.notes += self.task.notes
        sized: Any = self.train
        return f"{len(sized):,} batches an epoch" if hasattr(sized, "__len__") else ""

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
            raise WeftError(
                f"{len(wrong)} of the batch's sequences have other ids than their own text: "
                f"{wrong[0]}. The model would be trained on what it never sees in prediction."
            )
        return "the same ids"

    def one_step(self) -> str:
        """A training step without its update: loss and gradients are finite, and reach all."""
        module = self.task.module
        module.train()
        loss = loss_of(self.task, self.few.batches[0])
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
            raise WeftError("the optimizer has no parameters: nothing would be trained.")
        named = self.task.module.named_parameters()
        left = [n for n, p in named if p.requires_grad and id(p) not in held]
        if groups and left:
            self.notes.append(f"the optimizer does not have {_few(left)}: it stays as it is.")
        return f"{type(optimizer).__name__}, {len(held):,} tensors"

    def checkpoint(self) -> str:
        """Saves and loads all weights and the optimizer's state; there is room for the run's.

        The state is that after a step, which is measured with gradients of zero; the weights are
        put back.
        """
        store = Checkpoints(self.folder / "tried", keep=1)  # the trainer is to find a fresh run
        parts = {"model": self.task.module}
        if self.session.has("optimizer"):
            parts["optimizer"] = self.session.get("optimizer")
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
        row = dict(self.task.asked(example))
        answer = str(Predictor(self.task)(row))
        return f"{shortened(next(iter(row.values())))} -> {shortened(answer)}"

    def trainer(self) -> str:
        """Builds the trainer, which checks what it selects by."""
        trainer = self.session.get("trainer")
        check_trainer(trainer)
        return type(trainer).__name__

    def memory(self) -> str:
        """Measures what a step will hold at most; the batches of the check are gone by now."""
        trainer = self.session.get("trainer")
        if not isinstance(trainer, Trainer):
            return "not known of a trainer of the recipe's own"
        words, short = estimate_resources(trainer).memory_words(trainer.task.device)
        self.notes += [short] if short else []
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
