"""The loop. Read :meth:`Trainer.fit` and :meth:`Trainer.step`: the rest says what they stand on."""

import logging
import math
import signal
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import torch

from weft.checkpoint.parts import load_into
from weft.checkpoint.store import Checkpoints
from weft.config.component import Component
from weft.errors import CheckpointError, RunStoppedError, try_all
from weft.metrics.reporters import Reporter, RunInfo
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.runtime.ranks import Ranks
from weft.runtime.seeds import HostRandom, seed_all
from weft.runtime.signals import StopSignals
from weft.tasks.evaluate import Evaluation, evaluate
from weft.tasks.task import Batches, Task, loss_of
from weft.training.audience import Audience
from weft.training.callbacks import Callback
from weft.training.compiled import compiled, eager
from weft.training.ema import Weights
from weft.training.evaluating import StopAsked, apart
from weft.training.groups import Group, Groups
from weft.training.initial import Initial
from weft.training.layer_rates import present_rate
from weft.training.loss_scale import LossScale
from weft.training.nonfinite import NonFinite, Untouched
from weft.training.outset import (
    batches_of,
    checks_of,
    directions_of,
    fast_paths,
    selection_for,
    total_steps,
)
from weft.training.precision import autocast
from weft.training.progress import Progress
from weft.training.saved_modules import save_modules
from weft.training.schedules import Schedule
from weft.training.settings import TrainerConfig
from weft.training.state import Clock, TrainSums, norm_of

__all__ = ["Trainer"]

LOG = logging.getLogger("weft")


class Trainer(Component):
    """Drives one task over one data stream; owns no model code and no format of a file.

    Whatever must survive a crash is listed in :attr:`parts`; nothing else here is state. Killed
    anywhere and started again, a run ends with bitwise the same weights, metrics and predictions as
    the undisturbed one.
    """

    class Config(TrainerConfig):
        """Settings of the trainer."""

    config: Config

    def __init__(  # noqa: PLR0913  # one argument per ingredient: they are the page's nouns
        self,
        config: Config,
        *,
        task: Task,
        optimizer: torch.optim.Optimizer,
        lr_scheduler: Schedule,
        train_data: Iterable[Any],
        reporters: Sequence[Reporter],
        callbacks: Sequence[Callback],
        env: Env,
        xp: Experiment,
        valid_data: Iterable[Any] | None = None,
        test_data: Iterable[Any] | None = None,
    ) -> None:
        self.config, self.task, self.optimizer = config, task, optimizer
        self.schedule, self.xp, self.until = lr_scheduler, xp, config.until
        self.clock, self.sums = Clock(config.until), TrainSums()
        task.module.to(env.device)
        self.weights = Weights(task.module, ema=config.ema)
        self.numbers = autocast(config.precision, env.device)
        self.loss_scale = LossScale(config.precision)
        self.nonfinite = NonFinite(
            config.on_nonfinite, limit=config.max_nonfinite, loss_bound=config.loss_upper_bound
        )
        self.ranks = Ranks(env)
        made = partial(batches_of, task=task, seed=config.seed)
        train = made("train_data", train_data, train=True)
        self.data = Groups(train, size=config.accumulate)
        self.total = total_steps(config, train)
        self.audience = Audience(
            reporters, callbacks, clock=self.clock, data=self.data, total=self.total
        )
        held_out = partial(made, train=False)
        self.valid = None if valid_data is None else held_out("valid_data", valid_data)
        self.test = None if test_data is None else held_out("test_data", test_data)
        self.checkpoints = Checkpoints(xp.folder / "checkpoints", keep=config.keep)
        self.initial = Initial(config.initialize, config.initialize_from, task=task)
        checks = checks_of(config, task, lr_scheduler, train, measured=self.valid is not None)
        fresh = not self.checkpoints.folder.is_dir()
        try_all(*checks, *([self.initial.check] if fresh else []))
        self.selection = None if self.valid is None else selection_for(config, task)
        self.zero = torch.zeros((), device=self.task.device)
        self.parameters = [p for g in optimizer.param_groups for p in g["params"]]
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.stops = StopSignals()
        self.saved: tuple[Progress, Progress] | None = None
        self.remarks: tuple[str, ...] = ()  # of the best evaluation, in the end of the test

    def fit(self) -> Progress:
        """Trains, or goes on training, and evaluates the best weights in the end."""
        kernels = compiled(self.task.module, use=self.config.compile)
        with self.stops, closing(self.audience.reporters), fast_paths(self.config.fast), kernels:
            self.start()
            while True:
                if self.clock.now != self.clock.seen or self.is_open(self.clock.now):
                    self.do_what_is_due(self.clock.seen, self.clock.now)
                if self.ended(self.clock.now):
                    break
                self.stop_if_asked()
                self.clock.now = self.step(self.clock.now)
                self.audience.tick(self.clock.now)
                self.audience.tell("step", self.clock.now)
            self.finish()
        return self.clock.now

    def step(self, before: Progress) -> Progress:
        """Takes one optimizer step on the next group of batches (gradient accumulation)."""
        began = self.clock.seconds
        group, losses = next(self.data), []
        count = total = self.zero
        seed_all(self.config.seed, before.steps)  # dropout is a function of these, not of history
        if not self.task.module.training:  # train() takes 2 microseconds a submodule
            self.task.module.train()
        for batch in group.batches:
            with self.numbers:
                loss = loss_of(self.task, batch)
            self.loss_scale.of(loss.total).backward()  # gradients of a sum ...
            loss = loss.detach()
            count, total = count + loss.count, total + loss.total
            losses.append(loss)
        # ... of a mean over all ranks and batches
        factor = self.ranks.size / self.loss_scale.now / self.ranks.sum_(count)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = norm_of(gradients) * factor
        # The one wait for the device in a step; a random field's loss has another.
        if not math.isfinite((norm + self.nonfinite.bounded(total, count)).item()):
            return self.leave_out(group, before, norm=norm, total=total, count=count)
        self.nonfinite.fine(before.steps + 1)
        self.loss_scale.fine()
        clip = self.config.clip_norm
        if clip is not None and norm > clip:
            factor = factor * clip / norm
        torch._foreach_mul_(gradients, factor)
        history = self.selection.losses if self.selection else ()
        rate = self.schedule(before.steps + 1, self.total, history)
        for param_group, peak in zip(self.optimizer.param_groups, self.rates, strict=True):
            param_group["lr"] = peak * rate
        self.optimizer.step()
        self.weights.update(before.steps + 1)
        for parameter in self.parameters:
            parameter.grad = None
        for loss in losses:
            self.sums.add(loss)
        return self.took(group, before, seconds=self.clock.seconds - began)

    def do_what_is_due(self, before: Progress, now: Progress) -> None:
        """Evaluates, reports and saves what fell due between the two; nothing is done by halves."""
        config, last = self.config, self.ended(now)
        evaluation = None
        if self.valid is not None and (last or config.evaluate_every.due(before, now)):
            evaluation = self.evaluate(self.valid)
        due = last or evaluation or config.report_every.due(before, now)
        if due and self.sums.steps:
            values, rates = self.sums.pop()
            values |= {**self.nonfinite.pop(), **self.loss_scale.pop()}
            values["lr"] = present_rate(self.optimizer, self.rates)
            self.audience.report("train", now, values, rates)
        best = False
        if evaluation and self.selection:
            self.audience.evaluated("valid", now, evaluation)
            best = self.selection.see(now.steps, evaluation.values)
            self.remarks = evaluation.remarks if best else self.remarks
            self.audience.tell("evaluated", now, evaluation.values)
        self.clock.seen = now
        if last or evaluation:
            self.clock.closed = now
        goal = config.on_nonfinite == "rollback" and config.evaluate_every.due(before, now)
        if goal:
            self.come_back_here()
        if best or goal or self.ended(now) or config.save_every.due(before, now):
            self.save(best=best)

    @property
    def parts(self) -> dict[str, Any]:
        """Everything that must survive a crash, by the name it is saved under."""
        parts = {
            **self.weights.parts,
            **self.nonfinite.parts,
            **self.loss_scale.parts,
            **self.task.parts,
            "optimizer": self.optimizer,
            "data": self.data,
            "clock": self.clock,
            "sums": self.sums,
            "reporters": self.audience.reporters,
            "random": HostRandom(),
        }
        return parts if self.selection is None else {**parts, "selection": self.selection}

    # -- what fit and step stand on

    def start(self) -> None:
        """Goes to the newest good checkpoint, or initializes a fresh run."""
        self.optimizer.zero_grad(set_to_none=True)  # what a step that failed in this process left
        step = self.checkpoints.restore(self.parts)
        self.checkpoints.kept_step = self.nonfinite.target
        if step is not None and self.selection is not None and self.selection.is_best(step):
            self.checkpoints.mark_best(step)  # it may have been killed between saving and marking
        resumed = [f"Resumed at step {step:,}."] if step is not None else []
        for line in resumed or [*self.task.initialize(), *self.initial.load()]:
            LOG.info(line)
        self.task.module.train()  # all of it, however initialize left the submodules
        self.weights.begin()
        if self.selection is not None and self.selection.stalled():
            LOG.info(f"The run ends here: {self.selection.patience_spent}.")
        self.audience.reporters.start(self.info)
        self.audience.tell("start", self.clock.now)
        if step is None and self.config.on_nonfinite == "rollback":
            self.come_back_here()
            self.save(best=False)  # there is always something to go back to

    def took(self, group: Group, before: Progress, *, seconds: float) -> Progress:
        """Counts a step; returns where the run is after it."""
        examples = sum(self.task.batch_size(batch) for batch in group.batches)
        self.sums.took(examples, seconds=seconds)
        done = before.examples + examples
        return Progress(before.steps + 1, group.epochs, done, self.clock.seconds)

    def leave_out(self, group: Group, before: Progress, **found: torch.Tensor) -> Progress:
        """Goes on after a step that is not finite, or raises, by ``trainer.on_nonfinite``."""
        total, count = found["total"], found["count"]
        loss_is_fine = self.nonfinite.bounded(total, count).isfinite() and count
        if loss_is_fine and self.loss_scale.overflowed():
            self.optimizer.zero_grad(set_to_none=True)
            return self.took(group, before, seconds=self.clock.seconds - before.seconds)
        examples = [row for batch in group.batches for row in self.data.data.examples(batch)]
        error = self.nonfinite.broken(before.steps + 1, examples=examples, **found)
        self.nonfinite.take(error, step=before.steps + 1)
        self.optimizer.zero_grad(set_to_none=True)
        if self.config.on_nonfinite == "skip":
            return self.took(group, before, seconds=self.clock.seconds - before.seconds)
        going_on = dict.fromkeys(("data", "nonfinite", "random"), Untouched())
        seconds, target = self.clock.seconds, self.nonfinite.target
        step = self.checkpoints.restore({**self.parts, **going_on}, step=target)
        self.task.rolled_back()
        self.clock.spent(seconds)
        self.come_back_here()  # another step than before where that checkpoint was damaged
        best = self.selection is not None and self.selection.is_best(self.clock.now.steps)
        self.save(best=best)  # a run killed from here on does not meet the broken step again
        LOG.warning(f"Back at step {step:,}; the data goes on after what broke.")
        return self.clock.now

    def come_back_here(self) -> None:
        """Makes the checkpoint that is saved next the one that a rollback goes to."""
        self.nonfinite.target = self.checkpoints.kept_step = self.clock.now.steps

    def ended(self, now: Progress) -> bool:
        """Whether the limit is reached, patience is spent, or a callback asked."""
        stalled = self.selection is not None and self.selection.stalled()
        return self.clock.asked_to_stop or stalled or self.until.reached(now)

    def is_open(self, now: Progress) -> bool:
        """Whether the run ends here, and its last evaluation is still to be made."""
        return self.ended(now) and self.clock.closed != now

    def evaluate(self, batches: Batches, *, save: bool = True) -> Evaluation:
        """Evaluates; a signal that comes meanwhile saves the state from before and ends the run."""
        try:
            place = apart(batches, seed=self.config.seed, step=self.clock.now.steps)
            with place, self.weights.averaged(), eager(use=self.config.compile):
                return evaluate(self.task, batches, poll=self.leave_if_asked)
        except StopAsked:
            self.stop_if_asked(save=save)  # not before everything is as it was
            raise

    def leave_if_asked(self) -> None:
        """Raises if a signal asked the run to stop; nothing is saved yet."""
        if self.ranks.any(self.stops.received is not None):
            raise StopAsked

    def stop_if_asked(self, *, save: bool = True) -> None:
        """Saves and raises if a signal asked the run to stop."""
        if self.ranks.any(self.stops.received is not None):
            if save and self.saved != (self.clock.now, self.clock.seen):
                self.save(best=False)
            number, self.stops.received = self.stops.received or signal.SIGTERM, None
            raise RunStoppedError(
                number,
                f"Stopped by {signal.Signals(number).name} at step {self.clock.now.steps:,}; "
                "everything is saved, and the same command goes on from here.",
            )

    def save(self, *, best: bool) -> Path:
        """Saves all parts; a best one is pointed to only when it is safe."""
        now = self.clock.now
        path = self.checkpoints.save(now.steps, self.parts, write_text=self.task.text.save)
        if best:
            self.checkpoints.mark_best(now.steps)
        self.saved = (now, self.clock.seen)
        self.audience.tell("saved", now, path)
        return path

    def finish(self) -> None:
        """Restores the best weights, tests them on ``test_data``, and closes the books."""
        now = self.clock.now
        self.weights.finish()
        summary: dict[str, Any] = {"steps": now.steps, "epochs": now.epochs}
        used = now.steps
        if self.selection is not None and self.selection.best is not None:
            step, value = self.selection.best
            summary["best"] = {"step": step, self.selection.config.metric: value}
            used = self.use_best()
            if used != step:
                summary["weights"] = {"step": used}
        save_modules(self.xp.folder, self.config.save_modules, step=used, task=self.task)
        if self.test is not None:
            # The weights are the best ones now, not the last step's, so a stop must not save.
            evaluation = self.evaluate(self.test, save=False)
            self.audience.evaluated("test", now, evaluation)
            summary["test"] = dict(evaluation.values)
            self.remarks = evaluation.remarks
        self.summary = summary
        self.audience.reporters.end(summary)
        for remark in self.remarks:
            LOG.info(remark)
        longer = self.config.until.twice(now)
        if longer and self.selection is not None and self.selection.rose_to(now.steps):
            LOG.info(f"The best step is the last one; a longer run may be better: {longer}.")
        self.audience.tell("end", now)

    def use_best(self) -> int:
        """Loads the best weights, or the newest good ones; returns the step they are of."""

        def load(path: Path) -> int:
            load_into(path, "model", self.task.module)
            return int(path.name.removeprefix("step-"))

        try:
            used = self.checkpoints.use("best", load)
        except CheckpointError as error:
            LOG.warning("%s\nThe weights of the last step are used.", error)
            used = None
        return self.clock.now.steps if used is None else used

    @property
    def info(self) -> RunInfo:
        """What a reporter is told before the first value."""
        size = sum(p.numel() for p in self.task.module.parameters())
        return RunInfo(
            recipe=self.xp.recipe,
            folder=self.xp.folder,
            step=self.clock.now.steps,
            total=self.total,
            facts={"parameters": size, "device": str(self.task.device)},
            directions=directions_of(self.task),
        )
