"""``report.html``: one file that shows a run to a person, made from what its folder says."""

import dataclasses
import inspect
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.layout import CHECKPOINTS
from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.parameters import settings_of
from textmill.config.registry import for_ingredient
from textmill.config.values.raw_values import written
from textmill.config.values.typed_values import plain
from textmill.errors import CheckpointError, TextmillError
from textmill.metrics.calibration import HEADER, reliability
from textmill.metrics.reporters.html_page import (
    Curve,
    Markup,
    cards,
    details,
    figure,
    page,
    section,
    table,
    text,
)
from textmill.metrics.reporters.reporter import Progress, Reporter, Row, RunInfo
from textmill.metrics.tables import by_label, format_duration, format_rate, format_value
from textmill.run_folder.diff import compare, previous_run
from textmill.run_folder.folder import is_run_folder
from textmill.run_folder.record import Record, flat, mapping, numbers, state_of, used_step
from textmill.runs import registries
from textmill.runtime.devices import Experiment
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import read_lines

FILE = "report.html"
SHARE = 0.01
"""Share of a run's time that the report may take; the last report is written in any case."""
SAMPLES = 10
"""Answers that are shown, or up to twice as many: some screens of a phone."""
MOST_ROWS = 500
"""Rows of a table; a recipe has some dozen settings."""
MOST_ITEMS = 4
"""Items of a list that are shown, each on a line."""
MOST_PARTS = 12
"""Texts of one answer."""
MOST_CURVES = 24
"""Drawings; a run has some ten values."""


@final
@registries.reporters.register("html")
class Html(Component, Reporter):
    """Writes ``report.html`` in the run folder: at the end, and after evaluations if it is quick.

    The page is made from what the other reporters wrote (``metrics.jsonl``, ``predictions/``) and
    from the run's record, so it needs no state of its own: a resumed run writes the same page. The
    run is compared with the one of the same recipe before it.
    """

    class Config(BaseConfig):
        """What the page shows besides the run."""

        against: Path | None = setting(None, in_key=False)
        """The run to compare with; null: the last one beside it, if there is one."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder
        self._is_open, self._written = False, 0.0
        self._cost = 0.1  # seconds to write the page, until one was written

    @override
    def start(self, info: RunInfo) -> None:
        self._is_open, self._written = True, clock.monotonic()

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are read from ``metrics.jsonl`` when the page is written."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        """Writes the page after an evaluation: the other reporters have written its files."""
        if clock.monotonic() - self._written > self._cost / SHARE:
            kept = progress.get("step") if progress.get("kept") else None
            self._write({"state": "running", "kept_step": kept})

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._is_open = False
        self._write({"state": "finished", "result": dict(summary)})

    @override
    def close(self) -> None:
        """The page must not call a stopped run running; a failure to write it is no error."""
        if self._is_open:
            self._is_open = False
            with suppress(TextmillError, OSError):
                self._write({"state": "not finished"})

    def _write(self, facts: Mapping[str, Any]) -> None:
        if not is_run_folder(self._folder):
            return  # reporters that are used by themselves: there is no record to show
        began = clock.monotonic()
        write_report(self._folder, against=self.config.against, facts=facts)
        self._written = clock.monotonic()
        self._cost = self._written - began


def write_report(
    folder: Path,
    *,
    against: Path | None = None,
    facts: Mapping[str, Any] | None = None,
    target: Path | None = None,
) -> Path:
    """Writes the report of a run: HTML that needs no other file, no network and no script.

    By default it is compared with the last run beside it that can be read. The ``facts`` are not
    yet in ``run.json``: ``state``, ``result``, and ``kept_step``.
    """
    run, other = Record.read(folder), None
    if against is not None:
        other = Record.read(against)
    elif (before := previous_run(folder)) is not None:
        with suppress(TextmillError, OSError):  # a damaged neighbour is no reason to have no report
            other = Record.read(before)
    path = target or folder / FILE
    write_atomic(path, _page(run, other, facts or {}).encode("utf-8", "backslashreplace"))
    return path


def _page(run: Record, against: Record | None, facts: Mapping[str, Any]) -> str:
    state = str(facts.get("state", state_of(run.info)))
    recorded = run.info if run.info.get("finished") else {}
    result = mapping(facts, "result") or mapping(recorded, "result")
    kept = facts.get("kept_step") or used_step(result) or run.kept_step
    run = dataclasses.replace(run, kept_step=kept)
    reason = run.info.get("failed") or run.info.get("stopped") or ""
    return page(
        str(run.info.get("recipe", run.path.name)),
        state,
        section("Result", _result(run, result)),
        section("Curves", _curves(run.values)),
        section("Labels", *_labels(run)),
        section("Calibration", *_calibration(run)),
        section("Answers", *_answers(run)),
        section("Settings", *_settings(run)),
        section("Data", *_data(run)),
        *([] if against is None else [_against(against, run)]),
        section("Environment", *_environment(run)),
        section("Time", _time(run)),
        note=f"{run.path} · key {run.info.get('key', '')}{' · ' if reason else ''}{reason}",
    )


def _result(run: Record, result: Mapping[str, Any]) -> Markup:
    values = run.kept_values()
    facts: dict[str, object] = {}
    for line in run.values[-1:]:
        facts |= {name: format_value(name, line.get(name, "")) for name in ("step", "epoch")}
    best, test = mapping(result, "best"), mapping(result, "test")
    for name, value in numbers(best, ("step",)).items():
        facts[f"best {name}"] = format_value(name, value)
        facts["at step"] = format_value("step", best.get("step", ""))
    if test:
        shown = numbers(test, ()).items()
        facts |= {f"test {n}": format_value(n, value) for n, value in shown if "/" not in n}
    elif "valid.loss" in values and "loss" not in best:
        facts["valid loss"] = format_value("loss", values["valid.loss"])
    return cards(facts)


def _curves(lines: Iterable[Mapping[str, Any]]) -> Markup:
    """A drawing for each value of ``metrics.jsonl`` and for the speed, with a line per split."""
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {}
    speed: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        step, split = numbers(line, ()).get("step"), line.get("split")
        if step is None or not isinstance(split, str):
            continue
        for name, value in numbers(line).items():
            if split != "test" and "/" not in name:  # a test is one point, of the best weights
                drawn.setdefault(name, {}).setdefault(split, []).append((step, value))
        for name, value in numbers(mapping(line, "time"), ()).items():
            if name.endswith("_per_second") and split == "train":
                speed.setdefault(name, []).append((step, value))
    steps = [step for splits in drawn.values() for p in splits.values() for step, _ in p]
    last = max(steps, default=1)
    figures = [
        figure(
            name,
            [Curve(split, p, dots=split != "train") for split, p in splits.items()],
            last_step=last,
        )
        # The loss, then what evaluations measure, then what only training has.
        for name, splits in sorted(
            drawn.items(), key=lambda of: (of[0] != "loss", of[1].keys() <= {"train"})
        )
    ]
    figures += [
        figure(name.replace("_", " "), [Curve("train", points)], last_step=last)
        for name, points in speed.items()
    ]
    shown = "".join(drawing.html for drawing in figures[:MOST_CURVES])
    return Markup(f"<div class=curves>{shown}</div>" if shown else "")


def _labels(run: Record) -> list[Markup]:
    """A table of the values of each label: on the test data, else on the validation data."""
    values = run.kept_values()
    of_split = {
        split: by_label({n.removeprefix(f"{split}."): v for n, v in values.items()})
        for split in ("test", "valid")
    }
    split = "test" if of_split["test"] else "valid"
    rows = of_split[split]
    titles = list(dict.fromkeys(title for row in rows.values() for title in row))
    cells = [
        [label, *(format_value(title, row[title]) if title in row else "" for title in titles)]
        for label, row in rows.items()
    ]
    found = _table(["label", *titles], cells, numeric=range(1, len(titles) + 1))
    note = text(f"{split}_data, {_weights(run)}")
    return [Markup(f"<p class=note>{note}</p>"), *found] if found else []


def _calibration(run: Record) -> list[Markup]:
    """How far scores were from probabilities, before and after; and the thresholds."""
    found = None
    with suppress(CheckpointError):  # whoever answers with it says so
        found = Calibration.read(run.path / CHECKPOINTS)
    if found is None:
        return []
    facts: dict[str, object] = {"temperature": format_value("", found.temperature)}
    facts |= {"rows of valid_data": f"{found.rows:,}", "checkpoint": found.checkpoint}
    curves = [Curve("perfect", [(0.0, 0.0), (1.0, 1.0)])]
    rows = list[list[str]]()
    for when, error, bins in zip(("before", "after"), found.errors, found.tables, strict=True):
        facts[f"calibration error {when}"] = format_value("calibration_error", error)
        curves.append(Curve(when, [(score, right) for *_, score, right in bins], dots=True))
        rows += [[when, *line] for line in reliability(bins)]
    bounds = [[label, format_value("", bound)] for label, bound in (found.thresholds or {}).items()]
    folded = details("Reliability", *_table(["", *HEADER], rows, (2, 3, 4)))
    drawn = figure("accuracy", curves, over="score")
    return [
        cards(facts),
        Markup(f"<div class=curves>{drawn.html}{folded.html}</div>"),
        *_table(["label", f"answer above, for a share of {found.correct} correct"], bounds, (1,)),
    ]


def _weights(run: Record) -> str:
    kept = run.kept_step
    return "the weights of the last step" if kept is None else f"the weights of step {kept:,}"


def _table(
    header: Sequence[object], rows: Sequence[Sequence[object]], numeric: Sequence[int] = ()
) -> list[Markup]:
    return [table(header, rows[:MOST_ROWS], numeric=numeric)] if rows else []


def _answers(run: Record) -> list[Markup]:
    """Some answers of each split, spread over its rows; ``predictions/`` has all of them."""
    latest = {}
    for path in sorted((run.path / "predictions").glob("*-step-*.jsonl")):
        if path.is_file() and not path.is_symlink():
            latest[path.name.partition("-step-")[0]] = path
    found = []
    for split, path in latest.items():
        rows = [_answer(row) for row in _spread(read_lines(path))]
        found.append(details(f"{split}_data, {_weights(run)}", *rows))
    if found:  # the first is open: it is what a reader came for
        found[0] = Markup(found[0].html.replace("<details>", "<details open>", 1))
    return found


def _spread(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every row, or of many every second, fourth, eighth ... one, in bounded memory."""
    found: list[Mapping[str, Any]] = []
    stride = 1
    for number, row in enumerate(rows):
        if number % stride == 0:
            found.append(row)
        if len(found) > 2 * SAMPLES:
            found, stride = found[::2], 2 * stride
    return found


def _answer(row: Mapping[str, Any]) -> Markup:
    """The texts of a row below each other, its numbers in a line above them."""
    parts: list[tuple[str, object]] = []
    for name, value in row.items():
        if name == "references" and value == [row.get("target")]:
            continue  # the same text once more
        several = isinstance(value, list) and len(value) > MOST_ITEMS
        if several and all(isinstance(w, str) and w.split() == [w] for w in value):  # a text
            parts.append((name, " ".join(value)))
        elif isinstance(value, list):
            parts += [(name.removesuffix("s"), item) for item in value[:MOST_ITEMS]]
        elif isinstance(value, str):
            parts.append((name, value or Markup("<i>empty</i>")))
    given = numbers(row, ()).items()
    head = " · ".join(
        f"{name} {format_value(name, int(value) if value.is_integer() else value)}"
        for name, value in given
    )
    lines = "".join(
        f"<p{' class=answer' if name == 'prediction' else ''}><span>{text(name, most=40)}</span>"
        f"<bdi>{text(value)}</bdi></p>"
        for name, value in parts[:MOST_PARTS]
    )
    return Markup(f"<div class=sample><p class=head>{text(head, most=200)}</p>{lines}</div>")


def _default_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a run's nested settings, by their dotted names.

    Only registered components are looked up: no code of a run is imported.
    """
    found: dict[str, Any] = {}
    for name, node in settings.items():
        if isinstance(node, Mapping):
            found |= {f"{name}.{key}": value for key, value in _defaults_of(name, node).items()}
    return found


def _defaults_of(ingredient: str, node: Mapping[str, Any]) -> dict[str, Any]:
    from textmill.recipes import defaults  # it imports all that a recipe may name

    standard = getattr(defaults, ingredient, None)
    registry = for_ingredient(ingredient)
    found: dict[str, Any] = {}
    if inspect.isfunction(standard):
        given = inspect.signature(standard).parameters.values()
        return {p.name: plain(p.default) for p in given if p.default is not p.empty}
    kind: Any = type(standard)
    try:
        if registry is not None and "type" in node:
            kind = getattr(registry.get(str(node["type"])), "Config", None)
            name = registry.name_of(getattr(standard, "owner", None))
            found = {} if name is None else {"type": name}
    except (TextmillError, ImportError):
        return {}
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return found
    return found | flat({p.name: plain(p.default) for p in settings_of(kind) if not p.required})


def _settings(run: Record) -> list[Markup]:
    """Settings that differ from the defaults; then all of them, folded."""
    of_lightning = run.info.get("trained_by") == "lightning"  # its trainer is not textmill's
    defaults = {} if of_lightning else _default_settings(run.settings)
    now = flat(run.settings)
    chosen = [n for n in now if n in defaults and now[n] != defaults[n]]
    given = [n for n in now if n not in defaults and now[n] is not None and not of_lightning]
    rows = [[n, written(now[n]), written(defaults[n])] for n in chosen]
    rows += [[n, written(now[n]), "has none"] for n in given]
    every = [[n, written(value)] for n, value in list(now.items())[:MOST_ROWS]]
    marked = [i for i, (name, _) in enumerate(every) if name in set(chosen)]
    whole = table(["setting", "value"], every, marked=marked)
    folded = details(f"All {len(now):,} settings", whole)
    return [*_table(["setting", "here", "default"], rows), folded] if now else []


def _data(run: Record) -> list[Markup]:
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
    if not rows:
        return []
    header = ["data", "rows", "bad rows", "batches", "padding", "content"]
    of_lengths = ["tokens of a row", "column", "least", "median", "95 % below", "most"]
    found = [table(header, rows, numeric=(1, 2, 3, 4)), *_table(of_lengths, lengths, (2, 3, 4, 5))]
    bad = [
        [f"{row.get('file')}:{row.get('line')}", row.get("reason"), row.get("text_excerpt")]
        for row in read_lines(run.path / "bad_rows.jsonl", SAMPLES)
    ]
    if bad:
        title = "Bad rows (the first; all are in bad_rows.jsonl)"
        found.append(details(title, table(["place", "reason", "text"], bad)))
    return found


def _against(other: Record, run: Record) -> Markup:
    lines = compare(other, run)
    result = [[a.name, a.first, a.second, a.change] for a in lines if a.kind == "result"]
    rest = [[line.name, line.first, line.second] for line in lines if line.kind != "result"]
    same = Markup("<p>Settings, code, versions and data are the same.</p>")
    return section(
        "Against another run",
        Markup(f"<p class=note>A is {text(other.path)}, B is this run.</p>"),
        *(_table(["differs", "A", "B"], rest) or [same]),
        *_table(["result", "A", "B", "B - A"], result, (1, 2, 3)),
    )


def _environment(run: Record) -> list[Markup]:
    rows: list[Sequence[object]] = []
    command, starts = run.start.get("command"), run.info.get("starts")
    if isinstance(command, list):
        rows.append(["command", " ".join(map(str, command))])
    for group in ("hardware", "versions", "git"):
        for name, value in mapping(run.start, group).items():
            rows.append([f"git {name}" if group == "git" else name, written(value)])
    if isinstance(ranks := run.start.get("ranks"), int) and ranks > 1:
        rows.append(["ranks", ranks])
    if isinstance(starts, list) and len(starts) > 1:
        rows.append(["starts", f"{len(starts)} (the last is shown)"])
    return _table([], rows)


def _time(run: Record) -> Markup | str:
    times = [numbers(mapping(line, "time"), ()) for line in run.values]
    elapsed = [time["elapsed"] for time in times if "elapsed" in time]
    if not elapsed:
        return ""
    facts: dict[str, object] = {"elapsed": format_duration(max(elapsed))}
    rates: dict[str, list[float]] = {}
    for time in times:
        for name in time:
            if name.endswith("_per_second"):
                rates.setdefault(name, []).append(time[name])
    for name, values in rates.items():
        number, _, unit = format_rate(name, sorted(values)[len(values) // 2]).partition(" ")
        facts[f"{unit}, median"] = number
    return cards(facts)
