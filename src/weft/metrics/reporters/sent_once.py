"""Base of the reporters that hand values to a service, which cannot take them back."""

import importlib.util
import json
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from weft.config.component import Component
from weft.config.nodes import untyped
from weft.config.yaml_files import read_yaml
from weft.errors import MissingExtraError
from weft.metrics.reporters.reporter import Progress, Reporter, RunInfo
from weft.runtime.experiment import Experiment
from weft.runtime.line_log import LineLog

__all__ = ["SentOnce"]


class SentOnce(Component, Reporter):
    """Hands the values of each split and step over once, however often a run is resumed.

    What a service has, it has: it cannot be cut back like a file. But a resumed run reports the
    same values again, so those that are there already are left out. Which they are is kept in the
    run folder, a line each, with the name under which the service knows the run. Where a service
    gathers values before it takes them, those of a process that was killed count as lost: what
    ``metrics.jsonl`` has of them is handed over again.

    Args:
        package: The package to import; it must be installed.
        extra: The extra of weft that brings it, which is also the reporter's registered name.
        xp: The run, for its folder.

    Raises:
        MissingExtraError: The package is not installed.
    """

    file: ClassVar[str]
    """Name of the file in the run folder."""
    gathers: ClassVar[bool] = False
    """Whether values are safe only once the service was closed."""

    def __init__(self, *, package: str, extra: str, xp: Experiment) -> None:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra=extra, what=f"The reporter '{extra}'")
        self._xp = xp
        self._log: LineLog | None = None
        self._sent: set[tuple[str, int]] = set()

    @override
    def start(self, info: RunInfo) -> None:
        lines = _lines(self._xp.folder / self.file)
        self._sent = self._safe(lines)
        known = next((str(line["run"]) for line in lines if "run" in line), None)
        run = self._begin(info, known)  # what fails here is not to be closed
        self._log = LineLog(self._xp.folder / self.file)
        if run != known:
            self._log.append({"run": run})
        for line in _lines(self._xp.folder / "metrics.jsonl") if self.gathers else ():
            place = {name: line.pop(name, None) for name in ("split", "step", "epoch", "examples")}
            progress = {"step": place["step"], "time": line.pop("time", {})}
            self.report(str(place["split"]), progress, line)

    def _safe(self, lines: list[dict[str, Any]]) -> set[tuple[str, int]]:
        """The splits and steps that the service has for certain."""
        safe: set[tuple[str, int]] = set()
        waiting: set[tuple[str, int]] = set()
        for line in lines:
            if "split" in line:
                waiting.add((str(line["split"]), int(line["step"])))
            if not self.gathers or "closed" in line:
                safe |= waiting
        return safe

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        step = int(progress.get("step", 0))
        if self._log is None:
            self.start(RunInfo(recipe=self._xp.recipe, folder=self._xp.folder, step=step))
        if (split, step) in self._sent:
            return
        tagged = {f"{split}/{name}": float(value) for name, value in values.items()}
        rates = progress.get("time", {}).items() if split == "train" else ()
        self._send(step, {**tagged, **{f"time/{n}": v for n, v in rates if "_per_second" in n}})
        self._sent.add((split, step))
        assert self._log is not None
        self._log.append({"split": split, "step": step})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._end(complete=True)

    @override
    def close(self) -> None:
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if self._log is not None:
            self._finish(complete=complete)
            self._log.append({"closed": complete})
            self._log.sync()
            self._log.close()
            self._log = None

    @property
    def settings(self) -> dict[str, Any]:
        """The run's resolved settings, nested; none where there is no ``config.yaml``."""
        file = self._xp.folder / "config.yaml"
        found = read_yaml(file).entries.get("settings") if file.is_file() else None
        plain = None if found is None else untyped(found)
        return plain if isinstance(plain, dict) else {}

    @staticmethod
    def new_name() -> str:
        """A name that no other run has, for services that let us choose.

        Example:
            >>> len(SentOnce.new_name())
            16
        """
        return uuid.uuid4().hex[:16]

    @abstractmethod
    def _begin(self, info: RunInfo, known: str | None) -> str:
        """Opens the run that the service knows as ``known``, or a new one; gives its name."""

    @abstractmethod
    def _send(self, step: int, values: Mapping[str, float]) -> None:
        """Hands values over."""

    @abstractmethod
    def _finish(self, *, complete: bool) -> None:
        """Says that nothing more comes; ``complete`` says whether the run reached its end."""


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log in the run folder; one that a crash cut off is none."""
    text = path.read_bytes() if path.is_file() else b""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
