"""From the files of a run to what its report shows; nothing of the run is executed."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.layout import CHECKPOINTS
from textmill.config.recipe import experiments
from textmill.config.values.raw_values import written
from textmill.errors import CheckpointError, TextmillError
from textmill.metrics.calibration import CalibrationError
from textmill.metrics.intervals import RESAMPLES, bleu, bootstrap, wilson
from textmill.metrics.tables import by_label, format_duration, format_rate, format_value, is_share
from textmill.run_folder.diff import compare
from textmill.run_folder.record import (
    Record,
    flat,
    mapping,
    numbers,
    selected_by,
    state_of,
    used_step,
)
from textmill.runs.report.answers import Columns, Kind, kind_of, read_row
from textmill.runs.report.summary import (
    Answered,
    Confusion,
    FactTable,
    Figure,
    LabelScore,
    MainValue,
    Point,
    RunSummary,
    Series,
    thinned,
)
from textmill.runtime.jsonl_log import read_lines

MOST_ANSWERS = 50_000
"""Answered rows that are read: of more the first."""
MOST_POINTS = 60
"""Points of a curve."""
MOST_CURVES = 12
MOST_LABELS = 20
"""Labels of the confusion matrix."""
SHARES = ("f1", "precision", "recall")
MOST_SCORES = 200
"""Labels of the table of labels."""
MOST_ROWS = 500
"""Rows of a table of facts."""
MOST_DIFFERENCES = 200
LENGTHS = 6
"""Groups of rows by length, about as large as each other."""
BINS = 20
"""Bars of residuals."""
MOST_NUMBERS = 300
"""Points of the scatter."""
SAMPLES = 10
"""Bad rows that are shown."""
ROUNDING = 1e-5
"""What a value of answers may differ from the run's own by: numbers have six digits there."""
DECADES = 30.0
"""Largest over smallest value above which an axis is logarithmic."""
LARGEST = 1e150
"""What is larger counts as infinite, so that no scale overflows."""


def summarize(run: Record, against: Record | None, facts: Mapping[str, Any]) -> RunSummary:
    """What a report shows; ``facts`` are not yet in ``run.json``: state, result, kept_step."""
    recorded = run.info if run.info.get("finished") else {}
    result = mapping(facts, "result") or mapping(recorded, "result")
    run = replace(run, kept_step=facts.get("kept_step") or used_step(result) or run.kept_step)
    split, path = _predictions(run)
    known = _known_of(run, f"{split}_data")
    answers, columns, kind = _answers(run, split, path)
    curves, calibrated = _curves(run), _calibrated(run)
    metric, _ = selected_by(run.info)
    scores, measured = _labels(run, split), _measured(run, split, kind, answers)
    names = [score.label for score in scores]
    reason = run.info.get("failed") or run.info.get("stopped") or ""
    return RunSummary(
        title=str(run.info.get("recipe", run.path.name)),
        state=str(facts.get("state", state_of(run.info))),
        purpose=_purpose(kind, columns, sorted(names)),
        place=" · ".join(filter(None, (str(run.path), f"key {run.info.get('key', '')}", reason))),
        split=split,
        measured=measured,
        facts=_facts(run, split, measured, result),
        weights=_weights(run),
        curve=next((c for c in curves if c.name == metric and _drawn(c)), None),
        curves=tuple(c for c in curves if _drawn(c)),
        confusion=_confusion(answers, tags=bool(answers) and len(answers[0].pairs) > 1),
        labels=scores,
        answers=tuple(answers),
        kept_in=_kept_in(path, len(answers), known.get("rows")),
        figures=(*_calibration(calibrated, answers), *_lengths(answers), *_numbers(answers)),
        tables=(
            *_thresholds(calibrated),
            *_data(run),
            *([] if against is None else [difference(against, run)]),
            *_settings(run),
            *_environment(run),
        ),
    )


def _answers(
    run: Record, split: str, path: Path | None
) -> tuple[list[Answered], Columns, Kind | None]:
    """The rows of a file, with their columns and kind; of several tasks each has its own."""
    readers: dict[str, tuple[Columns, Kind | None]] = {}
    answers = []
    for row in read_lines(path, MOST_ANSWERS) if path else ():
        of_task = _known_of(run, name := f"{row.get('source')}.{split}_data")
        if (data := name if of_task else f"{split}_data") not in readers:
            columns = Columns.of(of_task or _known_of(run, data))
            readers[data] = columns, kind_of(row, columns)
        columns, kind = readers[data]
        if kind is not None:
            answers.append(read_row(row, columns, kind))
    answers.sort(key=_interest)
    columns, kind = next(iter(readers.values())) if len(readers) == 1 else (Columns(), None)
    return answers, columns, kind


def _interest(answer: Answered) -> tuple[bool, float, float]:
    """Wrong answers first, the surest of them on top; of right ones the least sure."""
    sure = 0.0 if answer.sure is None else answer.sure
    return answer.right is True, -answer.error, sure if answer.right else -sure


def _predictions(run: Record) -> tuple[str, Path | None]:
    """The answers to test data, else to validation data, else the first there are."""
    latest = {}
    for path in sorted((run.path / "predictions").glob("*-step-*.jsonl")):
        if path.is_file() and not path.is_symlink():
            latest[path.name.partition("-step-")[0]] = path
    split = next((s for s in ("test", "valid", *latest) if s in latest), "valid")
    return split, latest.get(split)


def _kept_in(path: Path | None, count: int, rows: object) -> str:
    """The file of answers, and how many of the data's rows it has."""
    if path is None:
        return ""
    has = f"{count:,} of {rows:,}" if isinstance(rows, int) and count < rows else f"all {count:,}"
    return f"predictions/{path.name} has {has} rows."


def _purpose(kind: Kind | None, columns: Columns, names: Sequence[str]) -> str:
    if kind is None:
        return ""
    labels = ", ".join(names[:8]) + (" and others" if len(names) > 8 else "")
    one = "any" if columns.several else "one"
    does = kind.does.format(one=one, count=len(names) or "several", labels=labels)
    read = " and ".join(columns.inputs) or "a text"
    return f"The model reads {read} and {does.removesuffix(': ')}."


def _weights(run: Record) -> str:
    kept = run.kept_step
    return "the weights of the last step" if kept is None else f"the weights of step {kept:,}"


def _measured(
    run: Record, split: str, kind: Kind | None, answers: Sequence[Answered]
) -> MainValue | None:
    """The run's own value with its interval: Wilson's of a share of rows, else by the bootstrap.

    There is none if the answers do not say the same: some are left out, or rows have weights.
    """
    metric, _ = selected_by(run.info)
    values, count = run.kept_values(), len(answers)
    names = (kind.measure if kind else "", "bleu", metric, "loss")
    found = ((n, values.get(f"{split}.{n}")) for n in names)
    name, value = next(((n, v) for n, v in found if v is not None), ("", math.nan))
    if math.isnan(value):
        return None
    rows = _known_of(run, f"{split}_data").get("rows")
    bare = MainValue(name, value, rows if isinstance(rows, int) else count)
    if kind is None or name not in (kind.measure, "bleu"):
        return bare
    above, below = [a.share[0] for a in answers], [a.share[1] for a in answers]
    method = f"bootstrap of rows, {RESAMPLES:,} draws"
    if name == "bleu":
        own, bounds = bleu([a.given_text for a in answers], [a.wanted_text for a in answers])
    elif all(share in ((0.0, 1.0), (1.0, 1.0)) for share in zip(above, below, strict=True)):
        own, bounds, method = sum(above) / count, wilson(sum(above), count), "Wilson"
    else:
        own, bounds = sum(above) / (sum(below) or math.nan), bootstrap(above, below)
    if not math.isclose(own, value, rel_tol=ROUNDING, abs_tol=ROUNDING):
        return bare
    rivals = tuple(_rivals(run, split, name, answers))
    return MainValue(name, value, count, *bounds, method, rivals)


def _rivals(
    run: Record, split: str, name: str, answers: Sequence[Answered]
) -> Iterator[tuple[str, float]]:
    """The same value of the most frequent label or the median, and of a linear model."""
    if name == "accuracy":
        label, count = Counter(answer.wanted_text for answer in answers).most_common(1)[0]
        yield f"always “{label}”", count / len(answers)
    elif name == "token_accuracy":
        words = Counter(gold for answer in answers for gold, _ in answer.pairs)
        label, count = words.most_common(1)[0]
        yield f"always “{label}”", count / words.total()
    elif gold := sorted(answer.numbers[0] for answer in answers if answer.numbers):
        middle = gold[len(gold) // 2]
        error = sum(abs(each - middle) for each in gold) / len(gold)
        yield f"always {middle:g}, the median", error
    linear = numbers(mapping(_known_of(run, f"{split}_data"), "linear"))
    if name in linear:
        yield "a linear model of words", linear[name]


def _known_of(run: Record, data: str) -> Mapping[str, Any]:
    return mapping(mapping(run.info, "data_summary"), data)


def _facts(
    run: Record, split: str, measured: MainValue | None, result: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    found = []
    for title, name in (("trained on", "train_data"), ("measured on", f"{split}_data")):
        rows = _known_of(run, name).get("rows")
        if isinstance(rows, int):
            found.append((title, f"{rows:,} rows of {name}"))
        elif name != "train_data" and measured:
            found.append((title, f"{measured.rows:,} rows of {name}"))
    best = numbers(mapping(result, "best"), ("step",))
    shown = () if measured is None else (measured.name,)
    found += [(f"best {n}", format_value(n, v)) for n, v in best.items() if n not in shown]
    last = next((numbers(line, ()) for line in reversed(run.values)), {})
    if "step" in last:
        kept = last["step"] if run.kept_step is None else run.kept_step
        found.append(("weights kept", f"step {kept:,.0f} of {last['step']:,.0f}"))
    values = run.kept_values()
    for name in dict.fromkeys(n.partition(".")[2] for n in values if n.startswith("test.")):
        if "/" not in name and name not in shown:
            found.append((f"test {name}", format_value(name, values[f"test.{name}"])))
    if f"{split}.loss" in values and split != "test" and "loss" not in best:
        found.append((f"{split} loss", format_value("loss", values[f"{split}.loss"])))
    return tuple(found)


# -- curves


def _curves(run: Record) -> list[Figure]:
    """Each value of ``metrics.jsonl`` with a line per split; evaluated ones, loss, the rest."""
    drawn: dict[str, dict[str, list[Point]]] = {}
    for line in run.values:
        step, split = numbers(line, ()).get("step"), line.get("split")
        if step is None or not abs(step) < LARGEST or not isinstance(split, str):
            continue
        for name, value in numbers(line).items():
            if split != "test" and "/" not in name and abs(value) < LARGEST:
                drawn.setdefault(name, {}).setdefault(split, []).append(Point(step, value))
    metric, _ = selected_by(run.info)
    order = sorted(drawn, key=lambda n: (n != "loss", n != metric, drawn[n].keys() <= {"train"}))
    return [_curve(name, drawn[name], run.kept_step) for name in order[:MOST_CURVES]]


def _curve(name: str, splits: Mapping[str, list[Point]], mark: int | None) -> Figure:
    series = tuple(Series(split, thinned(p, MOST_POINTS)) for split, p in splits.items())
    values = [point.y for each in series for point in each.points]
    share = is_share(name, *values)
    low, high = min(values), max(values)
    decades = not share and 0 < DECADES * low < high
    return Figure(
        name, name.replace("_", " "), "line", "step", name, series, mark=mark, share=share,
        zero=not (share or decades) and 0 <= low < 0.3 * high, decades=decades,
    )  # fmt: skip


def _drawn(figure: Figure) -> bool:
    return any(len(series.points) > 1 for series in figure.series)


# -- labels


def _labels(run: Record, split: str) -> tuple[LabelScore, ...]:
    """The values of each label, the weakest first."""
    values = run.kept_values()
    own = {n.removeprefix(f"{split}."): v for n, v in values.items() if n.startswith(f"{split}.")}
    trained = mapping(_known_of(run, "train_data"), "labels")
    found = []
    for label, of in by_label(own).items():
        f1, precision, recall, rows = (_known(of.get(n)) for n in (*SHARES, "support"))
        known = trained.get(label)
        count = known if isinstance(known, int) else None
        found.append(LabelScore(label, f1, precision, recall, rows, trained=count))
    found = [each for each in found if each.f1 is not None]
    return tuple(sorted(found, key=lambda each: (each.f1, each.label))[:MOST_SCORES])


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _confusion(answers: Sequence[Answered], *, tags: bool) -> Confusion | None:
    counts = Counter(pair for answer in answers for pair in answer.pairs)
    wrong = Counter[str]()
    for (wanted, given), count in counts.items():
        for label in {wanted, given}:
            wrong[label] += count * (wanted != given)
    if len(wrong) < 2:
        return None
    labels = sorted(label for label, _ in wrong.most_common(MOST_LABELS))
    grid = tuple(tuple(counts[wanted, given] for given in labels) for wanted in labels)
    left = len(wrong) - len(labels)
    return Confusion(tuple(labels), grid, left, "words" if tags else "rows")


# -- figures of answers


def _calibrated(run: Record) -> Calibration | None:
    with suppress(CheckpointError):  # whoever answers with it says so
        return Calibration.read(run.path / CHECKPOINTS)
    return None


def _thresholds(found: Calibration | None) -> list[FactTable]:
    bounds = found.thresholds if found is not None else None
    if found is None or not bounds:
        return []
    header = ("label", f"answer above, for a share of {found.correct} correct")
    rows = [(label, format_value("", bound)) for label, bound in bounds.items()]
    return _table("Thresholds", header, rows, (1,), folded=True)


def _calibration(found: Calibration | None, answers: Sequence[Answered]) -> list[Figure]:
    """How many answers are right that are so sure; after a calibration, before and after it."""
    if found is not None:
        tables = {"before calibration": [*found.tables[0]], "after": [*found.tables[1]]}
        errors = [format_value("calibration_error", error) for error in found.errors]
        note = (
            f"temperature {found.temperature:.3g}, calibration error {errors[0]} before, "
            f"{errors[1]} after, on {found.rows:,} rows of valid_data"
        )
    else:
        known = [(a.sure, a.right) for a in answers if a.sure is not None and a.right is not None]
        if not known or any(len(a.pairs) > 1 for a in answers):
            return []
        measured = CalibrationError()
        measured.update(*map(list, zip(*known, strict=True)))
        tables = {"answers": measured.table()}
        error = format_value("calibration_error", measured.compute()["calibration_error"])
        note = f"calibration error {error}"
    series = tuple(
        Series(name, tuple(_reliable(rows, score, right) for *_, rows, score, right in bins))
        for name, bins in tables.items()
    )
    title = "Are sure answers right?"
    return [
        Figure(
            "calibration", title, "line", "how sure", "accuracy", series, note=note,
            diagonal=True, share=True, zero=True,
        )
    ]  # fmt: skip


def _reliable(rows: float, score: float, right: float) -> Point:
    count = max(1, round(rows))  # rows may weigh less than one
    return Point(score, right, *wilson(right * count, count), count)


def _lengths(answers: Sequence[Answered]) -> list[Figure]:
    """The share of wrong answers, or the mean error, by the words that were read."""
    ranked = sorted(answers, key=lambda answer: answer.length)
    if len(ranked) < 10 * LENGTHS:
        return []
    several = len({*(answer.right for answer in answers)}) > 1
    edges = [ranked[i * len(ranked) // LENGTHS].length for i in range(LENGTHS)]
    edges = [*dict.fromkeys(edges), ranked[-1].length + 1]
    points = []
    for first, after in pairwise(edges):
        inside = [answer for answer in ranked if first <= answer.length < after]
        name = f"{first}" if after - first == 1 else f"{first}-{after - 1}"
        count = len(inside)
        if several:
            wrong = sum(answer.right is False for answer in inside)
            points.append(Point(name, wrong / count, *wilson(wrong, count), count))
        else:
            errors = [answer.error for answer in inside]
            ones = [1.0] * count
            points.append(Point(name, sum(errors) / count, *bootstrap(errors, ones), count))
    if len(points) < 2 or not any(point.y for point in points):
        return []
    y = "wrong" if several else "error"
    titles = {"wrong": "Wrong answers by length", "error": "Error by length"}
    return [
        Figure(
            "length", titles[y], "bar", "words", y, (Series(y, tuple(points)),),
            note="with 95 % intervals", share=several, zero=True,
        )
    ]  # fmt: skip


def _numbers(answers: Sequence[Answered]) -> list[Figure]:
    pairs = [answer.numbers for answer in answers if answer.numbers]
    pairs = [pair for pair in pairs if all(abs(number) < LARGEST for number in pair)]
    if len(pairs) < 2:
        return []
    shown = [pairs[i * len(pairs) // MOST_NUMBERS] for i in range(MOST_NUMBERS)]
    shown = pairs if len(pairs) <= MOST_NUMBERS else shown
    some = f"{len(shown):,} of {len(pairs):,} rows; " if len(shown) < len(pairs) else ""
    scatter = Figure(
        "scatter", "Given and wanted numbers", "scatter", "wanted", "given",
        (Series("given", tuple(Point(*pair) for pair in shown)),),
        note=f"{some}on the line the answer is right", diagonal=True,
    )  # fmt: skip
    errors = [given - wanted for wanted, given in pairs]
    width = _round_up((max(errors) - min(errors)) / BINS)
    bars = Counter(math.floor(error / width) for error in errors)
    places = range(min(bars), max(bars) + 1)
    points = [Point(f"{n * width:.6g}", float(bars[n])) for n in places]
    title = "Residuals: given minus wanted"
    return [
        scatter,
        Figure(
            "residuals", title, "bar", "given minus wanted", "rows",
            (Series("rows", tuple(points)),), zero=True,
        ),
    ]  # fmt: skip


def _round_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(power * part for part in (1, 2, 5, 10) if value <= power * part)


# -- facts


def _experiment_defaults(run: Record) -> dict[str, Any]:
    """The settings of the run's experiment as it is; empty if it is none of the library's."""
    from textmill.recipes.planning import plan_recipe

    name = run.info.get("recipe")
    if run.info.get("trained_by") == "lightning" or name not in experiments.names():
        return {}
    with suppress(TextmillError):
        return flat(plan_recipe(name, targets=["trainer"], draft=True).plan.settings)
    return {}


def _settings(run: Record) -> list[FactTable]:
    defaults, now = _experiment_defaults(run), flat(run.settings)
    chosen = [n for n in now if now[n] != defaults.get(n) and defaults]
    rows = [
        (n, written(now[n]), written(defaults[n]) if n in defaults else "not set") for n in chosen
    ]
    every = tuple((n, written(value)) for n, value in list(now.items())[:MOST_ROWS])
    header = ("setting", "here", f"in {run.info.get('recipe')}")
    return [
        *_table("Settings", header, rows),
        *_table(f"All {len(now):,} settings", ("setting", "value"), every, folded=True),
    ]


def _table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    numeric: Sequence[int] = (),
    *,
    folded: bool = False,
) -> list[FactTable]:
    shown = tuple(map(tuple, rows))[:MOST_ROWS]
    return [FactTable(title, tuple(header), shown, tuple(numeric), folded)] if shown else []


def _data(run: Record) -> list[FactTable]:
    """Rows, lengths and padding of each data set, as the run recorded them."""
    known, hashes = mapping(run.info, "data_summary"), mapping(run.info, "data")
    rows, lengths = [], []
    for name in {**known, **hashes}:
        facts = mapping(known, name)
        shown = [facts.get(key, "") for key in ("rows", "bad_rows", "batches")]
        cells = [f"{value:,}" if isinstance(value, int) else value for value in shown]
        padding = numbers(facts, ()).get("padding")
        share = "" if padding is None else format_value("padding", padding)
        rows.append([name, *cells, share, str(hashes.get(name, ""))[:12]])
        columns = mapping(facts, "lengths")
        for column in columns:
            values = mapping(columns, column)
            cells = [values.get(key, "") for key in ("least", "median", "most_95", "most")]
            lengths.append([name, column, *cells])
    bad = [
        (f"{row.get('file')}:{row.get('line')}", row.get("reason"), row.get("text_excerpt"))
        for row in read_lines(run.path / "bad_rows.jsonl", SAMPLES)
    ]
    header = ("data", "rows", "bad rows", "batches", "padding", "content")
    of_lengths = ("data", "column", "least", "median", "95 % below", "most")
    of_bad = ("place", "reason", "text")
    return [
        *_table("Data", header, rows, (1, 2, 3, 4)),
        *_table("Tokens of a row", of_lengths, lengths, (2, 3, 4, 5), folded=True),
        *_table("Bad rows (all are in bad_rows.jsonl)", of_bad, bad, folded=True),
    ]


def difference(first: Record, second: Record, *, folded: bool = True) -> FactTable:
    """What differs between two runs."""
    rows = [(line.name, line.first, line.second, line.change) for line in compare(first, second)]
    title = f"Against {first.path} (A; this run is B)" if folded else "Differences"
    header = ("", "A", "B", "B - A")
    return FactTable(title, header, tuple(rows[:MOST_DIFFERENCES]), (3,), folded)


def _environment(run: Record) -> list[FactTable]:
    """Command, machine, versions, time and rates."""
    rows: list[Sequence[object]] = []
    command, starts = run.start.get("command"), run.info.get("starts")
    if isinstance(command, list):
        rows.append(["command", " ".join(map(str, command))])
    times = [numbers(mapping(line, "time"), ()) for line in run.values]
    if elapsed := [time["elapsed"] for time in times if "elapsed" in time]:
        rows.append(["time", format_duration(max(elapsed))])
    for name in dict.fromkeys(n for time in times for n in time if n.endswith("_per_second")):
        values = sorted(time[name] for time in times if name in time)
        rate, _, unit = format_rate(name, values[len(values) // 2]).partition(" ")
        rows.append([f"{unit}, median", rate])
    for group in ("hardware", "versions", "git"):
        for name, value in mapping(run.start, group).items():
            rows.append([f"git {name}" if group == "git" else name, written(value)])
    if isinstance(ranks := run.start.get("ranks"), int) and ranks > 1:
        rows.append(["ranks", ranks])
    if isinstance(starts, list) and len(starts) > 1:
        rows.append(["starts", f"{len(starts)} (the last is shown)"])
    return _table("Environment", ("", ""), rows, folded=True)
