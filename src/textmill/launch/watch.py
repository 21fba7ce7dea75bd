"""Evaluation beside training: each new checkpoint of the runs below a folder, as it appears."""

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import has_checkpoints, step_of
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.errors import InUseError, RunStoppedError, TextmillError, UserError
from textmill.launch.grid import why
from textmill.launch.launcher import Job, Launcher
from textmill.launch.worth import EVALUATIONS, LINES, Checkpoint, Worth, best_of, remove_worse
from textmill.metrics.reporters.jsonl import json_value
from textmill.metrics.tables import format_duration, format_value, is_of_label
from textmill.run_folder.folder import RunFolder, is_of_lightning, runs_in
from textmill.run_folder.record import numbers
from textmill.runtime.disk import refuse_outward_folder
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import LineLog, json_line, read_lines
from textmill.runtime.lock import Lock, owner_of
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
PAUSE = 1.0
"""Seconds between two looks for checkpoints."""
TICK = 0.05
"""Seconds between two looks at the evaluations."""


class Watch:
    """Measures each checkpoint of each run below a folder once, in the order they appeared.

    A file beside the run has a line for each. One that fails is reported and left, a folder that
    vanishes is forgotten. Killed and started again, a watch goes on. It ends ``timeout`` seconds
    after the last new checkpoint. ``worth`` says how they are measured; ``show`` is called with
    what it waits for. With ``train``, words of ``textmill train``, the watch trains the run, too.
    """

    def __init__(
        self,
        root: Path,
        worth: Worth,
        launcher: Launcher,
        *,
        train: Sequence[str] = (),
        timeout: float,
        show: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.root, self.worth, self.launcher = root, worth, launcher
        self.train, self.timeout, self.show = train, timeout, show
        self.training: Job | None = None
        """What trains the run, while it does."""
        self.trained: int | None = None
        """The exit code of that."""
        self.at_work: list[tuple[Checkpoint, Job]] = []
        self.failed: set[Checkpoint] = set()
        self._locks: dict[Path, Lock] = {}

    def run(self) -> list[Path]:
        """Measures until every run is finished, or nothing new comes; returns the runs."""
        if self.root.is_file():
            raise UserError(f"{self.root} is a file. Name a folder of runs, or a run.")
        with StopSignals() as stop:
            try:
                return self._measure(stop)
            finally:
                for job in self._jobs():
                    job.kill()
                for lock in self._locks.values():
                    lock.__exit__()

    def _jobs(self) -> list[Job]:
        return [job for _, job in self.at_work] + ([self.training] if self.training else [])

    def _measure(self, stop: StopSignals) -> list[Path]:
        news, looked, has_ended, is_silent = time.monotonic(), -math.inf, False, True
        waiting, runs = list[Checkpoint](), list[Path]()
        while True:
            for checkpoint, job in list(self.at_work):
                if (code := job.poll()) is not None:
                    self.at_work.remove((checkpoint, job))
                    self._ended(checkpoint, code)
            if (now := time.monotonic()) >= looked + PAUSE:
                is_over, known, looked, runs = self._train(), waiting, now, self.runs()
                has_ended = bool(self.trained) or (bool(runs) and all(map(_is_ended, runs)))
                has_ended = has_ended and is_over
                waiting = self.pending(runs)
                for lost in set(known) - set(waiting):
                    self._report_if_deleted(lost)
            kept = bool(self.train) and self.trained is None  # a place for what trains the run
            while waiting and len(self.at_work) < self.launcher.jobs - kept:
                self._start(waiting.pop(0))
                news = now
            if stop.received is not None:
                self._stop(stop.received)
            limit = format_duration(self.timeout)
            if self._jobs():
                news = now
            elif has_ended and not self.pending(runs):
                return runs
            elif now > news + self.timeout:
                unfinished = ", ".join(str(run) for run in runs if not _is_ended(run))
                left = f"{unfinished} not finished" if runs else f"no run in {self.root}"
                LOG.info("No new checkpoint for %s; %s.", limit, left)
                return runs
            else:
                plural = "s" * (len(runs) != 1)
                what = f"checkpoints of {len(runs)} run{plural}" if runs else "a run"
                if is_silent:
                    text = "Waiting for %s in %s; it ends after %s without news (--timeout)."
                    LOG.info(text, what, self.root, limit)
                is_silent = False
                self.show(f"waiting for {what}")
            time.sleep(TICK)

    def _train(self) -> bool:
        """Trains the run, if asked and if no other process does; returns whether that is over."""
        log = Path(f"{self.root}.txt")
        if self.training is not None and (code := self.training.poll()) is not None:
            self.training, self.trained = None, code
            if code:
                LOG.error("Training %s failed: %s\n  its log: %s", self.root, why(log, code), log)
        is_over = not self.train or self.trained is not None
        if not is_over and self.training is None and owner_of(self.root) is None:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            words = [*self.train, "--run-dir", str(self.root)]
            self.training = self.launcher.start(words, log, str(self.root))
            LOG.info("Training %s; its log: %s", self.root, log)
        return is_over

    def _stop(self, received: int) -> None:
        """Lets trainings save and end; a second Ctrl-C kills them."""
        jobs = self._jobs()
        for job in jobs:
            job.stop()
        while any(job.poll() is None for job in jobs):
            self.show(f"waiting for {len(jobs)} to save and end")
            time.sleep(TICK)
        text = f"Stopped by {signal.Signals(received).name}. The same command goes on from here."
        raise RunStoppedError(received, text)

    def runs(self) -> list[Path]:
        """The runs whose evaluations are this watch's."""
        found = []
        with suppress(OSError):
            found = [run for run in runs_in(self.root) if not is_of_lightning(run)]
        found = [run for run in found if EVALUATIONS not in run.relative_to(self.root).parts]
        return [run for run in found if run in self._locks or self._entered(run)]

    def _entered(self, run: Path) -> bool:
        """Locks the evaluations of a run, unless another watch has; returns whether it did."""
        with suppress(OSError):  # the run vanished meanwhile
            refuse_outward_folder(run / EVALUATIONS, run)
            (run / EVALUATIONS).mkdir(exist_ok=True)
            lock = Lock(run / EVALUATIONS)
            try:
                self._locks[run] = lock.__enter__()
            except InUseError:
                LOG.debug("%s: another textmill watch evaluates it.", run)
            else:
                with suppress(TextmillError):  # a run.json that nobody can read
                    remove_worse(run)
        return run in self._locks

    def pending(self, runs: Sequence[Path]) -> list[Checkpoint]:
        """Checkpoints that are not measured yet, the oldest first."""
        begun = {checkpoint for checkpoint, _ in self.at_work} | self.failed
        found = []
        for run in runs:
            with suppress(OSError, TextmillError):  # it vanished meanwhile
                lines = [*read_lines(run / EVALUATIONS / LINES)]
                known = {line.get("place") for line in lines if "failed" not in line}
                for path in SavedCheckpoints.of(run).paths():
                    with suppress(OSError, TextmillError):  # rotated away meanwhile
                        new = Checkpoint.of(run, path, self.worth.asked)
                        if new.place not in known and new not in begun:
                            found.append((path.stat().st_mtime_ns, path, new))
        return [checkpoint for *_, checkpoint in sorted(found, key=lambda each: each[:2])]

    def _start(self, checkpoint: Checkpoint) -> None:
        """Starts to measure, unless a former watch left the values, or what it began still runs."""
        if self.worth.found(checkpoint) is not None:
            self._ended(checkpoint, 0)
        elif owner_of(checkpoint.file()) is None:
            with suppress(FileNotFoundError):  # the run vanished meanwhile
                words, name = self.worth.command(checkpoint), str(checkpoint.file())
                job = self.launcher.start(words, checkpoint.file(".txt"), name)
                self.at_work.append((checkpoint, job))

    def _ended(self, checkpoint: Checkpoint, code: int) -> None:
        """Records what was measured beside the run, and which checkpoint is the best."""
        folder = checkpoint.run / EVALUATIONS
        if not folder.is_dir() or self._report_if_deleted(checkpoint):
            return
        found, log = self.worth.found(checkpoint), checkpoint.file(".txt")
        line: dict[str, Any] = {
            "checkpoint": checkpoint.path.name,
            "step": step_of(checkpoint.path),
            **self.worth.asked,
            "place": checkpoint.place,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **(found or {"failed": why(log, code)}),
        }
        with LineLog(folder / LINES) as lines:
            lines.append(json_line(json_value(line)))
            lines.sync()
        if found is None:
            self.failed.add(checkpoint)
            LOG.error("%s failed: %s\n  its log: %s", checkpoint.label, line["failed"], log)
            return
        checkpoint.file(".json").unlink(missing_ok=True)
        best = best_of(checkpoint.run)
        write_atomic(folder / "best.json", json.dumps(best, indent=2) + "\n")
        remove_worse(checkpoint.run, [other.file() for other, _ in self.at_work])
        mine = {"checkpoint": checkpoint.path.name, **self.worth.asked}
        is_best = any(mine.items() <= each.items() for each in best)
        shown = []
        for name, measured in found["values"].items():
            whole = {n: v for n, v in numbers(measured, ()).items() if not is_of_label(n)}
            shown += [f"{name} {', '.join(f'{n} {format_value(n, v)}' for n, v in whole.items())}"]
        LOG.info("%s: %s%s", checkpoint.label, "; ".join(shown), " (the best so far)" * is_best)

    def _report_if_deleted(self, checkpoint: Checkpoint) -> bool:
        """Whether it was deleted before it was measured, or before a run began from it."""
        gone = not checkpoint.path.is_dir() and not checkpoint.file(".json").is_file()
        gone = gone and not has_checkpoints(checkpoint.file())
        if gone and checkpoint.run.is_dir():
            log = checkpoint.file(".txt")
            text = "%s: it was deleted before it was evaluated. trainer.keep says how many stay."
            LOG.warning(f"{text}%s", checkpoint.label, f"\n  its log: {log}" * log.is_file())
        return gone


def _is_ended(run: Path) -> bool:
    """Whether a run is finished; one that has vanished has no more checkpoints."""
    try:
        return RunFolder(run).finished
    except (OSError, TextmillError):
        return not run.is_dir()
