"""The loop. Read :meth:`Trainer.fit` and :meth:`Trainer.step`: the rest says what they stand on."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any, cast

import torch
from torch.optim.lr_scheduler import LRScheduler

from textmill.config.component import Component
from textmill.metrics.reporters import Reporter
from textmill.models import fast
from textmill.runtime.devices import Env, Experiment
from textmill.tasks.several.multitask import Multitask
from textmill.tasks.task import Task
from textmill.training.checkpoints import RunCheckpoints
from textmill.training.evaluator import Evaluator
from textmill.training.observers import Callback, Observers
from textmill.training.progress import Clock, Progress, StopAsked, Stops
from textmill.training.run_setup import checked_start, kernels, selection_for, total_steps
from textmill.training.schedules import Schedule
from textmill.training.sources import Sources
from textmill.training.trainer_config import TrainerConfig
from textmill.training.updates import Updates

LOG = logging.getLogger("textmill")


class Trainer(Component):
    """Drives tasks over their data; owns no model code and no format of a file.

    Whatever must survive a crash is listed in :attr:`parts`; nothing else here is state. Killed
    anywhere and started again, a run ends with bitwise the same weights, metrics and predictions as
    the undisturbed one.

    Several tasks are trained together as one :class:`~textmill.tasks.several.multitask.Multitask`,
    which brings their data.
    """

    class Config(TrainerConfig):
        """Settings of the trainer."""

    config: Config

    def __init__(  # one argument per ingredient: they are the page's nouns
        self,
        config: Config,
        *,
        task: Task | Multitask,
        optimizer: torch.optim.Optimizer,
        lr_scheduler: Schedule | LRScheduler,
        train_data: Iterable[Any],
        reporters: Sequence[Reporter],
        callbacks: Sequence[Callback],
        env: Env,
        xp: Experiment,
        valid_data: Iterable[Any] | None = None,
        test_data: Iterable[Any] | None = None,
    ) -> None:
        data = {"train_data": train_data, "valid_data": valid_data, "test_data": test_data}
        task = cast("Task", task)  # several are for the loop as one is
        self.config, self.task, self.xp = config, task, xp
        self.fast = fast.settled(config.fast)
        self.schedule, self.optimizer = lr_scheduler, optimizer
        task.module.to(env.device)
        self.clock = Clock(config.until)
        self.updates = Updates(
            config,
            task=task,
            optimizer=optimizer,
            schedule=lr_scheduler,
            env=env,
            clock=self.clock,
        )
        ranks, together = self.updates.ranks, self.updates.together
        self.data = Sources(config, task, ranks=ranks, together=together, **data)
        self.valid, self.test = self.data.first.valid, self.data.first.test
        self.measured = self.data.held_out("valid")
        self.total = total_steps(config, self.data.length)
        seen: dict[str, Any] = {"clock": self.clock, "data": self.data, "total": self.total}
        self.audience = Observers(reporters, callbacks, **seen, ranks=ranks)
        self.initial = checked_start(
            config,
            task=task,
            updates=self.updates,
            total=self.total,
            measured=bool(self.measured),
            folder=xp.folder,
        )
        begins = self.updates.pruner.end(self.total)
        self.selection = selection_for(config, task, begins=begins) if self.measured else None
        self.checkpoints = RunCheckpoints(
            xp.folder,
            keep=config.keep,
            task=task,
            clock=self.clock,
            selection=self.selection,
            nonfinite=self.updates.nonfinite,
            ranks=ranks,
        )
        self.stops = Stops(ranks)
        self.evaluator = Evaluator(config, served=self.updates.served, stops=self.stops)
        self.summary: dict[str, Any] = {}

    def fit(self) -> Progress:
        """Trains, or goes on training, and evaluates the best weights in the end."""
        settled = kernels(self.config, self.fast, self.task)
        with self.stops, closing(self.audience.reporters), settled:
            try:
                self.start()
                while True:
                    if self.clock.now != self.clock.seen or self.is_open(self.clock.now):
                        self.do_what_is_due(self.clock.seen, self.clock.now)
                    if self.ended(self.clock.now):
                        break
                    self.stops.poll()
                    self.clock.now = self.step(self.clock.now)
                    self.audience.tick(self.clock.now)
                    self.audience.tell("step", self.clock.now)
                self.finish()
            except StopAsked:  # in an evaluation, too: by now everything is as it was before it
                if not self.checkpoints.is_current:
                    self.save(best=False)
                raise self.stops.error(self.clock.now.steps) from None
        return self.clock.now

    def step(self, before: Progress) -> Progress:
        """Takes one optimizer step on the next group of batches (gradient accumulation)."""
        began, number = self.clock.seconds, before.steps + 1
        gradient = self.updates.gradient(self.data.groups(number, self.total), step=number)
        examples = before.examples + gradient.examples
        now = Progress(number, self.data.epochs, examples, gradient.seconds)
        if gradient.finite:
            history = self.selection.losses if self.selection else ()
            self.updates.apply(gradient, before, now, total=self.total, history=history)
        elif self.updates.handle_nonfinite(gradient, step=number):
            return self.roll_back()
        self.updates.took(self.clock.seconds - began)
        return now

    def do_what_is_due(self, before: Progress, now: Progress) -> None:
        """Evaluates, reports and saves what fell due between the two; nothing is done by halves."""
        config, last = self.config, self.ended(now)
        evaluation = None
        if self.measured and (last or config.evaluate_every.due(before, now)):
            evaluation = self.evaluator.evaluate(self.measured, step=now.steps)
        due = last or evaluation or config.report_every.due(before, now)
        if due and self.updates.steps:
            self.audience.report("train", now, *self.updates.pop())
        best = False
        if evaluation and self.selection:
            best = self.selection.see(
                now.steps,
                evaluation.values,
                errors=evaluation.errors,
                remarks=evaluation.remarks,
            )
            kept = best or self.selection.best is None
            self.audience.evaluated("valid", now, evaluation, kept=kept)
            self.audience.tell("evaluated", now, evaluation.values)
        self.clock.seen = now
        if last or evaluation:
            self.clock.closed = now
        goal = config.on_nonfinite == "rollback" and config.evaluate_every.due(before, now)
        if goal:
            self.checkpoints.set_rollback_target()
        if best or goal or self.ended(now) or config.save_every.due(before, now):
            self.save(best=best)

    @property
    def parts(self) -> dict[str, Any]:
        parts = {
            **self.updates.parts,
            **self.task.parts,
            **self.data.parts,
            "clock": self.clock,
            "reporters": self.audience.reporters,
            "random": self.updates.random,  # after the data, which may draw on the way to its place
        }
        return parts if self.selection is None else {**parts, "selection": self.selection}

    # -- what fit and step stand on

    def start(self) -> None:
        """Goes to the newest good checkpoint, or initializes a fresh run."""
        self.updates.clear()  # what a step that failed in this process left
        self.checkpoints.rows = self.updates.divide()
        step = self.checkpoints.resume(self.parts)
        with self.updates.whole(write=step is None):
            for line in self.initial.begin() if step is None else [f"Resumed at step {step:,}."]:
                LOG.info(line)
        self.task.module.train()  # all of it, however initialize left the submodules
        self.updates.weights.begin()
        if self.selection is not None and self.selection.stalled():
            LOG.info(f"The run ends here: {self.selection.patience_spent}.")
        selected = self.selection.config.metric if self.selection else ""
        self.audience.start(self.task, self.xp, selected=selected)
        if step is None and self.config.on_nonfinite == "rollback":
            self.checkpoints.set_rollback_target()
            self.save(best=False)  # there is always something to go back to

    def roll_back(self) -> Progress:
        """Goes back to an earlier step, with the data where it is; returns where the run is."""
        best = self.checkpoints.roll_back(self.parts)
        self.save(best=best)  # a run killed from here on does not meet the broken step again
        return self.clock.now

    def ended(self, now: Progress) -> bool:
        """Whether the limit is reached, patience is spent, or a callback asked."""
        stalled = self.selection is not None and self.selection.stalled()
        return self.clock.asked_to_stop or stalled or self.config.until.reached(now)

    def is_open(self, now: Progress) -> bool:
        """Whether the run ends here, and its last evaluation is still to be made."""
        return self.ended(now) and self.clock.closed != now

    def save(self, *, best: bool) -> None:
        """Saves all parts, and tells the callbacks where."""
        path = self.checkpoints.record(self.parts, best=best)
        self.audience.tell("saved", self.clock.now, path)

    def finish(self) -> None:
        """Restores the best weights, tests them on ``test_data``, and closes the books."""
        now = self.clock.now
        self.updates.finish()
        summary: dict[str, Any] = {"steps": now.steps, "epochs": now.epochs}
        used, remarks = now.steps, self.selection.remarks if self.selection else ()
        if self.selection is not None and self.selection.best is not None:
            step, value = self.selection.best
            summary["best"] = {"step": step, self.selection.config.metric: value}
            used = self.checkpoints.use_best()
            if used != step:
                summary["weights"] = {"step": used}
        self.checkpoints.save_modules(self.config.save_modules, step=used)
        if tested := self.data.held_out("test"):
            evaluation = self.evaluator.evaluate(tested, step=now.steps)
            self.audience.evaluated("test", now, evaluation, kept=True)
            summary["test"] = dict(evaluation.values)
            remarks = evaluation.remarks
        self.summary = summary
        self.audience.reporters.end(summary)
        for remark in remarks:
            LOG.info(remark)
        longer = self.config.until.twice(now)
        if self.selection:
            for line in self.selection.advice(now.steps, longer=longer):
                LOG.info(line)
        self.audience.tell("end", now)
