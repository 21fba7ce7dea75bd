"""The reporter that keeps ``report.html`` up to date."""

import time as clock
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.errors import TextmillError
from textmill.metrics.reporters.reporter import Progress, Reporter, Row, RunInfo
from textmill.run_folder.diff import previous_run
from textmill.run_folder.folder import is_run_folder
from textmill.run_folder.record import Record
from textmill.runs import registries
from textmill.runs.report import report_html
from textmill.runtime.devices import Experiment
from textmill.runtime.files import write_atomic

FILE = "report.html"
SHARE = 0.01
"""Of a run's time that may go into the report; a run's last report is written in any case."""


@final
@registries.reporters.register("html")
class Html(Component, Reporter):
    """Writes ``report.html`` in the run folder: after evaluations and at the end.

    The page is made from what the other reporters wrote (``metrics.jsonl``, ``predictions/``) and
    from the run's record, so it needs no state of its own: a resumed run writes the same page. The
    run is compared with the one of the same recipe before it.
    """

    class Config(BaseConfig):
        """What the page shows besides the run."""

        against: Path | None = setting(None, in_key=False)
        """The run to compare with; none: the last one beside it, where there is one."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder
        self._is_open, self._written, self._cost = False, 0.0, 0.0

    @override
    def start(self, info: RunInfo) -> None:
        self._is_open, self._written = True, clock.monotonic()

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are read from ``metrics.jsonl`` when the page is written."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        """An evaluation is over: its values and answers are in the files of the others."""
        if clock.monotonic() - self._written > self._cost / SHARE:
            kept = progress.get("step") if progress.get("kept") else None
            self._write({"state": "running", "kept_step": kept})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._is_open = False
        self._write({"state": "finished", "result": dict(summary)})

    @override
    def close(self) -> None:
        """A run that stopped or failed must not be called running; that is no reason to fail."""
        if self._is_open:
            self._is_open = False
            with suppress(TextmillError, OSError):
                self._write({"state": "not finished"})

    def _write(self, facts: Mapping[str, Any]) -> None:
        if not is_run_folder(self._folder):
            return  # reporters that are used by themselves: there is no record to show
        began = clock.monotonic()
        write_report(self._folder, against=self.config.against, facts=facts)
        self._written = clock.monotonic()
        self._cost = self._written - began


def write_report(
    folder: Path,
    *,
    against: Path | None = None,
    facts: Mapping[str, Any] | None = None,
    target: Path | None = None,
) -> Path:
    """Writes the report of a run.

    Args:
        folder: The run folder.
        against: The run to compare with; None: the last one beside it, where it can be read.
        facts: What is known while the run is on: its state, its result, the step that it keeps.
        target: The file; by default ``report.html`` in the run folder.

    Raises:
        UserError: One of the folders is no run folder.
        StorageError: The file cannot be written.
    """
    run, other = Record.read(folder), None
    if against is not None:
        other = Record.read(against)
    elif (before := previous_run(folder)) is not None:
        with suppress(TextmillError, OSError):  # a damaged neighbour is no reason to have no report
            other = Record.read(before)
    path = target or folder / FILE
    page = report_html(run, other, facts or {})
    write_atomic(path, page.encode("utf-8", "backslashreplace"))
    return path
