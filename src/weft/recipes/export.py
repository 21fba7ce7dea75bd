"""Exporting a run: by command, or as the last thing a training does."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.config.nodes import is_null
from weft.config.session import Session
from weft.errors import DataError, UserError
from weft.exported.formats import refuse_missing
from weft.inference.export.compare import Comparison
from weft.inference.export.expressible import refuse_inexpressible
from weft.inference.export.folder import write_export
from weft.inference.load import NeedsCodeError, saved_nodes, saved_plan
from weft.inference.predictor import Predictor
from weft.recipes.reading import read_data
from weft.recipes.reload import load
from weft.recipes.run_folder import RunFolder
from weft.runtime.devices import Env
from weft.tasks.row_batches import is_row, look, rows_of
from weft.tasks.task import Row

__all__ = ["Exported", "export", "export_trained", "refuse_exports"]

LARGEST_ROWS = 64 << 20
"""Bytes of a file of rows to compare on; some hundred rows are enough."""


@dataclass(frozen=True)
class Exported:
    """An export that was written."""

    folder: Path
    """Where it is; :func:`weft.exported.loading.load` takes it."""
    comparison: Comparison
    """How it differs from the model."""


def export(
    run: str | Path,
    name: str,
    *,
    out: str | Path | None = None,
    rows: str | Path | None = None,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
) -> Exported:
    """Exports a trained run, and compares the export with it.

    Args:
        run: The run folder.
        name: The format: ``ctranslate2``.
        out: The folder to write; by default ``export/<format>`` in the run folder.
        rows: A text file of rows to compare on, one a line (``.jsonl``: JSON objects). By default
            the rows of the run's ``valid_data`` where they can be read, else those that the run
            kept in ``predictions/``.
        checkpoint: As for :func:`weft.recipes.reload.load`.
        device: Where the run computes in the comparison.
        allow_code: As for :func:`weft.recipes.reload.load`.

    Raises:
        UserError: The format, the model or the rows do not allow it.
        ExportError: The export differs from the run by more than is allowed.

    Example:
        >>> made = export("runs/translation-demo/1f0c5a2b7d9e", "ctranslate2")  # doctest: +SKIP
        >>> made.comparison.same, made.comparison.rows  # doctest: +SKIP
        (64, 64)
    """
    refuse_missing(name)
    folder = Path(run)
    target = folder / "export" / name if out is None else Path(out)
    if target.exists():
        raise UserError(f"{target} is there already. Delete it, or name another folder with --out.")
    given = None if rows is None else list(_read_rows(Path(rows)))  # before a model is loaded
    predictor = load(folder, checkpoint=checkpoint, device=device, allow_code=allow_code)
    if given is None:
        where, found = _rows_of_run(folder, predictor)
    else:
        where, found = str(rows), [predictor.row(row) for row in given]
    source = _source(folder)
    made = write_export(predictor, name, target, rows=found, where=where, source=source)
    return Exported(target, made)


def refuse_exports(names: Iterable[str], session: Session | None = None) -> None:
    """Refuses formats that could not be written when a training is over.

    Args:
        names: ``trainer.export``.
        session: What was built of the recipe; None: only the packages are looked for.

    Raises:
        UserError: A format is unknown, lacks its package, or has no word for the model.
    """
    for name in names:
        refuse_missing(name)
        if session is not None and session.has("task"):
            refuse_inexpressible(session.get("task"), name)


def export_trained(folder: Path, names: Iterable[str], session: Session) -> None:
    """Exports the run that has just been trained, each format to ``export/<format>`` in it."""
    for name in names:
        task = session.get("task")
        predictor = load(folder, device=str(task.device), allow_code=True)
        data = session.get("valid_data") if session.has("valid_data") else None
        rows = None if data is None else _rows_in(data, predictor)
        where, found = ("valid_data", rows) if rows else _rows_of_run(folder, predictor)
        target = folder / "export" / name
        source = _source(folder)
        write_export(predictor, name, target, rows=found, where=where, source=source, replace=True)


def _source(folder: Path) -> dict[str, Any]:
    info = RunFolder(folder).info
    return {"recipe": str(info.get("recipe", "")), "key": str(info.get("key", ""))}


def _rows_of_run(folder: Path, predictor: Predictor) -> tuple[str, Sequence[Row]]:
    """Rows that a run was evaluated on, and where they are."""
    if rows := _valid_rows(folder, predictor):
        return "valid_data", rows
    for path in sorted((folder / "predictions").glob("*.jsonl"), reverse=True):
        if kept := [row for row in _read_rows(path) if set(predictor.columns) <= set(row)]:
            return f"predictions/{path.name}", kept
    raise UserError(
        f"The valid_data of {folder} cannot be read here, and it kept no predictions, so the "
        "export cannot be compared with the run. Name a text file of rows with --rows FILE."
    )


def _valid_rows(folder: Path, predictor: Predictor) -> Sequence[Row] | None:
    """The rows of the run's ``valid_data``; None where they are not at hand."""
    node = saved_nodes(folder, "settings").entries.get("valid_data")
    if node is None or is_null(node):
        return None
    provided = {"env": Env.detect("cpu"), **predictor.task.text.ingredients}
    try:
        plan = saved_plan(folder, "settings", ["valid_data"], provided=tuple(provided))
        data = plan.start(provided).get("valid_data")
        read_data("valid_data", data)
        return _rows_in(data, predictor)
    except (NeedsCodeError, UserError, OSError):  # made by code, moved, deleted, or changed
        return None


def _rows_in(data: Any, predictor: Predictor) -> Sequence[Row] | None:
    """The rows of data; None for ready batches."""
    first, data = look(data)
    return rows_of(data, train=False)[0] if is_row(first, predictor.columns) else None


def _read_rows(path: Path) -> Iterator[Any]:
    try:
        if (size := path.stat().st_size) > LARGEST_ROWS:
            raise UserError(
                f"{path} has {size:,} bytes; some hundred rows are enough to compare on, and "
                f"{LARGEST_ROWS:,} bytes the most that is read."
            )
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UserError(f"{path} cannot be read: {why}.") from None
    for number, line in enumerate(lines, start=1):
        if path.suffix != ".jsonl":
            yield line
        elif line:
            yield _json_row(line, f"{path}:{number}")


def _json_row(line: str, place: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise DataError(f"{place}: wanted a JSON object, found {line[:60]!r}.")
    return row
