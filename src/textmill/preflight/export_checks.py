"""Real rows to compare an export on: of a session, of a run folder, or of a file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textmill.config.planning.session import Session
from textmill.config.values.raw_values import is_null
from textmill.errors import DataError, UserError, worded
from textmill.exported.formats import ExportSettings, format_of
from textmill.inference.export.folder import ROWS, refuse_unsupported, writer_of
from textmill.inference.load import NeedsCodeError, saved_nodes, saved_plan
from textmill.preflight.load_data import load_data, use_by_task
from textmill.runtime.devices import Env
from textmill.runtime.jsonl_log import read_lines
from textmill.tasks.batches.row_batches import is_row, peek_first, rows_of
from textmill.tasks.task import Row, Task

LARGEST_ROWS = 64 << 20
"""Bytes of a file of rows to compare on; some hundred rows are enough."""

MOST_KEPT = 1 << 16
"""Rows of a run's predictions that are looked at."""

_NAMES = ("valid_data", "test_data", "train_data")
"""Where rows are looked for; any real rows show whether two programs compute the same."""


def rows_of_session(session: Session) -> tuple[str, Sequence[Row]] | None:
    """Rows of the data of a training, and its name; None where it has none with text to answer."""
    task = session.get("task")
    for name in _NAMES:
        data = session.get(name) if session.has(name) else None
        if data is not None and (rows := _rows_in(name, data, task)):
            return name, rows
    return None


def rows_of_run(folder: Path, task: Task) -> tuple[str, Sequence[Row]]:
    """Rows of a run's data where they can still be read, else those it kept; and where they are."""
    for name in _NAMES:
        if rows := _saved_rows(name, folder, task):
            return name, rows
    wanted = set(task.text.input_columns)
    for path in sorted((folder / "predictions").glob("*.jsonl"), reverse=True):
        if kept := [row for row in read_lines(path, MOST_KEPT) if wanted <= set(row)]:
            return f"predictions/{path.name}", kept
    raise UserError(
        f"The data of {folder} cannot be read here, and it kept no predictions, so the export "
        "cannot be compared with the run. Name a text file of rows with "
        f"{worded('--rows FILE', 'rows=FILE')}."
    )


def _saved_rows(name: str, folder: Path, task: Task) -> Sequence[Row]:
    """Rows of a run's data of that name; none where they are not at hand."""
    node = saved_nodes(folder, "settings").entries.get(name)
    if node is None or is_null(node):
        return []
    provided = {"env": Env.detect("cpu"), **task.text.ingredients}
    try:
        plan = saved_plan(folder, "settings", [name], provided=tuple(provided))
        data = plan.start(provided).get(name)
        load_data(name, data, use_by_task(task))
        return _rows_in(name, data, task)
    except (NeedsCodeError, UserError, OSError):  # made by code, moved, deleted, or changed
        return []


def _rows_in(name: str, data: Iterable[Any], task: Task) -> Sequence[Row]:
    """The rows of data; of ready batches the first rows, where their text can be read back."""
    wanted = set(task.text.input_columns)
    first, data = peek_first(data)
    if is_row(first, wanted):
        return rows_of(data, train=False)[0]
    batches, found = task.batches(data, train=name == "train_data", seed=0), list[Row]()
    for batch in batches:
        found += [row for row in batches.examples(batch) if wanted <= set(row)]
        if len(found) >= ROWS or not found:  # none: the batches are of a type of the recipe's own
            break
    return found


def read_rows(path: Path) -> Iterator[Any]:
    """The rows of a text file: lines that end in a newline, of ``.jsonl`` JSON objects.

    Only a newline ends a line, whatever else Unicode calls a line's end: JSON text has those as
    they are, and so has the text of a row.
    """
    try:
        if (size := path.stat().st_size) > LARGEST_ROWS:
            raise UserError(
                f"{path} has {size:,} bytes; some hundred rows are enough to compare on, and "
                f"{LARGEST_ROWS:,} bytes the most that is read."
            )
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UserError(f"{path} cannot be read: {why}.") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate((line.removesuffix("\r") for line in lines), start=1):
        if path.suffix != ".jsonl":
            yield line
        elif line:
            row = None
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
            if not isinstance(row, dict):
                raise DataError(f"{path}:{number}: wanted a JSON object, found {line[:60]!r}.")
            yield row


def refuse_exports(forms: Iterable[ExportSettings], session: Session | None = None) -> None:
    """Refuses formats of ``trainer.export`` that could not be written when a training is over.

    Without what was built of the recipe, only the packages are looked for.
    """
    for form in forms:
        format_of(form.format).refuse_missing(writes=True)
        if session is None or not session.has("task"):
            continue
        for own in session.tasks.values():
            refuse_exports([form], own)
        if session.tasks:
            continue
        task = session.get("task")
        refuse_unsupported(task, form.format)
        found = rows_of_session(session)
        if found is None:
            columns = " and ".join(map(repr, task.text.input_columns))
            raise UserError(
                f"trainer.export={form.folder}: an export is compared with the run on rows of "
                f"valid_data, test_data or train_data, but none of them has the text of {columns}. "
                "Leave trainer.export out, and export the run when it has ended, with a text file "
                f"of rows: textmill export RUN {form.words} --rows FILE"
            )
        writer_of(form.format).try_out(task, found[1])
