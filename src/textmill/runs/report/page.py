"""A run's summary as a page of HTML: the tables are the data, from which the script draws."""

from collections.abc import Collection, Iterable, Sequence

from textmill.metrics.tables import format_value
from textmill.runs.report.answers import aligned
from textmill.runs.report.markup import Markup, bar, cards, details, page, section, table, tag, text
from textmill.runs.report.summary import (
    Answered,
    Confusion,
    FactTable,
    Figure,
    LabelScore,
    Part,
    Point,
    RunSummary,
)

MOST_BYTES = 390_000
"""Of a page: answers have what the rest, of which 120 KB are its library and style, leaves."""
MOST_ANSWERS = 200
RIGHT_ANSWERS = 20
"""Right answers that are shown after the wrong ones: those that are least sure."""
UNFOLDED = 10
"""Answers that are seen before others are asked for."""
OF_A_PAIR = 5
"""Wrong answers of each two labels that are shown before others: a click finds them."""
BESIDE = 6
"""Labels whose matrix leaves room for their table beside it."""
UPRIGHT = 3
"""Characters of labels that need not be turned above their columns."""
KINDS = 12
"""Colours of kinds, as on the served page."""
SHADES = 9
LOW_IS_BETTER = {"mae": "mean absolute error", "loss": "loss", "perplexity": "perplexity"}


def report_page(summary: RunSummary) -> str:
    """The whole page of one run."""
    rest = _report_page(summary, room=0)
    return _report_page(summary, room=MOST_BYTES - len(rest.encode("utf-8", "backslashreplace")))


def _report_page(summary: RunSummary, *, room: int) -> str:
    closer, answers = figures_markup(summary.figures), _answers(summary, room)
    confusion, labels = _confusion(summary.confusion), _labels(summary.labels)
    if confusion.html and len(summary.labels) <= BESIDE:
        confusion, labels = tag("div", confusion, labels, cls="sides beside"), Markup("")
    parts = [answers, labels, section("A closer look", closer)]
    if summary.answers and summary.answers[0].numbers:  # drawings of numbers say more than rows
        parts.reverse()
    return page(
        summary.title,
        summary.state,
        _result(summary),
        confusion,
        *parts,
        section("Curves", figures_markup(summary.curves)),
        *tables_markup(summary.tables),
        note=summary.place,
        lead=summary.purpose,
        bare=False,
    )


def tables_markup(found: Iterable[FactTable]) -> list[Markup]:
    """Tables of facts, each a section, or folded away."""
    shown = []
    for each in found:
        drawn = table(each.header if any(each.header) else (), each.rows, numeric=each.numeric)
        shown.append(section("", details(each.title, drawn), cls="folded") if each.folded else
                     section(each.title, drawn))  # fmt: skip
    return shown


def _result(summary: RunSummary) -> Markup:
    """The main value and the facts beside the curve of that value."""
    value, facts = measured_markup(summary), cards(dict(summary.facts))
    if summary.curve is None:
        return section("Result", tag("div", tag("div", value), facts, cls="sides"))
    drawn = figure_markup(summary.curve)
    return section("Result", tag("div", tag("div", value, facts), drawn, cls="sides"))


def measured_markup(summary: RunSummary) -> Markup:
    """The main value, large, with its interval, above the bars of simpler answers."""
    measured = summary.measured
    if measured is None:
        return Markup("")
    low_is_better = measured.name in LOW_IS_BETTER
    name = LOW_IS_BETTER.get(measured.name, measured.name.replace("_", " "))
    shown, low, high = (
        format_value(measured.name, v) for v in (measured.value, measured.low, measured.high)
    )
    told = f"{measured.rows:,} rows, {summary.weights}" if measured.rows else summary.weights
    if measured.low is not None:
        told = f"95 % interval {low} to {high} ({measured.method}), {told}"
    if low_is_better:
        told += "; less is better"
    parts = [tag("p", tag("b", shown), f" {name}", cls="value"), tag("p", told, cls="hint")]
    if measured.rivals:
        rivals = [("this model", measured.value), *measured.rivals]
        most = max(0.0 if low_is_better else 1.0, *(v for _, v in rivals)) or 1.0
        lines = [
            tag(
                "li", bar(value / most), tag("span", label),
                tag("span", format_value(measured.name, value), cls="score"),
                cls="best" if number == 0 else None,
            )
            for number, (label, value) in enumerate(rivals)
        ]  # fmt: skip
        parts.append(tag("ul", *lines, cls="bars"))
    return Markup("".join(part.html for part in parts))


# -- figures


def figures_markup(figures: Sequence[Figure]) -> Markup:
    drawn = [figure_markup(figure) for figure in figures]
    return tag("div", *drawn, cls="figures") if drawn else Markup("")


def figure_markup(figure: Figure) -> Markup:
    """A figure's title and place, and its numbers as a table, which the script draws."""
    names = [series.name for series in figure.series]
    rows: list[list[object]] = []
    if figure.kind == "scatter":
        rows = [[_x(p.x), f"{p.y:.6g}"] for s in figure.series for p in s.points]
    else:
        by_x: dict[float | str, list[Point | None]] = {}
        for number, series in enumerate(figure.series):
            for point in series.points:
                by_x.setdefault(point.x, [None] * len(names))[number] = point
        xs = sorted(by_x, key=float) if figure.kind == "line" else [*by_x]
        rows = [[_x(x), *(_cell(p, figure) for p in by_x[x])] for x in xs]
    marked = figure.mark is not None
    notes = [figure.note, f"dashed: step {figure.mark:,}, which is kept" if marked else ""]
    hints = [tag("p", note, cls="hint") for note in notes if note]
    return tag(
        "figure",
        tag("figcaption", tag("h3", figure.title), *hints),
        tag("div", cls="drawing", role="img", aria_label=f"{figure.title}; its table is below"),
        details("As a table", table([figure.x, *names], rows)),
        data_kind=figure.kind,
        data_x=figure.x,
        data_y=None if figure.y == figure.name else figure.y,
        data_mark=figure.mark,
        data_share=figure.share,
        data_zero=figure.zero,
        data_decades=figure.decades,
        data_diagonal=figure.diagonal,
    )


def _x(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.7g}"


def _cell(point: Point | None, figure: Figure) -> Markup | str:
    """A value; where it is not written as a plain number, its element has it as one."""
    if point is None:
        return ""
    shown, name = f"{point.y:.6g}", "accuracy" if figure.share else ""
    if not figure.share and point.low is None:
        return shown
    told = format_value(name, point.y)
    if point.low is not None and point.high is not None:
        told += f" ({format_value(name, point.low)} to {format_value(name, point.high)})"
    if point.count is not None:
        told += f", {point.count:,} rows"
    bounds = [None if b is None else f"{b:.6g}" for b in (point.low, point.high)]
    return tag("data", told, value=shown, data_low=bounds[0], data_high=bounds[1])


# -- labels


def _confusion(found: Confusion | None) -> Markup:
    if found is None:
        return Markup("")
    names = ("wanted ↓ given →", *found.labels)
    head = tag("tr", *(tag("th", tag("span", _name(name)), scope="col") for name in names))
    lines = []
    for wanted, counts in enumerate(found.counts):
        cells = [tag("th", _name(found.labels[wanted]), scope="row")]
        for given, count in enumerate(counts):
            tone = "hit" if wanted == given else "miss"
            shade = -(-SHADES * count // (max(counts) or 1))
            number = tag("button", f"{count:,}") if count else ""
            cells.append(tag("td", number, cls=f"{tone}-{shade}" if count else None))
        lines.append(tag("tr", *cells))
    note = f"How often each label was wanted, and what was given, in {found.unit}. Choose a number"
    note += " to see its rows."
    if found.left_out:
        note += f" {found.left_out:,} labels with the fewest mistakes are left out."
    whole = tag("table", tag("thead", head), tag("tbody", *lines))
    short = max(map(len, found.labels)) <= UPRIGHT
    matrix = tag("div", whole, cls=f"wide confusion{' short' if short else ''}", tabindex=0)
    return section("Which labels are confused", tag("p", note, cls="hint"), matrix)


def _name(label: str) -> Markup:
    return Markup(text(label, most=60))


def _labels(labels: Sequence[LabelScore]) -> Markup:
    if not labels:
        return Markup("")
    trained = any(label.trained is not None for label in labels)
    header = ["label", "F1", "", "precision", "recall", "rows", *(["trained on"] * trained)]
    rows = [
        [
            _name(each.label), _share("f1", each.f1), bar(each.f1 or 0.0),
            _share("precision", each.precision), _share("recall", each.recall),
            _share("support", each.rows), *([_share("support", each.trained)] * trained),
        ]
        for each in labels
    ]  # fmt: skip
    shown = table(header, rows, numeric=(1, 3, 4, 5, 6))
    return section("Labels, the weakest first", tag("div", shown, cls="labels"))


def _share(name: str, value: float | None) -> str:
    return "-" if value is None else format_value(name, value)


# -- answers


def _answers(summary: RunSummary, room: int) -> Markup:
    """Wrong answers, then some right ones, as many as there is room for."""
    answers, labels = summary.answers, summary.confusion.labels if summary.confusion else ()
    if not answers:
        return Markup("")
    kinds: dict[str, int] = {}
    place = {label: number for number, label in enumerate(labels)}
    shown: dict[bool, list[Markup]] = {True: [], False: []}
    for answer in chosen(answers):
        pairs = {f"{place[a]}-{place[b]}" for a, b in answer.pairs if a in place and b in place}
        line = answer_markup(aligned(answer), kinds, pairs)
        room -= len(line.html.encode("utf-8", "backslashreplace"))
        if room < 0:
            break
        shown[answer.right is True].append(line)
    judged = any(answer.right is not None for answer in answers)
    right = sum(answer.right is True for answer in answers)
    what = "wrong answers" if judged else "rows"
    order = ""
    if any(answer.error for answer in answers):
        order = ", the largest errors first"
    elif any(answer.sure is not None for answer in answers):
        order = ", the surest first"
    count = len(answers) - right
    note = f"{len(shown[False]):,} of {count:,} {what}{order}." if count else "All are right."
    note += f" {summary.kept_in}"
    button = tag("button", "Show all", type="button", id="all")
    status = tag("p", tag("span", role="status"), " ", button, id="chosen", hidden=True)
    parts = [tag("p", note, cls="hint"), status, *unfolded(shown[False])]
    if shown[True]:
        title = f"{len(shown[True]):,} of {right:,} right answers, the least sure first"
        parts.append(details(title, tag("ol", *shown[True], cls="results")))
    return section("Answers", *parts, cls="rows")


def unfolded(lines: Sequence[Markup]) -> list[Markup]:
    """A list of answers, the later ones folded away."""
    first = tag("ol", *lines[:UNFOLDED], cls="results")
    more = lines[UNFOLDED:]
    folded = details(f"{len(more):,} more", tag("ol", *more, cls="results"))
    return [first, folded] if more else [first]


def chosen(answers: Sequence[Answered]) -> list[Answered]:
    """Those to show, in their order: of each confusion some, then all wrong ones, some right."""
    seen: dict[tuple[str, str], int] = {}
    first, rest = list[int](), list[int]()
    for number, answer in enumerate(answers):
        if answer.right is True:
            continue
        wrong = [pair for pair in answer.pairs if pair[0] != pair[1]]
        is_new = any(seen.get(pair, 0) < OF_A_PAIR for pair in wrong)
        for pair in wrong:
            seen[pair] = seen.get(pair, 0) + 1
        (first if is_new else rest).append(number)
    kept = sorted([*first, *rest][:MOST_ANSWERS])
    right = [answer for answer in answers if answer.right is True]
    return [answers[number] for number in kept] + right[:RIGHT_ANSWERS]


def answer_markup(answer: Answered, kinds: dict[str, int], pairs: Collection[str] = ()) -> Markup:
    """One row: what was read, what was wanted and what was given."""
    tone = {True: "right", False: "wrong", None: ""}[answer.right]
    head = [tag("span", tone, cls=f"verdict {tone}")] if tone else []
    head.append(tag("span", f"row {answer.row:,}"))
    if answer.sure is not None:
        head.append(tag("span", f"{100 * answer.sure:.1f} % sure"))
    if answer.numbers:
        head.append(tag("span", f"off by {answer.error:.4g}"))
    columns = answer.read or ()
    read = []
    for name, parts in columns:
        title = tag("small", f"{name} ").html if len(columns) > 1 else ""
        read.append(tag("p", Markup(title + _parts(parts, kinds)), cls="read", dir="auto"))
    body = []
    for name, parts in (("wanted", answer.wanted), ("given", answer.given)):
        if name == "given" or (parts and not (answer.right and parts == answer.given)):
            shown = tag("dd", Markup(_parts(parts, kinds)), dir="auto")
            body.append(tag("div", tag("dt", name), shown, cls=name))
    if answer.right is False and answer.runners_up:
        others = ", ".join(f"{label} {100 * score:.1f} %" for label, score in answer.runners_up)
        body.append(tag("div", tag("dt", "next"), tag("dd", others), cls="next"))
    both = tag("dl", *body, cls="both" if columns else "both tagged")
    of_pairs = " ".join(sorted(pairs)) or None
    return tag("li", tag("p", *head, cls="head"), *read, both, data_pairs=of_pairs)


def _parts(parts: Iterable[Part], kinds: dict[str, int]) -> str:
    return "".join(text(_part(part, kinds)) for part in parts)


def _part(part: Part, kinds: dict[str, int]) -> Markup | str:
    if part.kind:
        number = kinds.setdefault(part.kind, len(kinds)) % KINDS
        return tag("mark", part.text, tag("small", part.kind), cls=f"kind-{number}")
    return tag("mark", part.text, cls="differs") if part.differs else part.text
