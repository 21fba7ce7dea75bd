"""The console: a progress bar and a table for a person, plain lines for a file.

A log file of a cluster job gets one line per report, without carriage returns and escape codes:
bars in such files have filled disks.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO, final

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.metrics import registries
from textmill.metrics.reporters.console_displays import (
    BarDisplay,
    Display,
    LinesDisplay,
    summary_line,
)
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.metrics.tables import is_of_label, labels_table
from textmill.runtime.jsonl_log import read_lines


@final
@registries.reporters.register("console")
class Console(Component, Reporter):
    """Shows the run on standard error, which is where the log goes too.

    On a terminal: a bar with steps, time left, steps per second and the loss; each evaluation is a
    row of a table above it, the best values so far in bold. Elsewhere: a line per report. Values
    with a slash in their names (of each label, say) are in neither; a run ends with a table of its
    labels, on the test data or as the best weights did on the valid data; where those are of before
    an interruption, as ``metrics.jsonl`` has them. Colours follow ``NO_COLOR``. It writes to
    ``stream`` instead where one is given.

    Example:
        >>> import sys
        >>> console = Console.Config(mode="lines").build(stream=sys.stdout)
        >>> console.start(RunInfo(recipe="tatoeba.py", facts={"parameters": 6120000}))
        tatoeba.py · parameters 6,120,000
        >>> progress = {
        ...     "step": 1200,
        ...     "epoch": 2.31,
        ...     "time": {"eta": 754.0, "target_tokens_per_second": 7431.8},
        ... }
        >>> console.report("train", progress, {"loss": 3.1418, "lr": 0.0012})
        step 1,200 · epoch 2.3 · loss 3.142 · lr 0.0012 · 7,432 target tokens/s · eta 12m
        >>> console.report("valid", {"step": 1200}, {"loss": 2.871, "bleu": 28.337})
        valid at step 1,200 · loss 2.871 · bleu 28.34
    """

    class Config(BaseConfig):
        """Settings of the console."""

        mode: Literal["auto", "bar", "lines"] = setting("auto", in_key=False)
        """``bar`` or ``lines``; ``auto`` shows a bar where the stream is a terminal."""

    config: Config

    def __init__(self, config: Config, *, stream: TextIO | None = None) -> None:
        self.config = config
        self._stream = stream
        self._display: Display | None = None
        self._labels: dict[tuple[str, int], str] = {}
        self._epoch: float | None = None

    @override
    def start(self, info: RunInfo) -> None:
        self._shown().start(info)
        if info.step and info.folder:
            for line in read_lines(info.folder / "metrics.jsonl"):
                if isinstance(line.get("step"), int):
                    self._keep(str(line.get("split")), line, _values(line))

    @override
    def tick(self, progress: Progress) -> None:
        self._shown().tick(progress)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self._epoch = progress.get("epoch", self._epoch)
        self._shown().report(split, progress, {n: v for n, v in values.items() if "/" not in n})
        self._keep(split, progress, values)

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self.close()
        self._shown().say(self._best_labels(summary))
        # Whole epochs are said as the lines above have them: 0.2, not 0.
        epoch = {} if self._epoch is None else {"epochs": ("epoch", f"{self._epoch:.1f}")}
        result: dict[str, Any] = dict(epoch.get(n, (n, value)) for n, value in summary.items())
        self._shown().say(summary_line(result))

    @override
    def close(self) -> None:
        if self._display:
            self._display.close()

    def _keep(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Keeps the table of labels of an evaluation, where it has one, for the end."""
        if split != "train" and (table := labels_table(values)):
            self._labels[split, int(progress.get("step", 0))] = table

    def _best_labels(self, summary: Mapping[str, Any]) -> str:
        """The table of the test data, else of the best step, else of the last evaluation."""
        best = summary.get("best")
        step = best.get("step") if isinstance(best, Mapping) else None
        of_best = [place for place in self._labels if place[1] == step]
        of_test = [place for place in self._labels if place[0] == "test"]
        places = of_test or (of_best if best else list(self._labels))
        if not places:
            return ""
        split, at = places[-1]
        weights = summary.get("weights", best) if split == "test" else None
        of = weights["step"] if weights else at  # the test data come after the last step
        used = f"{'the weights of ' if weights else ''}step {of:,}"
        what = f"labels of {split}_data, {used}{' (the best)' if of == step else ''}:"
        return f"{what}\n{self._labels[split, at]}"

    def _shown(self) -> Display:
        if self._display is None:
            stream = self._stream or sys.stderr  # looked up late: tests and notebooks replace it
            mode = self.config.mode
            terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
            bar = mode == "bar" or (mode == "auto" and terminal)
            self._display = BarDisplay(stream) if bar else LinesDisplay(stream)
        return self._display


def _values(line: Mapping[str, Any]) -> dict[str, float]:
    """The values of labels in a line of ``metrics.jsonl``."""
    return {
        name: float(value)
        for name, value in line.items()
        if is_of_label(name) and (isinstance(value, int | float) or value == "NaN")
    }
