"""Exporting a run: by command, or as the last thing a training does."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textmill.checkpoint.calibration import deciding_digests
from textmill.checkpoint.layout import CHECKPOINTS
from textmill.config.code_names import import_named
from textmill.config.planning.session import Session
from textmill.config.values.raw_values import Entries, untyped
from textmill.errors import CodeNotAllowedError, UserError, worded
from textmill.exported.formats import FORMATS, ExportSettings, format_of
from textmill.exported.manifest import ExportError, read
from textmill.inference.export.compare import Comparison
from textmill.inference.export.folder import refuse_existing, write_export
from textmill.inference.load import Predictor, saved_nodes
from textmill.preflight.export_checks import read_rows, rows_of_run, rows_of_session
from textmill.recipes.planning import exports_of, plan_recipe
from textmill.run_folder.folder import WRITTEN_FOLDERS, RunFolder
from textmill.run_folder.record import mapping
from textmill.runs.load_run import load, recorded_layout
from textmill.runtime.disk import refuse_outward_links
from textmill.runtime.files import clean_leftovers
from textmill.tasks.registries import tasks
from textmill.tasks.task import Row

LOG = logging.getLogger("textmill")


@dataclass(frozen=True)
class Exported:
    """An export that was written."""

    folder: Path
    """Its folder; :func:`textmill.exported.formats.load` takes all but ``huggingface``."""
    comparison: Comparison
    """How it differs from the model."""


def export(
    run: str | Path,
    form: str | type[object] | ExportSettings | None = None,
    *,
    out: str | Path | None = None,
    rows: str | Path | None = None,
    greedy: bool = False,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
) -> Exported:
    """Exports a trained run, and compares the export with it.

    Args:
        run: The run folder.
        form: The format: ``onnx``, ``ctranslate2`` or ``huggingface``, or an
            :class:`~textmill.exported.formats.ExportSettings`; or an
            :class:`~textmill.inference.export.folder.ExportWriter` of your own, the class or its
            ``@module.Class``. By default what the run's ``trainer.export`` names.
        out: The folder to write; by default ``export/<format>`` in the run folder.
        rows: A text file of rows to compare on, one a line (``.jsonl``: JSON objects). By default
            the rows of the run's ``valid_data``, ``test_data`` or ``train_data`` if they can be
            read, else those that the run kept in ``predictions/``.
        greedy: Whether the likeliest tokens are taken where the run draws them.
        checkpoint: As for :func:`textmill.runs.load_run.load`.
        device: Where the run computes in the comparison.
        allow_code: As for :func:`textmill.runs.load_run.load`.

    Raises:
        ExportError: The export differs from the run, or is worse than it, by more than is allowed.
    """
    folder = Path(run)
    form = _asked(folder, form, allow_code=allow_code)
    format_of(form.format).refuse_missing(writes=True)
    target = folder / "export" / form.folder if out is None else Path(out)
    if out is None:
        refuse_outward_links(folder, WRITTEN_FOLDERS)
    clean_leftovers(target.parent, of=target.name)
    refuse_existing(target)
    typed = None if rows is None else list(read_rows(Path(rows)))  # before a model is loaded
    predictor = load(folder, checkpoint=checkpoint, device=device, allow_code=allow_code)
    if greedy:
        task: Any = predictor.task
        decoding = getattr(task.config, "decoding", None)
        if decoding is None or not decoding.sample:
            raise UserError(
                f"The run's answers are not drawn: leave {worded('--greedy', 'greedy')} out."
            )
        task.config = replace(task.config, decoding=decoding.likeliest())
    if typed is None:
        where, compared = rows_of_run(folder, predictor.task)
    else:
        where, compared = str(rows), [predictor.row(row) for row in typed]
    return Exported(target, _written(folder, predictor, form, target, where, compared))


def _asked(folder: Path, given: Any, *, allow_code: bool) -> ExportSettings:
    """The format that is asked for, else the one that the run's ``trainer.export`` names.

    The caller's word ``@module.Class`` is imported; code that the run names is not, unasked.
    """
    if isinstance(given, str) and given.startswith("@") and "." in given:
        given = import_named(given)
    if given is not None and not (isinstance(given, str) and given.startswith("@")):
        return ExportSettings.of(given)
    trainer = saved_nodes(folder, "settings").entries.get("trainer")
    node = trainer.entries.get("export") if isinstance(trainer, Entries) else None
    found = [ExportSettings.of(each) for each in (untyped(node) if node else None) or ()]
    if any(str(form.format).startswith("@") for form in found):
        if not allow_code:
            names = ", ".join(str(form.format) for form in found)
            raise CodeNotAllowedError(
                f"{folder} is to be exported by {names}, its recipe's own code, which is not run "
                "unasked. Name the exporter yourself, --format @module.Class; or, if you trust the "
                "run, add --allow-code (allow_code=True)."
            )
        found = [*exports_of(plan_recipe(folder, targets=["trainer"], allow_code=True).plan)]
    found = [form for form in found if given in (None, form.name)]
    if len(found) != 1:
        names = ", ".join(form.name for form in found) or "none"
        raise UserError(
            f"Which format? {worded('--format', 'form')} says it: {', '.join(FORMATS)}, or an "
            f"exporter of your own, @module.Class. trainer.export of {folder} has {names}."
        )
    return found[0]


def _written(
    folder: Path,
    predictor: Predictor,
    form: ExportSettings,
    target: Path,
    where: str,
    rows: Sequence[Row],
    *,
    replace: bool = False,
) -> Comparison:
    """Writes an export of a run, with what its manifest says of the run."""
    info, data = RunFolder(folder).info, recorded_layout(predictor, folder)
    source: dict[str, Any] = {name: str(info.get(name, "")) for name in ("recipe", "key")}
    source["task"] = tasks.name_of(type(predictor.task)) or type(predictor.task).__name__
    if form.folder == "onnx":  # it may answer for the run
        source |= deciding_digests(folder / CHECKPOINTS / predictor.checkpoint)
    if data:
        source["data"] = {**data, "path": Path(data["path"]).name}
    metric = str(mapping(info, "selected_by").get("metric", "loss"))
    return write_export(
        predictor,
        form,
        target,
        rows=rows,
        where=where,
        source=source,
        metric=metric,
        replace=replace,
    )


def tell_older_exports(folder: Path, *, but: Iterable[str] = ()) -> None:
    """Prints which exports in a run folder stay as they are when the run goes on."""
    for target in sorted((folder / "export").iterdir()):
        if target.name in but:
            continue
        try:
            made = read(target)
        except ExportError:  # not an export, or one that cannot be used anyhow
            continue
        LOG.info(
            "%s is an export of %s and stays that when the run goes on. To have one of what it "
            "becomes, delete that folder, then: textmill export %s --format %s%s",
            target,
            made.source.get("checkpoint"),
            folder,
            made.graph,
            " --quantize int8" if "quality" in made.compared else "",
        )


def export_trained(
    folder: Path, forms: Iterable[ExportSettings], session: Session
) -> dict[str, Any]:
    """Exports the run that has just been trained; returns each comparison by its folder's name."""
    found = {}
    for form in forms:
        try:
            predictor = load(folder, device=str(session.get("task").device), allow_code=True)
            where, rows = rows_of_session(session) or rows_of_run(folder, predictor.task)
            target = folder / "export" / form.folder
            made = _written(folder, predictor, form, target, where, rows, replace=True)
        except (ExportError, UserError) as error:
            raise ExportError(
                f"{error}\nThe training of {folder} itself is over, and its checkpoints are kept. "
                "To compare an export of it on other rows: "
                f"textmill export {folder} {form.words} --rows FILE"
            ) from error
        LOG.info("Exported to %s. %s", target, made.sentence)
        found[form.folder] = made.to_json()
    return found
