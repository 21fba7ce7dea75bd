"""``README.md`` of a run: a model card as hubs show it, Markdown after a head in YAML.

Whatever a person or a corpus wrote (labels, names of columns and files, settings) is shown as code,
in which Markdown and HTML mean nothing.
"""

import itertools
import json
import logging
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS, tensor_file
from textmill.config.recipe import experiments
from textmill.config.values.yaml_files import dump_yaml
from textmill.errors import CodeNotAllowedError, DataError, UserError, worded
from textmill.exported.manifest import is_export
from textmill.exported.row_predictor import RowPredictor
from textmill.metrics.tables import format_value
from textmill.run_folder.folder import refuse_no_run
from textmill.run_folder.record import Record, mapping
from textmill.runs.answering import load_answering
from textmill.runs.report.reporter import PRIVATE
from textmill.runs.report.summarize import summarize
from textmill.runs.report.summary import RunSummary
from textmill.runtime.files import read_all, write_atomic
from textmill.serving.card import model_card as served_card
from textmill.serving.examples import run_of
from textmill.tasks.registries import tasks

LOG = logging.getLogger("textmill")

FILE = "README.md"
OWN = "<!-- What stands below this line is yours: it is kept when the card is written again. -->"
"""Ends what is written anew."""
_IDENTIFIER = re.compile(r"[a-z][\w.+-]*", re.ASCII | re.IGNORECASE)
_LICENSE = re.compile(r"\A---\n(?:.*\n)*?license: ['\"]?([^\s'\"]+)['\"]?\n(?:.*\n)*?---\n")
LARGEST = 1 << 20
"""Bytes of a card that is written again."""
NOT_YET = "Nobody has said yet who should use this model, and for what it must not be used."
MOST_ROWS = 50
"""Rows of a table."""
MOST_VALUES = 20
LONGEST = 300
"""Characters of one foreign text."""
FEW = 20
"""Training rows below which a label is told to have few."""

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f`|\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_HARMLESS = re.compile(r"(?!.*www\.)[\w .,:;%()-]*", re.ASCII)
_FOLDERS = re.compile(r"(?<![\w:/])(?:~|\.{1,2})?/(?:[^/,\]\n]+/)*")
"""Folders before a file's name."""

TAGS: Mapping[str, str] = {
    "contrastive_classification": "text-classification",
    "document_classification": "text-classification",
    "document_regression": "text-classification",
    "extractive_summarization": "summarization",
    "intent_slots": "token-classification",
    "language_modeling": "text-generation",
    "masked_language_modeling": "fill-mask",
    "pair_classification": "text-classification",
    "pair_regression": "sentence-similarity",
    "query_document_ranking": "text-ranking",
    "question_answering": "question-answering",
    "summarization": "summarization",
    "text_embedding": "sentence-similarity",
    "translation": "translation",
    "tree_tagging": "token-classification",
    "word_tagging": "token-classification",
}
"""What Hugging Face's hub calls a task; it has no name for parsing."""
TEXT = "This is an example."
CELLS: tuple[Any, ...] = (TEXT, "This is a [MASK].", 0.5, [TEXT, "And another one."], [0.5], "0.5")
"""What a column may hold, tried in this order until the model answers."""
MOST_TRIES = 100
TITLES = {"Data": "Rows", "Settings": "Settings that differ from the experiment's"}
"""What tables of the report are called here."""


def write_card(
    folder: Path,
    target: Path | None = None,
    *,
    license: str | None = None,
    allow_code: bool = False,
) -> Path:
    """Writes the model card of a run, or of an export inside its run.

    What its author wrote below the line ``OWN`` of the file, and its license if no other is given,
    are kept.

    Args:
        folder: The folder of the run or of the export.
        target: The file to write; by default ``README.md`` in the folder.
        license: Its identifier, such as ``apache-2.0``.
        allow_code: As for :func:`textmill.runs.load_run.load`.

    Raises:
        UserError: The file is there already, and is no model card of textmill's; or the license is
            no identifier.
    """
    path, own = target or folder / FILE, f"\n\n{NOT_YET}\n"
    if path.exists():
        before = read_all(path, LARGEST, UserError, name=str(path)).decode("utf-8", "replace")
        _, line, own = before.partition(OWN)
        if not line:
            raise UserError(
                f"{path} is there already and is no card that textmill wrote. Move it away, or "
                "name another file: --output."
            )
        known = _LICENSE.match(before)
        license = license or (known[1] if known else None)
    made = model_card(folder, license=license, allow_code=allow_code)
    write_atomic(path, f"{made.partition(OWN)[0]}{OWN}{own}")
    return path


def model_card(folder: Path, *, license: str | None = None, allow_code: bool = False) -> str:
    """The model card of a run, or of an export inside its run; see :func:`write_card`."""
    if license is not None and not _IDENTIFIER.fullmatch(license):
        way = worded("--license", "license")
        raise UserError(f"{way}: wanted an identifier, as apache-2.0 or other; found {license!r}.")
    if not is_export(folder):
        refuse_no_run(folder)
    folder = folder.resolve()
    run = run_of(folder)
    if is_export(run):
        raise UserError(
            f"{folder} is an export outside its run: it records neither what was measured nor the "
            "data. Name the run that it was made of."
        )
    record = Record.read(run)
    card = _Card(folder, record, summarize(record, None, {}), license, allow_code=allow_code)
    return card.text()


class _Card:
    def __init__(
        self,
        folder: Path,
        record: Record,
        summary: RunSummary,
        license: str | None,
        *,
        allow_code: bool,
    ) -> None:
        self.folder, self.record, self.summary, self.license = folder, record, summary, license
        self.name = re.sub(r"[^\w.-]+", "-", folder.name).strip("-.") or "model"
        self.predictor: RowPredictor | None = None
        try:
            self.predictor = load_answering(folder, allow_code=allow_code, itself=True)
        except CodeNotAllowedError as error:
            LOG.warning("The card has no example of an answer: %s", error)
        task = getattr(self.predictor, "task", None)
        self.parameters = 0 if task is None else sum(p.numel() for p in task.module.parameters())
        text = getattr(self.predictor, "text", None) or getattr(task, "text", None)
        self.known = served_card(record.path, text)
        recorded = str(mapping(record.settings, "task").get("type", ""))
        self.task = (tasks.name_of(type(task)) if task is not None else None) or recorded

    def text(self) -> str:
        parts = [
            f"# {self.name}",
            *self._purpose(),
            *self._use(),
            *self._results(),
            *self._data(),
            *self._training(),
            *self._limits(),
            OWN,
            NOT_YET,
        ]
        return f"---\n{dump_yaml(self._head())}---\n\n" + "\n\n".join(parts) + "\n"

    # -- the head

    def _head(self) -> dict[str, Any]:
        kind = TAGS.get(self.task)
        begun = mapping(self.record.info, "pretrained")
        head: dict[str, Any] = {
            "license": self.license,
            "library_name": "textmill",
            "pipeline_tag": kind,
            "language": self._languages(),
            "base_model": [str(name) for name, commit in begun.items() if commit],
            "tags": ["textmill", self.task.replace("_", "-")],
        }
        values = self._values()
        if values:
            data = f"{self.summary.split}_data"
            name = mapping(self.known.get("data", {}), "files").get(data, data)
            head["metrics"] = [next(iter(values))]
            result = {
                "task": {"type": kind or "other", "name": self.task.replace("_", " ")},
                "dataset": {"type": "file", "name": name, "split": self.summary.split},
                "metrics": [
                    {"type": metric, "value": value, "name": self._named(metric)}
                    for metric, value in values.items()
                ],
            }
            head["model-index"] = [{"name": self.name, "results": [result]}]
        return {name: value for name, value in head.items() if value}

    def _languages(self) -> list[str]:
        tokenizer = mapping(self.record.settings, "tokenizer")
        names = [tokenizer.get(name) or () for name in ("source_langs", "target_langs")]
        return [str(name) for name in dict.fromkeys(itertools.chain(*names))]

    def _values(self) -> dict[str, float]:
        """What was measured on the summary's rows, the main value first; none of a single label."""
        prefix, main = f"{self.summary.split}.", self.summary.measured
        found = {} if main is None else {main.name: main.value}
        for name, value in self.record.kept_values().items():
            own = name.removeprefix(prefix)
            if own != name and "/" not in own and math.isfinite(value):
                found.setdefault(own, value)
        return dict(itertools.islice(found.items(), MOST_VALUES))

    def _named(self, metric: str) -> str:
        main, name = self.summary.measured, metric.replace("_", " ")
        if main is None or metric != main.name or main.low is None:
            return name
        low, high = (format_value(metric, bound) for bound in (main.low, main.high))
        return f"{name} (95 % interval {low} to {high})"

    # -- sections

    def _purpose(self) -> Iterator[str]:
        kind = type(getattr(self.predictor, "task", None))
        about = (
            (kind.__doc__ or "").strip().partition("\n\n")[0] if self.task in tasks.names() else ""
        )
        yield f"Task: {code(self.task)}. {' '.join(about.replace('``', '`').split())}".rstrip()
        columns, labels = self._columns(), self.known.get("labels", [])
        lines = [f"- reads: {', '.join(map(code, columns)) or 'rows of its own'}"]
        if labels:
            more = f" and {len(labels) - MOST_ROWS:,} more" * (len(labels) > MOST_ROWS)
            listed = ", ".join(map(code, labels[:MOST_ROWS]))
            lines.append(f"- answers with {len(labels):,} labels: {listed}{more}")
        size = self.record.path / CHECKPOINTS / self._checkpoint() / tensor_file("model")
        with suppress(OSError):
            count = f"{self.parameters:,} parameters, " if self.parameters else ""
            lines.append(f"- size: {count}{size.stat().st_size / 1e3:,.0f} kB")
        lines.append(f"- license: {code(self.license) if self.license else 'not stated'}")
        yield "\n".join(lines)

    def _columns(self) -> tuple[str, ...]:
        if self.predictor is not None:
            return self.predictor.columns
        data = mapping(mapping(self.record.info, "data_summary"), "train_data")
        return tuple(map(str, data.get("inputs") or ()))

    def _checkpoint(self) -> str:
        return str(getattr(self.predictor, "checkpoint", ""))

    def _use(self) -> Iterator[str]:
        yield "## Use"
        row = None if self.predictor is None else self._answered()
        if self.predictor is None or row is None:
            yield f"`textmill predict {self.name} FILE` answers a file of rows."
            return
        (cells, answer), exported = row, is_export(self.folder)
        given = next(iter(cells.values())) if [*map(type, cells.values())] == [str] else cells
        package, extra = ("textmill.exported", "exported") if exported else ("textmill", "train")
        install = f"`pip install 'textmill[{extra}]'`"
        yield f"`{self.name}` is the folder of this model, which {install} makes usable."
        load = f"predictor = {package}.load({self.name!r})"
        shown = f"print(predictor({given!r}).row())"
        yield _block("python", f"import {package}", "", load, shown)
        yield "It answers, in short:"
        yield _block("json", *json.dumps(_short(answer), indent=2).splitlines())
        yield "On the command line, for that row, and for the rows of a file:"
        names = {name: own for own, name in self.predictor.own_names.items()}
        line = (
            given
            if isinstance(given, str)
            else json.dumps({names.get(name, name): cell for name, cell in cells.items()})
        )
        form = "" if isinstance(given, str) else " --format jsonl"
        ask = f"echo {shlex.quote(line)} | textmill predict {self.name}{form} --json"
        yield _block("sh", ask, f"textmill predict {self.name} FILE --output answers.csv")

    def _answered(self) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """A row that was made up, with its answer; None if no such row is answered."""
        predictor = self.predictor
        assert predictor is not None, "the caller has looked"
        every = itertools.product(CELLS, repeat=len(predictor.columns))
        alike = ((cell,) * len(predictor.columns) for cell in CELLS)
        for cells in itertools.islice(itertools.chain(alike, every), MOST_TRIES):
            row = dict(zip(predictor.columns, cells, strict=True))
            with suppress(DataError, ValueError, TypeError):
                ((_, answer),) = predictor.answered([row])
                if "error" not in answer:
                    return row, answer
        return None

    def _results(self) -> Iterator[str]:
        values, main = self._values(), self.summary.measured
        if not values:
            return
        yield "## Results"
        rows = f"{main.rows:,} rows" if main is not None and main.rows else "the rows"
        data = self._data_name(self.summary.split)
        told = f"Measured on {rows} of {data}, by {self.summary.weights}."
        if main is not None and main.low is not None:
            told += f" Intervals are of 95 % ({main.method})."
        yield told
        table = [
            (plain(name.replace("_", " ")), self._shown(name, v)) for name, v in values.items()
        ]
        if main is not None:
            table[1:1] = [(code(name), format_value(main.name, v)) for name, v in main.rivals]
        yield _table(("", "value"), table)
        for figure in self.summary.figures:
            if figure.name == "calibration":
                yield f"{figure.note[:1].upper()}{figure.note[1:]}."
        if self.summary.labels:
            header = ("label", "F1", "precision", "recall", "rows", "training rows")
            yield _table(header, [
                (code(s.label), *(_share(v) for v in (s.f1, s.precision, s.recall)),
                 _count(s.rows), _count(s.trained))
                for s in self.summary.labels
            ])  # fmt: skip

    def _shown(self, name: str, value: float) -> str:
        main, shown = self.summary.measured, format_value(name, value)
        if main is None or name != main.name or main.low is None:
            return shown
        low, high = (format_value(name, bound) for bound in (main.low, main.high))
        return f"**{shown}** ({low} to {high})"

    def _data_name(self, split: str) -> str:
        name = f"{split}_data"
        file = mapping(self.known.get("data", {}), "files").get(name)
        return f"`{name}` ({code(file)})" if file else f"`{name}`"

    def _data(self) -> Iterator[str]:
        yield "## Data"
        lines = []
        for name in mapping(self.record.info, "data_summary"):
            file = mapping(self.known.get("data", {}), "files").get(name)
            lines.append(f"- {code(name)}: " + (code(file) if file else "rows without a file"))
        if lines:
            yield "\n".join(lines)
        yield from self._tables("Data", "Tokens of a row")
        counted = mapping(
            mapping(mapping(self.record.info, "data_summary"), "train_data"), "labels"
        )
        if counted and not self.summary.labels:
            yield _table(
                ("label", "training rows"), [(code(n), _count(c)) for n, c in counted.items()]
            )

    def _training(self) -> Iterator[str]:
        yield "## Training"
        recipe = str(self.record.info.get("recipe", ""))
        about = (
            "an experiment of textmill's"
            if recipe in experiments.names()
            else "a recipe of its own"
        )
        named = recipe if recipe in experiments.names() else Path(recipe).name
        facts = [f"- recipe: {code(named)}, {about}"]
        facts += [f"- {plain(title)}: {plain(value)}" for title, value in self.summary.facts]
        if day := self.known.get("trained"):
            facts.append(f"- trained until {day}")
        yield "\n".join(facts)
        yield from self._tables("Settings", "Environment", but=PRIVATE)

    def _tables(self, *titles: str, but: Sequence[str] = ()) -> Iterator[str]:
        for table in self.summary.tables:
            if table.title in titles:
                shown = [row for row in table.rows if row[0] not in but]
                yield f"### {TITLES.get(table.title, table.title)}"
                header = [plain(name) for name in table.header]
                yield _table(header, [[_fact(cell) for cell in row] for row in shown])

    def _limits(self) -> Iterator[str]:
        yield "## Intended use and limits"
        summary, lines = self.summary, []
        train = mapping(mapping(self.record.info, "data_summary"), "train_data")
        if isinstance(rows := train.get("rows"), int):
            lines.append(f"It has seen {rows:,} rows, and nothing else is known of other texts.")
        if mapping(train, "holdout"):
            lines.append(
                "The measured rows are of the same file as those of training: on texts from "
                "elsewhere it may be worse."
            )
        for column, of in mapping(train, "lengths").items():
            if column in self._columns() and isinstance(of, Mapping) and "most" in of:
                lines.append(
                    f"The longest {code(column)} in training has {_count(of['most'])} tokens."
                )
        few = [code(s.label) for s in summary.labels if s.trained is not None and s.trained < FEW]
        if few:
            lines.append(
                f"Labels with fewer than {FEW} rows in training: {', '.join(few[:MOST_ROWS])}."
            )
        weak = [s for s in summary.labels[:3] if s.f1 is not None and s.f1 < 1]
        if weak:
            lines.append(
                "Its weakest labels: "
                + ", ".join(f"{code(s.label)} (F1 {_share(s.f1)})" for s in weak)
                + "."
            )
        if summary.measured is None:
            lines.append("Nothing was measured.")
        yield "\n".join(f"- {line}" for line in lines)


# -- Markdown


def code(value: object) -> str:
    r"""A foreign text as code, on one line; what could end the code is shown by its number.

    Example:
        >>> code("a|b"), code("<b>"), code("")
        ('`a\\x7cb`', '`<b>`', '(empty)')
    """
    shown = " ".join(str(value).split())[:LONGEST]
    shown = _UNSEEN.sub(
        lambda found: ascii(found[0])[1:-1] if ord(found[0]) > 127 else f"\\x{ord(found[0]):02x}",
        shown,
    )
    return f"`{shown}`" if shown else "(empty)"


def plain(value: object) -> str:
    """A text as it is if it means nothing to Markdown, else as code.

    Example:
        >>> plain("28.0 %"), plain("*"), plain("www.example.org")
        ('28.0 %', '`*`', '`www.example.org`')
    """
    shown = str(value)
    return shown if _HARMLESS.fullmatch(shown) else code(shown)


def _fact(cell: object) -> str:
    """A cell of a table of facts, without the folders of files."""
    return plain(_FOLDERS.sub("", str(cell)))


def _share(value: float | None) -> str:
    return "-" if value is None else format_value("share", value)


def _count(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "-"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown, at most ``MOST_ROWS`` rows of it."""
    whole = [*rows]
    lines = [header, ["---"] * len(header), *whole[:MOST_ROWS]]
    left = len(whole) - MOST_ROWS
    told = f"\n\nand {left:,} more." if left > 0 else ""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + told


def _block(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _short(value: Any) -> Any:
    """Plain data with the first entries of long lists and mappings."""
    if isinstance(value, Mapping):
        return {name: _short(each) for name, each in itertools.islice(value.items(), 8)}
    return [_short(each) for each in value[:8]] if isinstance(value, list) else value
