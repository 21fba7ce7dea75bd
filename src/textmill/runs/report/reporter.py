"""``report.html``: one file that shows a run to a person, made from what its folder says."""

import html
import time as clock
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
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
from textmill.runs.report.page import report_page
from textmill.runs.report.summarize import summarize
from textmill.runs.report.summary import RunSummary
from textmill.runtime.devices import Experiment
from textmill.runtime.files import write_atomic

FILE = "report.html"
PRIVATE = ("command", "host")
"""Facts of the machine that concern nobody else."""
SHARE = 0.01
"""Share of a run's time that the report may take; the last report is written in any case."""


@final
@registries.reporters.register("html")
class Html(Component, Reporter):
    """Writes ``report.html`` in the run folder: at the end, and after evaluations if it is quick.

    The page is made from what the other reporters wrote (``metrics.jsonl``, ``predictions/``) and
    from the run's record, so it needs no state of its own: a resumed run writes the same page. The
    run is compared with the one of the same recipe before it.
    """

    class Config(BaseConfig):
        """What the page shows besides the run."""

        against: Path | None = setting(None, in_key=False)
        """The run to compare with; null: the last one beside it, if there is one."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder
        self._is_open, self._written = False, 0.0
        self._cost = 0.1  # seconds to write the page, until one was written

    @override
    def start(self, info: RunInfo) -> None:
        self._is_open, self._written = True, clock.monotonic()

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are read from ``metrics.jsonl`` when the page is written."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        """Writes the page after an evaluation: the other reporters have written its files."""
        if clock.monotonic() - self._written > self._cost / SHARE:
            kept = progress.get("step") if progress.get("kept") else None
            self._write({"state": "running", "kept_step": kept})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._is_open = False
        self._write({"state": "finished", "result": dict(summary)})

    @override
    def close(self) -> None:
        """The page must not call a stopped run running; a failure to write it is no error."""
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
    private: bool = True,
) -> Path:
    """Writes the report of a run: HTML that needs no other file and no network.

    By default it is compared with the last run beside it that can be read. The ``facts`` are not
    yet in ``run.json``: ``state``, ``result``, and ``kept_step``. One that is not ``private`` shows
    no rows of the data, no other run and no command.
    """
    run, other = Record.read(folder), None
    path = target or folder / FILE
    if not private:
        write_atomic(path, _without_rows(summarize(run, None, facts or {})))
        return path
    if against is not None:
        other = Record.read(against)
    elif (before := previous_run(folder)) is not None:
        with suppress(TextmillError, OSError):  # a damaged neighbour is no reason to have no report
            read = Record.read(before)
            other = read if read.info.get("recipe") == run.info.get("recipe") else None
    write_atomic(path, _encoded(summarize(run, other, facts or {})))
    return path


def _encoded(summary: RunSummary) -> bytes:
    return report_page(summary).encode("utf-8", "backslashreplace")


def _without_rows(summary: RunSummary) -> bytes:
    left = [
        replace(table, rows=tuple(row for row in table.rows if row[0] not in PRIVATE))
        for table in summary.tables
        if not table.title.startswith("Bad rows")
    ]
    return _encoded(replace(summary, answers=(), kept_in="", place="", tables=tuple(left)))


def framed_report(folder: Path) -> str:
    """A run's report in a frame without access to the page around it, as notebooks show it."""
    shown = report_page(summarize(Record.read(folder), None, {}))
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(shown)}" title="report" '
        'width="100%" height="640" style="border: 0"></iframe>'
    )
