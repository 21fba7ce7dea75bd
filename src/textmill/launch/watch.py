"""Evaluation beside training: each new checkpoint of the runs below a folder, as it appears."""

import hashlib
import json
import logging
import math
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import MANIFEST, step_of
from textmill.checkpoint.manifest import digest_of
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.errors import InUseError, RunStoppedError, TextmillError, UserError
from textmill.launch.grid import Show, why
from textmill.launch.grid_table import selected_by
from textmill.launch.launcher import Job, Launcher
from textmill.metrics.reporters.jsonl import json_value
from textmill.metrics.tables import format_duration, format_value, is_of_label, text_table
from textmill.run_folder.diff import mapping
from textmill.run_folder.folder import RunFolder, runs_in
from textmill.run_folder.lightning_run import is_of_lightning
from textmill.run_folder.record import numbers
from textmill.runtime.disk import refuse_outward_folder
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import JsonlLog, read_lines
from textmill.runtime.lock import Lock, owner_of
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
EVALUATIONS = "evaluations"
"""The folder in a run where its evaluations are; its lock is the watcher's, not the run's."""
LINES, BEST = "evaluations.jsonl", "best.json"
PAUSE = 1.0
"""Seconds between two looks for checkpoints."""
TICK = 0.05
"""Seconds between two looks at what is evaluated."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that is evaluated, with certain words."""

    run: Path
    path: Path
    digest: str
    """Of its manifest: one of the same step that was saved anew is another; one that was made plain
    of shards is not."""
    words: tuple[str, ...]

    @property
    def place(self) -> str:
        """The stem of its files in the run's evaluations."""
        said = json.dumps([self.digest, self.words])
        return f"{self.path.name}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"

    @property
    def key(self) -> tuple[Path, str]:
        """What tells it from others."""
        return self.run, self.place

    @property
    def folder(self) -> Path:
        """Where evaluations of its run are."""
        return self.run / EVALUATIONS

    @property
    def log(self) -> Path:
        """What its evaluation printed."""
        return self.folder / f"{self.place}.txt"

    @property
    def values(self) -> Path:
        """Where its evaluation leaves the values."""
        return self.folder / f"{self.place}.json"

    @property
    def label(self) -> str:
        """For a line."""
        return f"{self.run} step {step_of(self.path):,}"

    @property
    def name(self) -> str:
        """That of the job that evaluates it."""
        return str(self.folder / self.place)


@dataclass
class Evaluating:
    """A checkpoint at work."""

    checkpoint: Checkpoint
    job: Job


class Watch:
    """Evaluates each checkpoint of each run below a folder once, in the order they appeared.

    What was evaluated stands beside the run, a line each. An evaluation that fails is told and
    left, a folder that vanishes is forgotten. Killed and started again it goes on.

    Args:
        root: Where runs are, or a run.
        words: Settings of the data, as ``textmill evaluate`` takes them.
        options: Of ``textmill evaluate``, such as ``--device``.
        launcher: What starts the evaluations.
        timeout: Seconds after the last new checkpoint after which it ends.
        show: Is told what it waits for.
    """

    def __init__(
        self,
        root: Path,
        words: Sequence[str],
        launcher: Launcher,
        *,
        options: Sequence[str] = (),
        timeout: float,
        show: Show = lambda line: None,
    ) -> None:
        self.root, self.words, self.launcher = root, tuple(words), launcher
        self.options, self.timeout, self.show = list(options), timeout, show
        self.waiting: list[Checkpoint] = []
        self.known: list[Path] = []
        """The runs that there were at the last look."""
        self.next_look, self.last_news = 0.0, time.monotonic()
        self.at_work: list[Evaluating] = []
        self.failed: set[tuple[Path, str]] = set()
        self._digests: dict[Path, tuple[int, str]] = {}
        self._locks: dict[Path, Lock] = {}
        self._others: set[Path] = set()
        self._told = False

    def run(self) -> list[Path]:
        """Evaluates until every run is finished, or nothing new has come for the timeout.

        Returns:
            The runs.

        Raises:
            RunStoppedError: A signal came.
            UserError: A file has the name of the folder.
        """
        if self.root.is_file():
            raise UserError(f"{self.root} is a file. Name a folder of runs, or a run.")
        with StopSignals() as stop:
            try:
                while not self.is_over():
                    self.look()
                    while self.waiting and len(self.at_work) < self.launcher.jobs:
                        self.start(self.waiting.pop(0))
                    if stop.received is not None:
                        name = signal.Signals(stop.received).name
                        text = f"Stopped by {name}. The same command goes on from here."
                        raise RunStoppedError(stop.received, text)
                    time.sleep(TICK)
            finally:
                for one in self.at_work:
                    one.job.kill()
                for lock in self._locks.values():
                    lock.__exit__()
        return self.known

    def is_over(self) -> bool:
        """Looks for checkpoints, if it is time; tells whether nothing is left to wait for."""
        now = time.monotonic()
        if now >= self.next_look:
            before = self.waiting
            self.waiting, self.known = self.pending()
            for lost in before:
                if not lost.path.is_dir():
                    tell_deleted(lost)
            self.next_look = now + PAUSE
        if self.waiting or self.at_work:
            self.last_news = now
            return False
        if self.known and all(map(is_ended, self.known)) and not self.pending()[0]:
            return True
        if now - self.last_news > self.timeout:
            self.tell_timeout(self.known)
            return True
        self.tell_waiting()
        return False

    def tell_waiting(self) -> None:
        """Says what it waits for, and once for how long: nothing else may come for an hour."""
        count = len(self.known)
        what = (
            f"checkpoints of {count} run{'s' * (count > 1)}" if count else f"a run in {self.root}"
        )
        if not self._told:
            self._told = True
            missing = "" if self.root.exists() else f"There is no folder {self.root} yet. "
            most = format_duration(self.timeout)
            LOG.info(f"{missing}Waiting for {what}; it ends after {most} without news (--timeout).")
        self.show(f"waiting for {what}")

    def tell_timeout(self, runs: Sequence[Path]) -> None:
        """Says what is still open when nothing came any more."""
        open_ = [str(run) for run in runs if not is_ended(run)]
        said = f"{', '.join(open_[:5])} not finished" if open_ else f"no run in {self.root}"
        LOG.info("No new checkpoint for %s; %s.", format_duration(self.timeout), said)

    def pending(self) -> tuple[list[Checkpoint], list[Path]]:
        """The checkpoints that are to be evaluated, the oldest first; and the runs there are."""
        found, runs = [], []
        for run in self.runs():
            with suppress(OSError, TextmillError):  # it vanished meanwhile
                known = {
                    line.get("place")
                    for line in read_lines(run / EVALUATIONS / LINES)
                    if "failed" not in line
                }
                runs.append(run)
                if not self.is_anothers(run):
                    new = (c for c in self.checkpoints(run) if c.place not in known)
                    found += [c for c in new if not self.is_known(c)]
        return sorted(found, key=lambda c: (self._digests[c.path][0], c.path)), runs

    def is_anothers(self, run: Path) -> bool:
        """Whether another watch evaluates a run; it is told once, and taken over after that."""
        if run in self._locks or owner_of(run / EVALUATIONS) is None:
            self._others.discard(run)
            return False
        if run not in self._others:
            LOG.warning("%s: another textmill watch evaluates it, so this one does not.", run)
            self._others.add(run)
        return True

    def is_known(self, checkpoint: Checkpoint) -> bool:
        """Whether it is at work, or failed in this watch."""
        return checkpoint.key in self.failed | {one.checkpoint.key for one in self.at_work}

    def runs(self) -> list[Path]:
        """The runs below the folder, at this moment."""
        with suppress(OSError):
            return [run for run in runs_in(self.root) if not is_of_lightning(run)]
        return []

    def checkpoints(self, run: Path) -> list[Checkpoint]:
        """Those that a run has; each is whole, as it is renamed to its place."""
        found = []
        for path in SavedCheckpoints.of(run).paths():
            with suppress(OSError, TextmillError):  # rotated away meanwhile
                written = (path / MANIFEST).stat().st_mtime_ns
                if self._digests.get(path, (0, ""))[0] != written:
                    self._digests[path] = (written, digest_of(path))
                found.append(Checkpoint(run, path, self._digests[path][1], self.words))
        return found

    def start(self, checkpoint: Checkpoint) -> None:
        """Starts an evaluation, unless a watch before this one left its values."""
        folder = checkpoint.folder
        try:
            self.enter(checkpoint.run)
            if checkpoint.values.is_file():
                self.ended(checkpoint, 0)
            else:
                words = ["evaluate", str(checkpoint.run), *checkpoint.words, *self.options]
                words += ["--checkpoint", checkpoint.path.name, "--values", str(checkpoint.values)]
                job = self.launcher.start(words, checkpoint.log, checkpoint.name)
                self.at_work.append(Evaluating(checkpoint, job))
        except InUseError:
            return  # of another watch, since a moment ago: the next look sees it
        except (OSError, TextmillError) as error:
            if folder.parent.is_dir():
                self.failed.add(checkpoint.key)
                LOG.error("%s cannot be evaluated: %s", checkpoint.label, error)

    def enter(self, run: Path) -> None:
        """Takes the run's evaluations for this watch.

        Raises:
            InUseError: Another one has them.
        """
        folder = run / EVALUATIONS
        if run in self._locks and folder.is_dir():
            return
        refuse_outward_folder(folder, run)
        folder.mkdir(exist_ok=True)
        self._locks[run] = Lock(folder).__enter__()

    def look(self) -> None:
        """Takes note of the evaluations that have ended."""
        for one in list(self.at_work):
            if (code := one.job.poll()) is None:
                continue
            self.at_work.remove(one)
            try:
                self.ended(one.checkpoint, code)
            except (OSError, TextmillError) as error:
                if one.checkpoint.run.is_dir():  # else it vanished, and there is nothing to say
                    LOG.error("%s: %s", one.checkpoint.label, error)
                    self.failed.add(one.checkpoint.key)

    def ended(self, checkpoint: Checkpoint, code: int) -> None:
        """Writes what came of an evaluation beside the run, and which checkpoint is the best."""
        if checkpoint.values.is_file():
            self.write(checkpoint, values=json.loads(checkpoint.values.read_text("utf-8")))
            checkpoint.values.unlink()
        elif not checkpoint.path.is_dir():
            tell_deleted(checkpoint)
        else:
            reason = why(checkpoint.log, code)
            self.failed.add(checkpoint.key)
            LOG.error("%s failed: %s\n  its log: %s", checkpoint.label, reason, checkpoint.log)
            self.write(checkpoint, failed=reason)

    def write(self, checkpoint: Checkpoint, **facts: Any) -> None:
        """Adds a line to the run's evaluations; marks the best of those with the same words."""
        line = {
            "checkpoint": checkpoint.path.name,
            "step": step_of(checkpoint.path),
            "words": list(checkpoint.words),
            "place": checkpoint.place,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **facts,
        }
        with JsonlLog(checkpoint.folder / LINES) as log:
            log.append(json_value(line))
            log.sync()
        if "values" not in facts:
            return
        best = best_of(checkpoint.run)
        write_atomic(checkpoint.folder / BEST, json.dumps(best, indent=2) + "\n")
        mine = (line["checkpoint"], line["words"])
        is_best = any((each["checkpoint"], each["words"]) == mine for each in best)
        said = "; ".join(shown(name, each) for name, each in facts["values"].items())
        LOG.info("%s: %s%s", checkpoint.label, said, " (the best so far)" if is_best else "")


def tell_deleted(checkpoint: Checkpoint) -> None:
    """Says that a checkpoint was not evaluated."""
    text = "%s: it was deleted before it was evaluated. trainer.keep says how many stay."
    LOG.warning(text, checkpoint.label)


def shown(name: str, values: Mapping[str, Any]) -> str:
    """The values on one data, without those of single labels."""
    whole = {n: v for n, v in numbers(values, ()).items() if not is_of_label(n)}
    return f"{name} " + ", ".join(f"{n} {format_value(n, v)}" for n, v in whole.items())


def is_ended(run: Path) -> bool:
    """Whether a run is finished; one that has vanished has no more checkpoints."""
    try:
        return RunFolder(run).finished
    except (OSError, TextmillError):
        return not run.is_dir()


def best_of(run: Path) -> list[dict[str, Any]]:
    """The best of a run's evaluations by what the run selects by, one for each words they had.

    It is the best value itself, the later of equal ones: standard errors are not kept here. Where
    the data has no such value, the loss alone decides.
    """
    metric, sign = selected_by(RunFolder(run).info)
    found: dict[tuple[str, ...], list[tuple[float, float, dict[str, Any]]]] = {}
    for line in read_lines(run / EVALUATIONS / LINES):
        values, given = mapping(line, "values"), line.get("words")
        words = tuple(map(str, given)) if isinstance(given, list) else ()
        known = {data: numbers(mapping(values, data), ()) for data in values}
        for name, way in ((metric, sign), ("loss", -1.0)):
            on = [data for data, each in known.items() if not math.isnan(each.get(name, math.nan))]
            if on:
                facts = {key: line.get(key) for key in ("checkpoint", "step", "words")}
                value = known[on[0]][name]
                best = {**facts, "data": on[0], "metric": name, "value": value}
                step = numbers(line, ()).get("step", 0.0)
                found.setdefault(words, []).append((way * value, step, best))
                break
    return [max(each, key=lambda ranked: ranked[:2])[2] for each in found.values()]


def best_table(runs: Sequence[Path], words: Sequence[str]) -> str:
    """A line for each run that was evaluated with certain words: how often, and its best."""
    rows = []
    for run in runs:
        with suppress(OSError, TextmillError):
            lines = [x for x in read_lines(run / EVALUATIONS / LINES) if "values" in x]
            count = sum(line.get("words") == list(words) for line in lines)
            for best in (each for each in best_of(run) if each["words"] == list(words)):
                value = f"{best['data']} {best['metric']} "
                value += format_value(best["metric"], best["value"])
                rows.append([str(run), str(count), str(best["checkpoint"]), value])
    return text_table(["run", "evaluated", "best", "value"], rows) if rows else ""
