"""Evaluation beside training: each new checkpoint of the runs below a folder, as it appears."""

import hashlib
import json
import logging
import math
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import step_of
from textmill.checkpoint.manifest import manifest_of
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.errors import InUseError, RunStoppedError, TextmillError, UserError
from textmill.launch.grid import why
from textmill.launch.launcher import Job, Launcher
from textmill.metrics.reporters.jsonl import json_value
from textmill.metrics.tables import format_duration, format_value, is_of_label, text_table
from textmill.run_folder.folder import RunFolder, is_of_lightning, runs_in
from textmill.run_folder.record import mapping, numbers, selected_by
from textmill.runtime.disk import refuse_outward_folder
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import LineLog, json_line, read_lines
from textmill.runtime.lock import Lock
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
EVALUATIONS = "evaluations"
"""The folder in a run for its evaluations; the watch locks it, not the run."""
LINES, BEST = "evaluations.jsonl", "best.json"
PAUSE = 1.0
"""Seconds between two looks for checkpoints."""
TICK = 0.05
"""Seconds between two looks at the evaluations."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint to evaluate with certain words; ``place`` is the stem of its files."""

    run: Path
    path: Path
    place: str

    def file(self, suffix: str) -> Path:
        """The file of what its evaluation prints (``.txt``) or of its values (``.json``)."""
        return self.run / EVALUATIONS / f"{self.place}{suffix}"

    @property
    def label(self) -> str:
        return f"{self.run} step {step_of(self.path):,}"


class Watch:
    """Evaluates each checkpoint of each run below a folder once, in the order they appeared.

    A file beside the run has a line for each evaluation. One that fails is reported and left, a
    folder that vanishes is forgotten. Killed and started again, a watch goes on. It ends
    ``timeout`` seconds after the last new checkpoint. Words and options are those of ``textmill
    evaluate``; ``show`` is called with what it waits for.
    """

    def __init__(
        self,
        root: Path,
        words: Sequence[str],
        launcher: Launcher,
        *,
        options: Sequence[str] = (),
        timeout: float,
        show: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.root, self.words, self.launcher = root, [*words], launcher
        self.options, self.timeout, self.show = [*options], timeout, show
        self.at_work: list[tuple[Checkpoint, Job]] = []
        self.failed: set[Checkpoint] = set()
        self._locks: dict[Path, Lock] = {}

    def run(self) -> list[Path]:
        """Evaluates until every run is finished, or nothing new comes; returns the runs."""
        if self.root.is_file():
            raise UserError(f"{self.root} is a file. Name a folder of runs, or a run.")
        with StopSignals() as stop:
            try:
                return self._evaluate(stop)
            finally:
                for _, job in self.at_work:
                    job.kill()
                for lock in self._locks.values():
                    lock.__exit__()

    def _evaluate(self, stop: StopSignals) -> list[Path]:
        news, looked, has_ended, is_silent = time.monotonic(), -math.inf, False, True
        waiting, runs = list[Checkpoint](), list[Path]()
        while True:
            for checkpoint, job in list(self.at_work):
                if (code := job.poll()) is not None:
                    self.at_work.remove((checkpoint, job))
                    self._ended(checkpoint, code)
            if (now := time.monotonic()) >= looked + PAUSE:
                runs, known, looked = self.runs(), waiting, now
                has_ended = bool(runs) and all(map(_is_ended, runs))
                waiting = self.pending(runs)
                for lost in set(known) - set(waiting):
                    self._report_if_deleted(lost)
            while waiting and len(self.at_work) < self.launcher.jobs:
                self._start(waiting.pop(0))
                news = now
            if stop.received is not None:
                name = signal.Signals(stop.received).name
                text = f"Stopped by {name}. The same command goes on from here."
                raise RunStoppedError(stop.received, text)
            limit = format_duration(self.timeout)
            if self.at_work:
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

    def runs(self) -> list[Path]:
        """The runs whose evaluations are this watch's."""
        found = []
        with suppress(OSError):
            found = [run for run in runs_in(self.root) if not is_of_lightning(run)]
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
        return run in self._locks

    def pending(self, runs: Sequence[Path]) -> list[Checkpoint]:
        """Checkpoints that are not evaluated yet, the oldest first."""
        begun = {checkpoint for checkpoint, _ in self.at_work} | self.failed
        found = []
        for run in runs:
            with suppress(OSError, TextmillError):  # it vanished meanwhile
                lines = [*read_lines(run / EVALUATIONS / LINES)]
                known = {line.get("place") for line in lines if "failed" not in line}
                for path in SavedCheckpoints.of(run).paths():
                    with suppress(OSError, TextmillError):  # rotated away meanwhile
                        # A checkpoint of the same step that was saved anew is another one.
                        asked = json.dumps([manifest_of(path)[1], self.words])
                        place = f"{path.name}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
                        new = Checkpoint(run, path, place)
                        if place not in known and new not in begun:
                            found.append((path.stat().st_mtime_ns, path, new))
        return [checkpoint for *_, checkpoint in sorted(found, key=lambda each: each[:2])]

    def _start(self, checkpoint: Checkpoint) -> None:
        """Starts an evaluation, unless a former watch left its values."""
        values = checkpoint.file(".json")
        if values.is_file():
            self._ended(checkpoint, 0)
            return
        words = ["evaluate", str(checkpoint.run), *self.words, *self.options]
        words += ["--checkpoint", checkpoint.path.name, "--values", str(values)]
        with suppress(FileNotFoundError):  # the run vanished meanwhile
            name = str(values.with_suffix(""))
            job = self.launcher.start(words, checkpoint.file(".txt"), name)
            self.at_work.append((checkpoint, job))

    def _ended(self, checkpoint: Checkpoint, code: int) -> None:
        """Records the result of an evaluation beside the run, and which checkpoint is the best."""
        values, folder = checkpoint.file(".json"), checkpoint.run / EVALUATIONS
        if not folder.is_dir() or self._report_if_deleted(checkpoint):
            return
        line = {
            "checkpoint": checkpoint.path.name,
            "step": step_of(checkpoint.path),
            "words": self.words,
            "place": checkpoint.place,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        if values.is_file():
            line["values"] = json.loads(values.read_text("utf-8"))
        else:
            log = checkpoint.file(".txt")
            line["failed"] = why(log, code)
            self.failed.add(checkpoint)
            LOG.error("%s failed: %s\n  its log: %s", checkpoint.label, line["failed"], log)
        with LineLog(folder / LINES) as lines:
            lines.append(json_line(json_value(line)))
            lines.sync()
        if "failed" in line:
            return
        values.unlink()
        best = best_of(checkpoint.run)
        write_atomic(folder / BEST, json.dumps(best, indent=2) + "\n")
        mine = (checkpoint.path.name, self.words)
        is_best = any((each["checkpoint"], each["words"]) == mine for each in best)
        shown = []
        for name, measured in mapping(line, "values").items():
            whole = {n: v for n, v in numbers(measured, ()).items() if not is_of_label(n)}
            shown.append(
                f"{name} " + ", ".join(f"{n} {format_value(n, v)}" for n, v in whole.items())
            )
        LOG.info("%s: %s%s", checkpoint.label, "; ".join(shown), " (the best so far)" * is_best)

    def _report_if_deleted(self, checkpoint: Checkpoint) -> bool:
        gone = not checkpoint.path.is_dir() and not checkpoint.file(".json").is_file()
        if gone and checkpoint.run.is_dir():
            text = "%s: it was deleted before it was evaluated. trainer.keep says how many stay."
            LOG.warning(text, checkpoint.label)
        return gone


def _is_ended(run: Path) -> bool:
    """Whether a run is finished; one that has vanished has no more checkpoints."""
    try:
        return RunFolder(run).finished
    except (OSError, TextmillError):
        return not run.is_dir()


def best_of(run: Path) -> list[dict[str, Any]]:
    """The best of a run's evaluations for each list of words, by what the run selects by.

    It is the best value itself, the later of equal ones: standard errors are not kept here. If the
    data has no such value, the loss alone decides.
    """
    metric, sign = selected_by(RunFolder(run).info)
    best: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {}
    for line in read_lines(run / EVALUATIONS / LINES):
        step, values = numbers(line, ()).get("step", 0.0), mapping(line, "values")
        facts = {key: line.get(key) for key in ("checkpoint", "step", "words")}
        measured = [
            ((way * value, step), {**facts, "data": data, "metric": name, "value": value})
            for name, way in ((metric, sign), ("loss", -1.0))
            for data in values
            if not math.isnan(value := numbers(mapping(values, data), ()).get(name, math.nan))
        ]
        for one in measured[:1]:
            words = json.dumps(line.get("words"))
            best[words] = max(best.get(words, one), one, key=lambda each: each[0])
    return [facts for _, facts in best.values()]


def best_table(runs: Sequence[Path], words: Sequence[str]) -> str:
    """A table of the runs that were evaluated with certain words: how often, and their best."""
    rows = []
    for run in runs:
        with suppress(OSError, TextmillError):
            lines = [x for x in read_lines(run / EVALUATIONS / LINES) if "values" in x]
            count = sum(line.get("words") == list(words) for line in lines)
            for best in (each for each in best_of(run) if each["words"] == list(words)):
                value = format_value(best["metric"], best["value"])
                text = f"{best['data']} {best['metric']} {value}"
                rows.append([str(run), str(count), str(best["checkpoint"]), text])
    return text_table(["run", "evaluated", "best", "value"], rows) if rows else ""
