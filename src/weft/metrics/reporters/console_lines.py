"""Reports as plain lines, without carriage returns and escape codes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TextIO, final

from typing_extensions import override

from weft.metrics.reporters.reporter import Progress, RunInfo
from weft.metrics.tables import format_duration, format_rate, format_value
from weft.runtime.logging import printable

__all__ = ["Display", "LinesDisplay", "opening", "plain_line", "rates", "summary_line"]


class Display(ABC):
    """One way to show a run on a stream."""

    @abstractmethod
    def start(self, info: RunInfo) -> None:
        """Shows what begins."""

    @abstractmethod
    def tick(self, progress: Progress) -> None:
        """Shows that a step was taken."""

    @abstractmethod
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Shows values."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Shows a line of text."""

    @abstractmethod
    def close(self) -> None:
        """Leaves the stream to others."""


@final
class LinesDisplay(Display):
    """One line per report."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @override
    def start(self, info: RunInfo) -> None:
        self.say(opening(info))

    @override
    def tick(self, progress: Progress) -> None:
        """A line per step would be too many."""

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self.say(plain_line(split, progress, values))

    @override
    def say(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:  # LANG=C: a middle dot must not end a run
            text = text.replace("·", "|").encode(encoding, "replace").decode(encoding)
        if text:
            self._stream.write(f"{printable(text)}\n")
            self._stream.flush()

    @override
    def close(self) -> None:
        """The stream is not ours."""


def opening(info: RunInfo) -> str:
    """The first line: what runs, where, and what there is to know of it.

    Example:
        >>> opening(RunInfo(recipe="tatoeba.py", step=1000, facts={"rows": 1000}))
        'tatoeba.py · rows 1,000 · goes on after step 1,000'
    """
    parts = [info.recipe, str(info.folder) if info.folder else ""]
    parts += [f"{name} {format_value(name, value)}" for name, value in info.facts.items()]
    parts.append(f"goes on after step {info.step:,}" if info.step else "")
    return " · ".join(part for part in parts if part)


def plain_line(split: str, progress: Progress, values: Mapping[str, float]) -> str:
    """A report as one line.

    Example:
        >>> plain_line("train", {"step": 20, "epoch": 1.0}, {"loss": 2.5})
        'step 20 · epoch 1.0 · loss 2.500'
    """
    time = progress.get("time", {})
    step = f"step {int(progress.get('step', 0)):,}"
    parts = [step if split == "train" else f"{split} at {step}"]
    if split == "train" and "epoch" in progress:
        parts.append(f"epoch {progress['epoch']:.1f}")
    parts += [f"{name} {format_value(name, value)}" for name, value in values.items()]
    parts += rates(time)
    if split == "train" and time.get("eta") is not None:
        parts.append(f"eta {format_duration(time['eta'])}")
    return " · ".join(parts)


def rates(time: Mapping[str, float]) -> list[str]:
    """All rates of a ``time`` mapping, as people read them.

    Example:
        >>> rates({"elapsed": 3.0, "steps_per_second": 7.42})
        ['7.4 steps/s']
    """
    return [format_rate(k, v) for k, v in time.items() if k.endswith("_per_second")]


def summary_line(summary: Mapping[str, object]) -> str:
    """The last line: the result of a run; parts that are tables of their own are left out.

    Example:
        >>> summary_line({"step": 1200, "bleu": 40.912, "best": {"step": 1000}})
        'done · step 1,200 · bleu 40.91'
    """
    flat = {name: v for name, v in summary.items() if isinstance(v, str | int | float)}
    return " · ".join(["done", *(f"{name} {format_value(name, v)}" for name, v in flat.items())])
