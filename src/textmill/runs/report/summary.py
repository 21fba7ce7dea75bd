"""All that a report shows of a run, as plain typed data: what draws it computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Point:
    """One value of a figure, with its interval if that is known."""

    x: float | str
    y: float
    low: float | None = None
    high: float | None = None
    count: int | None = None
    """Rows that the value is of."""


@dataclass(frozen=True)
class Series:
    """One line, or one set of bars or points, of a figure."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Figure:
    """A drawing, which is also a table: a row for each x, a column for each series."""

    name: str
    """Its name in files."""
    title: str
    kind: Literal["line", "bar", "scatter"]
    x: str
    """What the x axis shows."""
    y: str
    """What the y axis shows; by this name values are written, shares in percent."""
    series: tuple[Series, ...]
    note: str = ""
    mark: float | None = None
    """The x of the step whose weights the run keeps."""
    diagonal: bool = False
    """Whether the line of equal x and y is drawn, which is what perfect answers lie on."""
    share: bool = False
    """Whether values are shares of 1: the axis then ends at 100 %."""
    zero: bool = False
    """Whether the axis begins at 0."""
    decades: bool = False
    """Whether the axis is logarithmic."""


@dataclass(frozen=True)
class MainValue:
    """How good the answers are, in one number."""

    name: str
    value: float
    rows: int
    low: float | None = None
    high: float | None = None
    method: str = ""
    """How the interval was computed; empty if there is none."""
    rivals: tuple[tuple[str, float], ...] = ()
    """The same value of simple answers, such as always the most frequent label."""


@dataclass(frozen=True)
class Confusion:
    """How often each label was wanted (rows) and given (columns)."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    left_out: int = 0
    """Labels that are not shown: those with the fewest wrong answers."""
    unit: str = "rows"


@dataclass(frozen=True)
class LabelScore:
    """The values of one label; None if unknown."""

    label: str
    f1: float | None
    precision: float | None
    recall: float | None
    rows: float | None
    trained: int | None = None
    """Its rows in the training data."""


@dataclass(frozen=True)
class Part:
    """A stretch of a text: plain, marked with a kind, or marked as different."""

    text: str
    kind: str = ""
    differs: bool = False


@dataclass(frozen=True)
class Answered:
    """One row with what was wanted and what was answered."""

    row: int
    read: tuple[tuple[str, tuple[Part, ...]], ...] | None
    """What the model read, by column; empty if the answer has it, too."""
    wanted: tuple[Part, ...] = ()
    given: tuple[Part, ...] = ()
    right: bool | None = None
    """None if answers are not simply right or wrong."""
    sure: float | None = None
    """The probability of the answer; of tags, that of the surest wrong one."""
    error: float = 0.0
    """How wrong the answer is if it is not simply wrong."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Each label that was wanted with the one that was given."""
    numbers: tuple[float, float] | None = None
    """The number that was wanted and the one that was given."""
    share: tuple[float, float] = (0.0, 0.0)
    """What the row adds to numerator and denominator of the main value."""
    length: int = 0
    """Words that were read."""
    runners_up: tuple[tuple[str, float], ...] = ()
    """The labels that came next, with their probabilities."""

    @property
    def wanted_text(self) -> str:
        return "".join(part.text for part in self.wanted)

    @property
    def given_text(self) -> str:
        return "".join(part.text for part in self.given)


@dataclass(frozen=True)
class FactTable:
    """A table of facts."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    numeric: tuple[int, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class RunSummary:
    """A run as its report shows it."""

    title: str
    state: str
    purpose: str
    """What the model does, as a sentence."""
    place: str
    """The run folder and its key, and why the run ended early."""
    split: str
    """What the values and answers are of: test, valid, ..."""
    measured: MainValue | None
    facts: tuple[tuple[str, str], ...]
    weights: str
    """Whose answers these are, as ``the weights of step 20``."""
    curve: Figure | None
    """The value that the run is selected by."""
    curves: tuple[Figure, ...]
    confusion: Confusion | None
    labels: tuple[LabelScore, ...]
    answers: tuple[Answered, ...]
    """Wrong answers first, and of these the surest, or the most wrong, first."""
    kept_in: str
    """The file that has the answers, as a sentence."""
    figures: tuple[Figure, ...]
    """Calibration, error by length, numbers."""
    tables: tuple[FactTable, ...]

    @property
    def drawings(self) -> tuple[Figure, ...]:
        """All that can be drawn into files; the labels as bars, too."""
        scores = [Point(each.label, each.f1) for each in self.labels if each.f1 is not None]
        labels = Figure(
            "labels", "F1 of each label", "bar", "label", "f1", (Series("f1", tuple(scores)),),
            share=True, zero=True,
        )  # fmt: skip
        return (*self.curves, *([labels] if scores else []), *self.figures)


def thinned(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """Some ``most`` points: of each stretch its lowest and its highest, so that peaks stay."""
    if len(points) <= most:
        return tuple(points)
    stretches, kept = max(1, most // 2), dict[int, None]()
    for number in range(stretches):
        first = number * len(points) // stretches
        last = (number + 1) * len(points) // stretches
        low, high = (way(range(first, last), key=lambda i: points[i].y) for way in (min, max))
        kept |= dict.fromkeys(sorted((low, high)))
    kept[len(points) - 1] = None  # a curve ends where the run stands
    return tuple(points[i] for i in kept)


def joined(first: Figure, second: Figure) -> Figure:
    """One figure of two runs' curves, A and B."""
    series = tuple(
        replace(each, name=f"{name} {each.name}")
        for name, figure in (("A", first), ("B", second))
        for each in figure.series
    )
    both = {name: getattr(first, name) and getattr(second, name) for name in ("share", "decades")}
    return replace(first, series=series, mark=None, **both)
