"""Writing an export: whole and compared, or not at all."""

import copy
import dataclasses
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from textmill.errors import UserError, worded
from textmill.exported.formats import FORMATS, ExportSettings, format_of
from textmill.exported.manifest import GRAPH, seal_folder
from textmill.exported.row_predictor import is_answerable
from textmill.inference.export.compare import Comparison
from textmill.inference.export.quality import measure_quality, spread
from textmill.inference.load import Predictor
from textmill.models.layers.units import without_unused
from textmill.models.lora import merged
from textmill.runtime.files import make_folder, new_folder
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.task import Row, Task

ROWS = 64
"""Rows that an export is compared on at most."""


class ExportWriter(ABC):
    """Writes a format of exports; each format's module has one as ``WRITER``.

    One of your own is named by its class, in ``trainer.export`` and by ``--format @module.Class``.
    """

    any_width = True
    """Whether each feed-forward block can have its own number of units: unused are left out."""

    def unsupported(self, task: Task) -> list[str]:
        """Why a task cannot be written, a line for each reason; empty if it can be.

        The weights are not read.
        """
        return []

    def try_out(self, task: Task, rows: Sequence[Row]) -> None:
        """Writes a task on some rows, if a class of it or the writer is not the library's.

        It thus fails before a training and not after it. The module does not change.
        """
        parts = [*task.module.modules()]
        homes = {type(part).__module__.partition(".")[0] for part in (self, task, *parts)}
        if homes <= {"textmill", "torch"}:
            return
        modes = [part.training for part in parts]
        try:
            with TemporaryDirectory() as folder:
                self.write(task, Path(folder), rows[:3])
        finally:
            for part, mode in zip(parts, modes, strict=True):
                part.training = mode

    @abstractmethod
    def write(self, task: Task, folder: Path, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Writes all but the manifest into an empty folder; the task's module has no adapters.

        ``rows`` are examples, one at least. Returns entries of the manifest, ``search`` and
        ``answers``.
        """

    def quantize(self, task: Task, folder: Path) -> None:
        """Rewrites the graph with weights of 8 bits."""
        raise NotImplementedError

    @abstractmethod
    def compare(
        self, predictor: Predictor, folder: Path, facts: Mapping[str, Any], rows: Sequence[Row]
    ) -> Comparison:
        """Asks the folder and the model the same rows; ``facts`` is what :meth:`write` gave."""


def writer_of(form: str | type[object]) -> ExportWriter:
    """The writer of a format, or one of the class that a person names."""
    if isinstance(form, str):
        writer: ExportWriter = importlib.import_module(f"textmill.inference.export.{form}").WRITER
        return writer
    name = format_of(form).name
    if not issubclass(form, ExportWriter):
        raise UserError(
            f"{name} is to export a run, but is not an ExportWriter. Make it a subclass of "
            "textmill.inference.export.folder.ExportWriter."
        )
    if inspect.isabstract(form):
        raise UserError(f"The exporter {name} lacks {' and '.join(form.__abstractmethods__)}.")
    return form()


def refuse_unsupported(task: Task, form: str | type[object]) -> None:
    """Refuses a task whose answers an export of this format could not give; all reasons at once."""
    problems = writer_of(form).unsupported(task)
    if not problems:
        return
    name = format_of(form).name
    ways = []
    if problems == ["task.decoding.sample is True"]:
        ways = [
            "train it with task.decoding.sample=false",
            "export it with the likeliest tokens in place of drawn ones (textmill export RUN "
            f"--format {name} --greedy)",
        ]
    elif any(each.startswith(("task.", "model.")) for each in problems):
        ways = ["train it without these"]
    others = [each for each in FORMATS if each != name and not writer_of(each).unsupported(task)]
    ways += [f"export it by --format {each}" for each in others]
    lines = "".join(f"\n  {each}" for each in problems) + "\n"
    way = ", or ".join([*ways, "use the run itself: textmill predict RUN."])
    raise UserError(
        f"A {type(task).__name__} cannot be exported to {name}:{lines}{way[0].upper()}{way[1:]}"
    )


def own_answers(task: Task) -> list[str]:
    """Methods of a task's subclass that exports do not run, a line for each."""
    kind: Any = type(task)
    if isinstance(task, LanguageModeling | MaskedLanguageModeling):
        return own_methods(kind, "answer_row", "check", "predict")
    assert isinstance(task, Seq2Seq), "others are refused"
    problems = own_methods(kind, "answer_row", "check", "complete")
    if own_methods(kind, "generate", "predict"):
        problems.append(f"{kind.__name__} answers by code of its own")
    return problems


def own_methods(kind: type, *names: str) -> list[str]:
    """Those of these methods that are not the library's, a line for each."""
    own = [n for n in names if not getattr(kind, n).__module__.startswith("textmill.")]
    return [f"{kind.__name__} has a method of its own, {name}" for name in own]


def write_export(
    predictor: Predictor,
    settings: str | ExportSettings,
    out: Path,
    *,
    rows: Sequence[Row],
    where: str,
    source: Mapping[str, Any],
    metric: str = "loss",
    replace: bool = False,
) -> Comparison:
    """Writes one folder: graph, text processor, and ``export.json`` that lists and describes them.

    It appears when it is whole and was compared, on :data:`ROWS` of the real ``rows`` that the
    model can answer, evenly spread, which come from ``where``; ``metric`` decides whether a
    quantized one is good enough. ``source`` is what the manifest says of the run.

    Raises:
        UserError: The model cannot be exported, the folder is there, or no row can be compared on.
        MissingExtraError: A package is missing.
        ExportError: The export differs by more than is allowed; nothing was written.
    """
    settings = ExportSettings.of(settings)
    form, task = format_of(settings.format), copy.copy(predictor.task)
    form.refuse_missing(writes=True)
    refuse_unsupported(task, settings.format)
    if not replace:
        refuse_existing(out)
    chosen = _compared_on(predictor, rows, where)
    make_folder(out.parent)
    writer = writer_of(settings.format)
    with new_folder(out, replace=replace) as folder:
        task.module = merged(task.module)
        if writer.any_width:
            task.module = without_unused(task.module)
        facts = {"graph": form.name, **writer.write(task, folder, chosen)}
        before = _size(folder / GRAPH)
        if settings.quantize is not None:
            writer.quantize(task, folder)
        found = writer.compare(predictor, folder, facts, chosen)
        found = dataclasses.replace(found, where=where)
        if settings.quantize is not None:
            quality = measure_quality(
                predictor,
                form.open(folder, facts, device="cpu"),
                rows,
                where=where,
                settings=settings,
                metric=metric,
                size=_size(folder / GRAPH) / before,
            )
            found = dataclasses.replace(found, quality=quality)
        found.check()
        facts |= {
            "source": {**source, "checkpoint": predictor.checkpoint},
            "compared": found.to_json(),
            "versions": {each: version(each) for each in ("textmill", "torch", *form.writes)},
        }
        seal_folder(folder, facts)
    return found


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0


def refuse_existing(out: Path) -> None:
    """Refuses a folder to write that is there already."""
    if out.exists():
        way = worded("--out", "out")
        raise UserError(f"{out} is there already. Delete it, or name another folder with {way}.")


def _compared_on(predictor: Predictor, rows: Sequence[Row], where: str) -> Sequence[Row]:
    """Rows to compare the export with the model on.

    Each is encoded to know whether it can be answered, so not all of a large file's.
    """

    def answerable(rows: Sequence[Row]) -> list[Row]:
        """Those that can be answered, as they are or as a row of data is asked."""
        found = []
        for row in rows:
            texts = all(isinstance(row.get(name), str) for name in predictor.columns)
            ways = [row, predictor.task.asked(row)] if texts else [row]
            found += [way for way in ways if is_answerable(predictor, way)][:1]
        return found

    some = answerable(spread(rows, 16 * ROWS)) or answerable(rows)
    if not some:
        raise UserError(
            f"None of the {len(rows):,} rows of {where} can be answered, so the export cannot be "
            "compared with the model. Name a text file of rows with "
            f"{worded('--rows FILE', 'rows=FILE')}."
        )
    return spread(some, ROWS)
