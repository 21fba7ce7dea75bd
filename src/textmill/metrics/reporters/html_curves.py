"""Curves as inline SVG: a few lines over the steps of a run, on one scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textmill.metrics.reporters.html_page import Markup, text
from textmill.metrics.tables import format_value, is_share

WIDTH, HEIGHT = 460, 210
LEFT, RIGHT, TOP, BOTTOM = 64, 10, 10, 24
MOST_POINTS = 400
"""Points of a curve: more than it has columns of pixels on a phone."""
DECADES = 30.0
"""Largest over smallest value above which the scale is of decades: such a fall hides the rest."""
LARGEST = 1e150
"""What is larger counts as infinite, and what is as small as 0: so that no scale overflows."""
FLAT = 1e-9
"""Span over size below which a curve is a flat line: single precision has seven digits."""

Point = tuple[float, float]


class Curve(NamedTuple):
    """One line: its name in the legend and its values by step.

    Values that are not finite are counted and left out. ``dots`` mark each point: for evaluations,
    of which there are few.
    """

    name: str
    points: Sequence[Point]
    dots: bool = False


def figure(title: str, curves: Sequence[Curve], *, last_step: float = 1.0) -> Markup:
    """A drawing with its title and legend; nothing where no curve has a finite value.

    By a title that ends in ``accuracy`` or the like values are shown in percent, unless one is
    above 1. The axis ends at ``last_step``, if no curve goes further.

    Example:
        >>> drawn = figure("loss", [Curve("train", [(1, 3.5), (2, 2.5), (3, float("nan"))])])
        >>> drawn.html.count("<path"), "1 not finite" in drawn.html
        (1, True)
    """
    finite = [
        [(s, y if abs(y) > 1 / LARGEST else 0.0) for s, y in curve.points if abs(y) < LARGEST]
        for curve in curves
    ]
    values = [value for points in finite for _, value in points]
    if not values:
        return Markup("")
    steps = [last_step, *(step for points in finite for step, _ in points)]
    share = is_share(title, *values)
    scale = _Scale.over(steps, values, share=share)
    name = title if share or not is_share(title) else ""  # all of its numbers in one way
    legend = drawn = ""
    for number, (curve, points) in enumerate(zip(curves, finite, strict=True)):
        legend += _legend(name, curve, points, number)
        drawn += _line(thinned(points), scale, number, name=name, dots=curve.dots)
    label = text(f"{title} over steps", most=100)
    return Markup(
        f"<figure><figcaption><b>{text(title, most=60)}</b>{legend}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{label}">'
        f"{scale.grid(name)}{drawn}</svg></figure>"
    )


def _legend(name: str, curve: Curve, points: Sequence[Point], number: int) -> str:
    last = f" {format_value(name, points[-1][1])}" if points else ""
    missing = len(curve.points) - len(points)
    note = f", {missing:,} not finite" if missing else ""
    shown = text(f"{curve.name}{last}{note}", most=80)
    return f'<span><i class="c{number % 5}"></i>{shown}</span>'


def _line(points: Sequence[Point], scale: "_Scale", number: int, *, name: str, dots: bool) -> str:
    if not points:
        return ""
    places = [(scale.x(step), scale.y(value)) for step, value in points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    alone = len(points) == 1
    marks = "".join(
        f"<circle cx={x:.1f} cy={y:.1f} r={4 if alone else 3}><title>"
        f"step {step:,.0f}: {text(format_value(name, value))}</title></circle>"
        for (x, y), (step, value) in zip(places, points, strict=True)
        if dots or alone
    )
    return f'<g class="c{number % 5}"><path d="{path}"/>{marks}</g>'


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Some ``most`` points: of each stretch its lowest and its highest, so that peaks stay.

    Example:
        >>> thinned([(i, 9.0 if i == 5 else 0.0) for i in range(100)], most=4)
        [(0, 0.0), (5, 9.0), (50, 0.0), (99, 0.0)]
    """
    if len(points) <= most:
        return list(points)
    stretches, kept = max(1, most // 2), dict[int, None]()
    for number in range(stretches):
        first = number * len(points) // stretches
        last = (number + 1) * len(points) // stretches
        low, high = (way(range(first, last), key=lambda i: points[i][1]) for way in (min, max))
        kept |= dict.fromkeys(sorted((low, high)))
    kept[len(points) - 1] = None  # a curve ends where the run stands
    return [points[i] for i in kept]


@dataclass(frozen=True)
class _Scale:
    """From steps and values to places in the drawing."""

    last: float
    values: Point
    decades: bool

    @classmethod
    def over(cls, steps: Sequence[float], values: Sequence[float], *, share: bool) -> "_Scale":
        """The scale on which all points have their place; steps begin at 0."""
        low, high = min(values), max(values)
        # A flat line is in the middle; zeros are at the bottom.
        if high - low <= FLAT * max(abs(low), abs(high)):
            low, high = (0.0, 1.0) if low == 0 else (low - abs(low) / 2, low + abs(low) / 2)
            return cls(max(steps) or 1.0, (low, high), decades=False)
        decades = not share and low > 0 and high / low > DECADES
        if decades:
            low, high = math.log10(low), math.log10(high)
        room = 0.04 * (high - low)
        bottom = 0.0 if not decades and 0 <= low < 0.3 * high else low - room
        return cls(max(steps) or 1.0, (bottom, high + room), decades)

    def x(self, step: float) -> float:
        """From left to right."""
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def y(self, value: float) -> float:
        """From top to bottom."""
        low, high = self.values
        place = math.log10(value) if self.decades else value
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - place) / (high - low)

    def grid(self, name: str) -> str:
        """Lines with the values they stand for, and steps below."""
        drawn = []
        for value in self._marks():
            y = self.y(value)
            drawn.append(
                f"<line class=grid x1={LEFT} x2={WIDTH - RIGHT} y1={y:.1f} y2={y:.1f} />"
                f'<text x={LEFT - 7} y={y + 4:.1f} text-anchor="end">'
                f"{text(_short(name, value))}</text>"
            )
        for step in ticks(0.0, self.last):
            end = "end" if self.x(step) > WIDTH - 40 else "middle"
            drawn.append(
                f'<text x={self.x(step):.1f} y={HEIGHT - 6} text-anchor="{end}">{step:,.0f}</text>'
            )
        return "".join(drawn)

    def _marks(self) -> list[float]:
        low, high = self.values
        if not self.decades:
            return ticks(low, high)
        whole = range(math.floor(low), math.ceil(high) + 1)
        found = [10.0**power * part for power in whole for part in (1, 2, 5)]
        inside = [value for value in found if low <= math.log10(value) <= high]
        tens = [value for value in inside if math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9)]
        return inside if len(inside) <= 6 else tens


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values between two: multiples of 1, 2 or 5 times a power of ten.

    Example:
        >>> ticks(0.0, 4.3), ticks(0.0, 4800.0, most=6)
        ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1000.0, 2000.0, 3000.0, 4000.0])
    """
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next((power * part for part in (1, 2, 5, 10) if span / (power * part) <= most), span)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _short(name: str, value: float) -> str:
    """A value beside a line of the grid: round, so without zeros at its end."""
    if is_share(name):
        return f"{100 * value:g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
