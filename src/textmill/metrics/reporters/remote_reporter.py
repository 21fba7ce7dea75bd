"""Base of the reporters that hand values to a service, which cannot take them back."""

import hashlib
import importlib.util
import logging
import time as clock
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import MissingExtraError, RunError, TextmillError
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.runtime.jsonl_log import JsonlLog, read_lines
from textmill.runtime.run_context import Experiment

LOG = logging.getLogger("textmill")

PAUSE = 60.0
"""Seconds without a try after one that failed, and at least ...."""
SHARE = 10.0
"""... this many times what the failed try took: a service that is away must not slow the run."""


class Report(NamedTuple):
    """The values of one split at one step, by the names that a service has them under.

    The digest is of all values but those of the clock: the same in a run that was killed and
    resumed. Of the training ``time/steps_per_second`` and the like are values, too.

    Example:
        >>> report = Report.of("train", {"step": 3, "time": {"elapsed": 1.5}}, {"loss": 0.5})
        >>> report.values, report.digest
        ({'train/loss': 0.5}, 'a555ce3d')
    """

    split: str
    step: int
    values: Mapping[str, float]
    digest: str

    @override
    def __str__(self) -> str:
        return f"the values of {self.split} at step {self.step:,}"

    @classmethod
    def of(cls, split: str, progress: Progress, values: Mapping[str, Any]) -> "Report":
        """What a reporter is given, as a report."""
        tagged = {f"{split}/{name}": float(value) for name, value in values.items()}
        rates = progress.get("time", {}).items() if split == "train" else ()
        paces = {f"time/{name}": float(v) for name, v in rates if "_per_second" in name}
        return cls(split, int(progress.get("step") or 0), {**tagged, **paces}, digest_of(tagged))


def digest_of(values: Mapping[str, float]) -> str:
    """Eight digits that tell these names and values from others.

    Example:
        >>> digest_of({"train/loss": 0.5})
        'a555ce3d'
    """
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:8]


Sent = dict[tuple[str, int], str | None]
"""What a service has: the digests of reports by split and step."""


class RemoteReporter(Component, Reporter):
    """Hands the values of each split and step over once, however often a run is resumed.

    What a service has, it has: it cannot be cut back like a file. But a resumed run reports the
    same values again, so those that are there already are left out; those that differ, since the
    run went back and took another way, are handed over too. What the service has is kept in the
    run folder, a line each, with the name under which the service knows the run. Where a service
    gathers values before it takes them, those of a process that was killed count as lost.

    A service that fails when a run starts ends it. One that fails later does not: a warning says
    so once, what it did not take is tried again after a pause and at the end of the run, and what
    it has not taken then is handed over from ``metrics.jsonl`` when the run is resumed. A report
    that it refuses while it takes the next one is set aside until then, and a warning says so.

    Raises:
        MissingExtraError: The package is not installed.
    """

    service: ClassVar[str]
    """Its name, for messages."""
    package: ClassVar[str]
    """What to import, and the name of the reporter and of the extra that brings the package."""
    file: ClassVar[str]
    """Name of the file in the run folder."""
    gathers: ClassVar[bool] = False
    """Whether values are safe only once the service was closed."""

    config: Any

    def __init__(self, config: BaseConfig, *, xp: Experiment) -> None:
        if importlib.util.find_spec(self.package) is None:
            what = f"The reporter '{self.package}'"
            raise MissingExtraError(self.package, extra=self.package, what=what)
        self.config, self._xp = config, xp
        self._log: JsonlLog | None = None
        self._sent = Sent()
        self._waiting: deque[Report] = deque()
        self._last, self._silent_until, self._told = 0, 0.0, False
        self._later, self._aside = 0, 0
        self.shift = 0
        """What a service that counts only upwards adds to steps: it grows when a run goes back."""

    @override
    def start(self, info: RunInfo) -> None:
        lines = list(read_lines(self._xp.folder / self.file))
        self._sent = self._safe(lines)
        self.shift = next((int(line["shift"]) for line in lines[::-1] if "shift" in line), 0)
        known = next((str(line["run"]) for line in lines if "run" in line), None)
        try:
            run = self._begin(info, known)  # what fails here is not to be closed
            there = self._has(run) if run == known else {}
        except TextmillError:
            raise
        except Exception as error:  # errors of services have no base of their own
            raise RunError(
                f"{self.service} takes no run: {_sentence(error)} Mend that, or start without the "
                f"reporter {self.package}; the values are in metrics.jsonl in any case."
            ) from error
        self._log = JsonlLog(self._xp.folder / self.file)
        self._sent |= there
        if run != known:
            self._log.append({"run": run})
        for line in [*read_lines(self._xp.folder / "metrics.jsonl")] if info.step else ():
            place = {name: line.pop(name, None) for name in ("split", "step", "epoch", "examples")}
            progress = {"step": place["step"], "time": line.pop("time", {})}
            self.report(str(place["split"]), progress, line)

    def _safe(self, lines: list[dict[str, Any]]) -> Sent:
        """The splits and steps that the service has for certain, with the values' digests."""
        safe, waiting = Sent(), Sent()
        for line in lines:
            if "split" in line:
                waiting[str(line["split"]), int(line["step"])] = line.get("digest")
            if not self.gathers or "closed" in line:
                safe |= waiting
        return safe

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        report = Report.of(split, progress, values)
        if self._log is None:
            start = RunInfo(recipe=self._xp.recipe, folder=self._xp.folder, step=report.step)
            self.start(start)
        self._last = max(self._last, report.step)
        if self._sent.get((split, report.step), "") in (None, report.digest):
            return
        self._waiting.append(report)
        if clock.monotonic() >= self._silent_until:
            self._hand_over()

    def _hand_over(self) -> None:
        """Hands over what waits, in order, as far as the service takes it.

        A service that refuses a report and takes a later one is not away: the refused one must not
        hold up the others. Each time another later one is tried.
        """
        began = clock.monotonic()
        while self._waiting:
            refused = self._try(0)
            if refused is None:
                continue
            if len(self._waiting) > 1:
                self._later = self._later % (len(self._waiting) - 1) + 1
                if self._try(self._later) is None:
                    self._set_aside(refused)
                    continue
            now = clock.monotonic()
            self._silent_until = now + max(PAUSE, SHARE * (now - began))
            self._warn(str(self._waiting[0]), refused)
            return

    def _try(self, place: int) -> Exception | None:
        """What the service said where it did not take one of those that wait."""
        assert self._log is not None
        report = self._waiting[place]
        try:
            self._send(report.step, report.values)
        except Exception as error:  # whatever it is, it is no reason to end a training
            return error
        split, step, _, digest = report
        self._sent[split, step] = digest
        self._log.append({"split": split, "step": step, "digest": digest})
        del self._waiting[place]
        return None

    def _set_aside(self, error: Exception) -> None:
        report = self._waiting.popleft()
        self._later, self._aside = 0, self._aside + 1
        if self._aside == 1:
            LOG.warning(
                "%s did not take %s, but took later ones: %s They are set aside, and are in "
                "metrics.jsonl in any case.",
                self.service,
                report,
                _sentence(error),
            )

    def _warn(self, what: str, error: Exception) -> None:
        if not self._told:
            self._told = True
            LOG.warning(
                "%s did not take %s: %s The run goes on. What it does not take is tried again "
                "later, and is in metrics.jsonl in any case.",
                self.service,
                what,
                _sentence(error),
            )

    @override
    def state_dict(self) -> dict[str, Any]:
        """The last step that was reported."""
        return {"last": self._last}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What was reported later is not handed over any more; what the service has, it keeps."""
        before, self._last = self._last, int(state.get("last", 0))
        self._waiting = deque(r for r in self._waiting if r.step <= self._last)
        if self._log is not None and before > self._last:  # the run goes back while it is on
            self.shift += before - self._last
            self._log.append({"shift": self.shift})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._hand_over()
        self.close(complete=True)

    @override
    def close(self, *, complete: bool = False) -> None:
        if self._log is None:
            return
        log, self._log = self._log, None
        try:
            self._finish(complete=complete)
            log.append({"closed": complete})
        except TextmillError:
            raise
        except Exception as error:  # it would hide the error that ended the run
            self._warn("the end of the run", error)
        finally:
            log.sync()
            log.close()
        if self._waiting or self._aside:
            LOG.warning(
                "%d reports are not at %s; they are in metrics.jsonl, and are handed over when "
                "the run is resumed.",
                len(self._waiting) + self._aside,
                self.service,
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The run's resolved settings, nested; none where there is no ``config.yaml``."""
        file = self._xp.folder / "config.yaml"
        found = read_yaml(file).entries.get("settings") if file.is_file() else None
        plain = None if found is None else untyped(found)
        return plain if isinstance(plain, dict) else {}

    @property
    def title(self) -> str:
        """What a person knows the run by: its recipe and key."""
        return f"{self._xp.recipe} {self._xp.key}".strip()

    @staticmethod
    def new_name() -> str:
        """A name that no other run has, for services that let us choose.

        Example:
            >>> len(RemoteReporter.new_name())
            16
        """
        return uuid.uuid4().hex[:16]

    @abstractmethod
    def _begin(self, info: RunInfo, known: str | None) -> str:
        """Opens the run that the service knows as ``known``, or a new one; gives its name."""

    def _has(self, run: str) -> Sent:
        """What the service says that it has of a run that goes on; nothing where it cannot say."""
        return {}

    @abstractmethod
    def _send(self, step: int, values: Mapping[str, float]) -> None:
        """Hands values over."""

    @abstractmethod
    def _finish(self, *, complete: bool) -> None:
        """Says that nothing more comes; ``complete`` says whether the run reached its end."""


def _sentence(error: Exception) -> str:
    """What an error says, on one line and with a full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."
