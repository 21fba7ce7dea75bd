"""What a reporter is: it takes values and examples, and knows neither task nor trainer."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.metrics import registries
from textmill.metrics.metric import Direction

Progress = Mapping[str, Any]
"""Where a run stands, a plain mapping; every key may be missing.

``step`` (optimizer steps taken), ``total`` (steps in all, None when unknown), ``epoch`` (a float:
2.3 is three tenths into the third), ``examples`` (rows seen), ``kept`` (of an evaluation: whether
the run keeps the weights that were measured, which are the best so far), and ``time``: a mapping of
all that the clock decides: ``elapsed`` and ``eta`` in seconds, and rates such as
``steps_per_second`` and ``target_tokens_per_second``.
"""

Row = Mapping[str, Any]
"""An example as a person reads it: its row number, inputs, prediction, references, score."""


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """Facts about the run that a reporter gets before the first value."""

    recipe: str = ""
    """The recipe as it was named."""
    folder: Path | None = None
    """The run folder."""
    step: int = 0
    """Optimizer steps taken before: not 0 when a run is resumed."""
    total: int | None = None
    """Steps in all, where known."""
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    """What a reader wants to know first: parameters, training rows, device."""
    directions: Mapping[str, Direction] = field(default_factory=dict)
    """For each value of an evaluation, which values are better."""
    selected: str = ""
    """The value of an evaluation by which the best weights are chosen, where any is."""


class Reporter(ABC):
    """Base of all reporters.

    The order of calls: ``load_state_dict`` when resuming, ``start``, any number of ``tick``,
    ``report`` and ``examples``, ``end`` when the run is complete, ``close`` always. Only the first
    rank of a run calls reporters. A subclass overrides what it has a use for.
    """

    def start(self, info: RunInfo) -> None:  # noqa: B027
        """The run begins or goes on."""

    def tick(self, progress: Progress) -> None:  # noqa: B027
        """A step was taken: called 20 times a second at most, and must cost next to nothing."""

    @abstractmethod
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Takes values of one split (``train``, ``valid``, ``test``)."""

    def examples(  # noqa: B027
        self, split: str, progress: Progress, rows: Iterable[Row]
    ) -> None:
        """Takes the answered rows of one evaluation."""

    def end(self, summary: Mapping[str, Any]) -> None:  # noqa: B027
        """The run is complete; ``summary`` is its result."""

    def state_dict(self) -> dict[str, Any]:
        """What must be known to go on after a crash as if nothing had happened: plain JSON."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Goes back to ``state``: what was reported later is taken back."""

    def close(self) -> None:  # noqa: B027
        """Lets go of the terminal and of files; may be called twice."""


class Reporters(Reporter):
    """Several reporters as one; each has its state under its registered name.

    A reporter without a state in the checkpoint (added since) starts afresh, and a state without a
    reporter (removed since) is left alone.
    """

    def __init__(self, reporters: Sequence[Reporter]) -> None:
        self.reporters = tuple(reporters)

    @override
    def start(self, info: RunInfo) -> None:
        self._each("start", info)

    @override
    def tick(self, progress: Progress) -> None:
        self._each("tick", progress)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self._each("report", split, progress, values)

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        self._each("examples", split, progress, list(rows))  # an iterator would be empty for two

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._each("end", summary)

    def _each(self, event: str, *said: Any) -> None:
        for reporter in self.reporters:
            getattr(reporter, event)(*said)

    @override
    def state_dict(self) -> dict[str, Any]:
        return {name: reporter.state_dict() for name, reporter in self._named()}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, reporter in self._named():
            if name in state:
                reporter.load_state_dict(state[name])

    @override
    def close(self) -> None:
        """Closes each of them, whatever another one raises."""
        with ExitStack() as stack:
            for reporter in reversed(self.reporters):
                stack.callback(reporter.close)

    def _named(self) -> Iterator[tuple[str, Reporter]]:
        seen: dict[str, int] = {}
        for reporter in self.reporters:
            name = registries.reporters.name_of(type(reporter)) or type(reporter).__name__
            seen[name] = seen.get(name, 0) + 1
            yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), reporter
