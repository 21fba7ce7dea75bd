"""Files of JSON lines in the run folder: ``metrics.jsonl`` and ``predictions/``."""

import hashlib
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError
from textmill.metrics import registries
from textmill.metrics.metric import MetricError
from textmill.metrics.reporters.reporter import Progress, Reporter, Row, RunInfo
from textmill.metrics.tables import is_of_label
from textmill.runtime.devices import Experiment
from textmill.runtime.disk import storing
from textmill.runtime.files import make_folder, opened, replacing
from textmill.runtime.jsonl_log import LineLog, is_read, json_line
from textmill.text.cells import unlisted

LOG = logging.getLogger("textmill")
_PLACE = ("step", "epoch", "examples")
_RESERVED = frozenset(("split", "time", *_PLACE))


def json_value(value: object, *, name: str = "value") -> Any:
    """The same value of types that JSON has.

    Numbers (those of numpy and torch too), text, paths, and mappings and lists of them have one.
    JSON has no NaN and no infinities, and many readers refuse them: they become the strings
    ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``float`` and JavaScript's ``Number``
    read back. A cell that was a list in its file is one again, so that no item loses its bounds.
    """
    value = unlisted(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(k): json_value(v, name=f"{name}.{k}") for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [json_value(v, name=f"{name}[{i}]") for i, v in enumerate(items)]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch
        return json_value(value.tolist(), name=name)
    raise MetricError(
        f"{name} is a {type(value).__name__}, which has no form in JSON. "
        "Report numbers, text, and mappings and lists of them."
    )


@registries.reporters.register("jsonl")
class JsonLines(Component, Reporter):
    """Writes ``metrics.jsonl`` in the run folder.

    A line is ``{"split": "valid", "step": 1000, "epoch": 2.3, "examples": 64000, "loss": 3.14,
    "time": {...}}``. Everything that the clock decides is under ``time``; all the rest is the
    same, byte for byte, in a run that was killed and resumed. For that a checkpoint keeps the
    file's length, and a resumed run cuts the file back to it; a run that starts afresh empties it.
    NaN and infinities are strings (``"NaN"``).
    """

    class Config(BaseConfig):
        """It has no settings."""

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._path = xp.folder / "metrics.jsonl"
        self._lines: LineLog | None = None
        self._resumed = False

    @override
    def start(self, info: RunInfo) -> None:
        lines = self._open()
        if not self._resumed and info.step == 0:
            lines.truncate_to(0)  # left by a start that was killed before its first checkpoint

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        taken = sorted(_RESERVED & values.keys())
        if taken:
            raise MetricError(
                f"A value cannot be called {', '.join(taken)}: in metrics.jsonl these words say "
                "where the run stands. Rename the metric."
            )
        place = {key: progress[key] for key in _PLACE if key in progress}
        line = {"split": split, **place, **values, "time": dict(progress.get("time", {}))}
        written = json_line(json_value(line, name=f"{split} value"))
        if not is_read(written):
            LOG.warning(
                "%s: the values of single labels of %s at step %s are left out: a line of so many "
                "would not be read again.",
                *(self._path, split, progress.get("step")),
            )
            kept = {name: value for name, value in line.items() if not is_of_label(name)}
            written = json_line(json_value(kept))
        self._open().append(written)

    @override
    def state_dict(self) -> dict[str, Any]:
        lines = self._open()
        lines.sync()  # a checkpoint must not outlive the lines that it counts
        return {"bytes": lines.size}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cuts the file back; one that has become shorter is left alone, with a warning."""
        self._resumed = True
        lines, wanted = self._open(), state["bytes"]
        if lines.size < wanted:
            LOG.warning(
                "metrics.jsonl has %d bytes, but had %d when the checkpoint was saved: lines are "
                "missing. The run goes on and adds to what is there.",
                lines.size,
                wanted,
            )
        else:
            lines.truncate_to(wanted)

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        """Waits for the disk: what says that the run is finished must not outlive its last line."""
        self._open().sync()

    @override
    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _open(self) -> LineLog:
        if self._lines is None:  # not before it is needed: a check builds reporters too
            self._lines = LineLog(self._path)
        return self._lines


DIGITS = 16
"""Hexadecimal digits of a sha256 that tell two files apart; no stranger gains by a false one."""
_NAME = re.compile(r".+-step-\d{8,18}\.jsonl")


@registries.reporters.register("predictions")
class Predictions(Component, Reporter):
    """Writes ``predictions/<split>-step-00001000.jsonl``: every row, answered by the kept weights.

    A line is a row as the task gives it: its number, inputs, prediction, references and score. An
    evaluation of weights that the run does not keep (progress ``kept`` is False) writes nothing; a
    better one takes the place of the one before. A resumed run has the files that its checkpoint
    names: later ones are deleted.
    """

    class Config(BaseConfig):
        rows: int | None = setting(None, in_key=False)
        """Most rows of a file, spread evenly over the data; null is all, 0 none (and no file)."""

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder / "predictions"
        self._files: dict[str, dict[str, Any]] = {}
        """By split: the step of its file, and what the file's sha256 begins with."""
        self._saved: set[Path] = set()
        """The files that the newest checkpoint names: a resumed run needs them."""
        self._resumed = False

    @override
    def start(self, info: RunInfo) -> None:
        if not self._resumed and info.step == 0:
            self._keep_only(set())  # left by a start that was killed before its first checkpoint

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are for other reporters."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        self._keep_only({*self._current(), *self._saved})
        chosen = spread(list(rows), self.config.rows) if progress.get("kept", True) else ()
        if not chosen:
            return
        make_folder(self._folder, parents=False)
        step = int(progress["step"])
        with replacing(self._path(split, step)) as file:
            for i, row in enumerate(chosen):
                file.write(json_line(json_value(row, name=f"row {i}")))
        self._files[split] = {"step": step, "sha256": file.sha256[:DIGITS]}

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._keep_only(self._current())

    @override
    def state_dict(self) -> dict[str, Any]:
        self._saved = self._current()
        return {"files": {split: dict(facts) for split, facts in self._files.items()}}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Deletes the files that the checkpoint does not name: the run comes there anew, or never.

        One that is not as it was written is deleted, too, with a warning: the weights that gave
        its answers are gone.
        """
        self._resumed = True
        self._files = {}
        for split, facts in state["files"].items():
            path = self._path(str(split), int(facts["step"]))
            if path.parent != self._folder:
                continue
            problem = _difference(path, str(facts["sha256"]))
            if problem is None:
                self._files[str(split)] = dict(facts)
            else:
                LOG.warning("predictions/%s: the run goes on without it.", problem)
        self._saved = self._current()
        self._keep_only(self._saved)

    def _path(self, split: str, step: int) -> Path:
        return self._folder / f"{split}-step-{step:08}.jsonl"

    def _current(self) -> set[Path]:
        return {self._path(split, facts["step"]) for split, facts in self._files.items()}

    def _keep_only(self, needed: set[Path]) -> None:
        for path in self._folder.glob("*-step-*.jsonl"):
            if path not in needed and _NAME.fullmatch(path.name):
                with storing(path):
                    path.unlink()


def _difference(path: Path, digest: str) -> str | None:
    try:
        with opened(path, DataError) as (file, _):
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except DataError as error:
        return str(error)
    return None if found.startswith(digest) else f"{path.name}: not as it was written; deleted"


def spread(rows: Sequence[Row], most: int | None) -> Sequence[Row]:
    """At most ``most`` rows, evenly spread over all, in order; None is all."""
    if most is None or most >= len(rows):
        return rows
    return [rows[i * len(rows) // most] for i in range(most)]
