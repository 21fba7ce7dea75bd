"""A page of HTML in one file: no script, no network, and all text of a run is only text.

Pages hold texts that nobody has looked at: sentences of a corpus, answers of a model, settings of a
run folder that came from elsewhere. Each goes through :func:`text`, which makes it harmless; and
the page forbids scripts and every address by its content security policy, should one be missed.
"""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textmill.metrics.tables import format_value, is_share

STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1c2128;--dim:#626c78;
  --line:#dfe3e8;
--mark:#fff6d6;--good:#1a7f4b;--bad:#c0362c;--c0:#2563b8;--c1:#d9730d;--c2:#1a7f4b;--c3:#8b4fc0;
  --c4:#b8336a}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1d2127;--text:#e4e8ed;
  --dim:#97a1ad;
--line:#343b44;--mark:#3a3420;--good:#4cc38a;--bad:#ff7b6e;--c0:#6ea8fe;--c1:#ffa657;--c2:#4cc38a;
  --c3:#c297f0;--c4:#ff85b3}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:24px;line-height:1.25;margin:8px 0;overflow-wrap:anywhere}
h1 span{font-size:13px;font-weight:600;vertical-align:middle;padding:2px 10px;border-radius:99px;
  border:1px solid;white-space:nowrap}
h1 .good{color:var(--good)}h1 .bad{color:var(--bad)}h1 .dim{color:var(--dim)}
h2{font-size:17px;margin:0 0 12px}
header p,.note{color:var(--dim);margin:4px 0;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px;
  margin:16px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px 20px;
  margin:0}
.cards dt{color:var(--dim);font-size:12.5px}
.cards dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums;
  overflow-wrap:anywhere}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));
  gap:20px 24px}
figure{margin:0;min-width:0}
figcaption{display:flex;flex-wrap:wrap;gap:0 14px;align-items:baseline;margin-bottom:4px}
figcaption b{font-size:14px}
figcaption span{color:var(--dim);font-size:13px;white-space:nowrap}
figcaption i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:5px;
  vertical-align:middle;background:currentColor}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--dim);font-size:12px;font-variant-numeric:tabular-nums}
svg .grid{stroke:var(--line);stroke-width:1}
svg path{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg circle{fill:currentColor}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
  .c4{color:var(--c4)}
.wide{overflow-x:auto}
.wide+.wide{margin-top:18px}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:600;color:var(--dim);font-size:12.5px}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td{overflow-wrap:anywhere;min-width:70px;white-space:pre-wrap;unicode-bidi:plaintext}
tr:last-child td{border-bottom:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-right:20px}
.marked td{background:var(--mark)}
details{margin-top:10px}
summary{cursor:pointer;color:var(--dim)}
.sample{padding:10px 0;border-bottom:1px solid var(--line)}
.sample:last-of-type{border-bottom:0}
.sample p{margin:1px 0;display:grid;grid-template-columns:86px 1fr;gap:10px;white-space:pre-wrap;
  overflow-wrap:anywhere}
.sample p>span{color:var(--dim);font-size:12.5px;padding-top:2px}
.sample p>bdi{min-width:0;unicode-bidi:plaintext}
.sample .answer bdi{font-weight:600}
.sample i{font-weight:400;color:var(--dim)}
.sample .head{display:block;color:var(--dim);font-size:12.5px}
@media (max-width:520px){main{padding:12px 10px 40px}section{padding:12px}
  .sample p{grid-template-columns:1fr;gap:0}
svg text{font-size:15px}.sample p>span{padding-top:4px}.cards dd{font-size:17px}}
@media print{body{background:#fff}section{break-inside:avoid}}
""".strip()
"""The style sheet; no address in it, and no font but those of the reader's machine."""


LONGEST = 2_000
"""Characters of one text that are shown: more than a screenful of a phone."""

# Controls cannot be seen, and those of direction turn the text around them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Markup:
    """HTML that is meant as such; everything else is text."""

    html: str


def text(value: object, *, most: int = LONGEST) -> str:
    r"""A value as harmless HTML text, also inside the quotes of an attribute.

    Characters that cannot be seen are shown by their number, and of a long text ``most`` of them.

    Example:
        >>> text('<script>alert("1")</script>')
        '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;'
        >>> text("a\x00b"), text("aaaaaa", most=3)
        ('a\\x00b', 'aaa… (6 characters)')
    """
    if isinstance(value, Markup):
        return value.html
    whole = str(value)
    shown = whole if len(whole) <= most else f"{whole[:most]}… ({len(whole):,} characters)"
    return html.escape(_UNSEEN.sub(_number, shown))


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> Markup:
    """A table that scrolls on its own where the screen is narrow; its header may be empty.

    Columns of numbers, counted from 0, are aligned to the right; marked rows are to be seen first.
    """

    def cells(tag: str, row: Sequence[object]) -> str:
        kinds = [" class=number" if i in numeric else "" for i in range(len(row))]
        both = zip(kinds, row, strict=True)
        return "".join(f"<{tag}{kind}>{text(cell)}</{tag}>" for kind, cell in both)

    lines = [
        f"<tr{' class=marked' if number in marked else ''}>{cells('td', row)}</tr>"
        for number, row in enumerate(rows)
    ]
    top = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    return Markup(f"<div class=wide><table>{top}<tbody>{''.join(lines)}</tbody></table></div>")


def cards(facts: Mapping[str, object]) -> Markup:
    items = (f"<div><dt>{text(n)}</dt><dd>{text(v, most=60)}</dd></div>" for n, v in facts.items())
    return Markup(f"<dl class=cards>{''.join(items)}</dl>")


def details(title: object, *content: object) -> Markup:
    """Content that is folded away until its title is chosen."""
    inner = "".join(text(item) for item in content)
    return Markup(f"<details><summary>{text(title)}</summary>{inner}</details>")


def section(title: object, *content: object) -> Markup:
    """A part of the page; one without content is left out whole."""
    inner = "".join(text(item) for item in content)
    return Markup(f"<section><h2>{text(title)}</h2>{inner}</section>" if inner else "")


def page(title: str, state: str, *content: Markup, note: object = "") -> str:
    """The whole page: a heading, a word of the run's state beside it, a note below, sections."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    tone = {"finished": "good", "failed": "bad"}.get(state, "dim")
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title, most=120)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f"<header><h1>{text(title, most=120)} <span class={tone}>{text(state, most=40)}</span></h1>"
        f"<p>{text(note)}</p></header>\n"
        + "\n".join(part.html for part in content if part.html)
        + "\n</main></body></html>\n"
    )


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


def figure(
    title: str, curves: Sequence[Curve], *, last_step: float = 1.0, over: str = "step"
) -> Markup:
    """A drawing with its title and legend; nothing where no curve has a finite value.

    By a title that ends in ``accuracy`` or the like values are shown in percent, unless one is
    above 1. The axis ends at ``last_step``, if no curve goes further; it is of what ``over`` says.
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
        drawn += _line(thinned(points), scale, number, name=name, over=over, dots=curve.dots)
    label = text(f"{title} over {over}s", most=100)
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


def _line(
    points: Sequence[Point], scale: "_Scale", number: int, *, name: str, over: str, dots: bool
) -> str:
    if not points:
        return ""
    places = [(scale.x(step), scale.y(value)) for step, value in points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    alone = len(points) == 1
    marks = "".join(
        f"<circle cx={x:.1f} cy={y:.1f} r={4 if alone else 3}><title>"
        f"{over} {_short('', step)}: {text(format_value(name, value))}</title></circle>"
        for (x, y), (step, value) in zip(places, points, strict=True)
        if dots or alone
    )
    return f'<g class="c{number % 5}"><path d="{path}"/>{marks}</g>'


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Some ``most`` points: of each stretch its lowest and its highest, so that peaks stay."""
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
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def y(self, value: float) -> float:
        low, high = self.values
        place = math.log10(value) if self.decades else value
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - place) / (high - low)

    def grid(self, name: str) -> str:
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
                f"<text x={self.x(step):.1f} y={HEIGHT - 6} "
                f'text-anchor="{end}">{_short("", step)}</text>'
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
    """Round values between two: multiples of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next((power * part for part in (1, 2, 5, 10) if span / (power * part) <= most), span)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _short(name: str, value: float) -> str:
    if is_share(name):
        return f"{100 * value:g} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
