"""``metrics.jsonl``: every value of a run, one JSON object per line; values as strict JSON."""

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.metrics import registries
from textmill.metrics.metric import MetricError
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.metrics.tables import is_of_label
from textmill.runtime.devices import Experiment
from textmill.runtime.jsonl_log import JsonlLog, is_read
from textmill.text.cells import unlisted

_PLACE = ("step", "epoch", "examples")
_RESERVED = frozenset(("split", "time", *_PLACE))


def json_value(value: object, *, name: str = "value") -> Any:
    """The same value of types that JSON has.

    Numbers (those of numpy and torch too), text, paths, and mappings and lists of them have one.
    JSON has no NaN and no infinities, and many readers refuse them: they become the strings
    ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``float`` and JavaScript's ``Number``
    read back. A cell that was a list in its file is one again, so that no item loses its bounds.

    Raises:
        MetricError: It holds something else, by its ``name``.

    Example:
        >>> json_value({"loss": float("nan"), "rows": (1, 2), "file": Path("a.tsv")})
        {'loss': 'NaN', 'rows': [1, 2], 'file': 'a.tsv'}
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


@final
@registries.reporters.register("jsonl")
class JsonLines(Component, Reporter):
    """Writes ``metrics.jsonl`` in the run folder.

    A line is ``{"split": "valid", "step": 1000, "epoch": 2.3, "examples": 64000, "loss": 3.14,
    "time": {...}}``. Everything that the clock decides is under ``time``; all the rest is the
    same, byte for byte, in a run that was killed and resumed. For that a checkpoint keeps the
    file's length, and a resumed run cuts the file back to it; a run that starts afresh empties it.
    NaN and infinities are strings (``"NaN"``).

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     reporter = JsonLines.Config().build(xp=Experiment(folder=Path(folder)))
        ...     reporter.start(RunInfo())
        ...     reporter.report("train", {"step": 10, "time": {"elapsed": 1.5}}, {"loss": 3.25})
        ...     reporter.close()
        ...     print(Path(folder, "metrics.jsonl").read_text(), end="")
        {"split": "train", "step": 10, "loss": 3.25, "time": {"elapsed": 1.5}}
    """

    class Config(BaseConfig):
        """It has no settings."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._path = xp.folder / "metrics.jsonl"
        self._lines: JsonlLog | None = None
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
        written = json_value(line, name=f"{split} value")
        if not is_read(json.dumps(written).encode()):
            logging.getLogger(__name__).warning(
                "%s: the values of single labels of %s at step %s are left out: a line of so many "
                "would not be read again.",
                *(self._path, split, progress.get("step")),
            )
            written = {name: value for name, value in written.items() if not is_of_label(name)}
        self._open().append(written)

    @override
    def state_dict(self) -> dict[str, Any]:
        """The file's length in bytes."""
        lines = self._open()
        lines.sync()  # a checkpoint must not outlive the lines that it counts
        return {"bytes": lines.size}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cuts the file back; one that has become shorter is left alone, with a warning."""
        self._resumed = True
        lines, wanted = self._open(), state["bytes"]
        if lines.size < wanted:
            logging.getLogger(__name__).warning(
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

    def _open(self) -> JsonlLog:
        if self._lines is None:  # not before it is needed: a check builds reporters too
            self._lines = JsonlLog(self._path)
        return self._lines
