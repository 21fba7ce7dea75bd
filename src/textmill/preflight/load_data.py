"""Reading the data of a recipe before anything else costs time: every row of every file."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.code_names import code_in
from textmill.config.ingredient import DATA, BuiltFrom
from textmill.config.planning.session import Session
from textmill.config.planning.wiring import IngredientNode
from textmill.config.values.typed_values import plain
from textmill.data.bad_rows import KEPT, BadRow, BadRowsError, RowCount, write_bad_rows
from textmill.data.data_files import MissingFileError, first_file
from textmill.data.first_row import first_cells
from textmill.data.formats.header import columns_setting, proposed
from textmill.data.look.guess import seen_words
from textmill.data.text_pairs import TextPairs, refuse_other_header
from textmill.errors import DataError, UserError
from textmill.tasks.rows_task import RowsTask
from textmill.tasks.task import Task
from textmill.text.cells import Fingerprinted, RowCheck, whole_column
from textmill.text.features.labels import FittedLabels

FIXED = ("source", "target", "references")
"""Columns that tasks read under these names, which no setting has."""


@dataclass(frozen=True)
class RowUse:
    """What is known before any row is read about the columns that a task reads."""

    columns: Collection[str] | None = None
    """The columns that may be read: all others may be empty. None: any may be."""
    check: RowCheck | None = None
    """What else a row must pass."""
    may_lack: Collection[str] = ()
    """Columns that a row may have empty, as it has several labels or none."""


def load_data(
    name: str, data: object, use: RowUse = RowUse(), node: IngredientNode | None = None
) -> RowCount | None:
    """Reads data that accounts for its rows; other data is left as it is.

    Returns:
        Good and bad rows, or None.
    """
    if isinstance(data, TextPairs) and hasattr(data.config, "columns"):  # plain text has one
        _refuse_other_columns(name, data, use, node)
    if isinstance(data, TextPairs):
        if use.columns is not None:
            data.require((*use.columns, *FIXED), may_lack=use.may_lack)
        if use.check is not None:
            data.check_rows(use.check)
    return data.read(ingredient=name).count if isinstance(data, TextPairs) else None


def use_by_plan(session: Session) -> RowUse:
    """What a planned task reads of rows.

    Its columns are every text in the settings of what is no data. They are not known if there is no
    task, or if a part of the recipe's own may read any column.
    """
    others = [node for name, node in session.nodes.items() if name not in DATA]
    parts = [node.config if node.is_config else node.value for node in others]
    code = code_in([part for part in parts if not isinstance(part, BuiltFrom)])
    ours = all(str(getattr(part, "__module__", "")).startswith("textmill.") for part in code)
    task = session.nodes.get("task")
    known = {text for node in others for text in _texts(plain(node.settings))}
    several = {
        config.column
        for config in (node.config for node in others)
        if isinstance(config, FittedLabels.Config) and config.multiple
    }
    labels = session.nodes.get("labels")
    check = _check_of(task and task.config, labels and labels.config)
    return RowUse(known if task and ours else None, check, several)


def use_by_task(task: Task) -> RowUse:
    """What a built task reads of rows; one of the recipe's own may read any column."""
    ours = type(task).__module__.startswith("textmill.")
    check = _check_of(getattr(task, "config", None), task.text.ingredients.get("labels"))
    return RowUse(task.text.columns if ours else None, check)


def _check_of(config: object, labels: object) -> RowCheck | None:
    if not isinstance(config, RowsTask.Config):
        return None
    return config.row_check(labels if hasattr(labels, "column") else None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from {value, whole_column(value)}
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def fingerprint_of(data: object) -> str | None:
    """What tells data from other data: 64 hexadecimal digits, where the data knows them."""
    return data.fingerprint() if isinstance(data, Fingerprinted) else None


def all_data(session: Session) -> dict[str, tuple[Session, str]]:
    """The data of a run, of several tasks as ``task.train_data``: its session, its name there."""
    return {
        f"{task}.{name}".lstrip("."): (own, name)
        for task, own in session.each_task.items()
        for name in DATA
        if own.has(name)
    }


def read_one(session: Session, name: str) -> RowCount | None:
    """Builds and reads one of the data of a task; returns good and bad rows, or None."""
    data = session.get(name)
    count = load_data(name, data, use_by_plan(session), session.nodes.get(name))
    first = None
    with suppress(UserError):  # what is wrong with train_data is reported as its own
        first = session.get(DATA[0]) if session.has(DATA[0]) else None
    refuse_other_header(name, data, first)
    return count


def read_all(session: Session, folder: Path | None) -> None:
    """Builds and reads all data of a run; ``bad_rows.jsonl`` lists the bad rows of all of it.

    Without a folder nothing is written. What is wrong with several data is raised at once: a person
    who has a file with a header, and no second one, hears of both.
    """
    errors: dict[str, tuple[UserError, list[str]]] = {}  # by its text: several may be of one file
    bad: list[BadRow] = []
    for name, (holder, inner) in all_data(session).items():
        try:
            read_one(holder, inner)
            data = holder.get(inner)
            bad += data.bad_rows if isinstance(data, TextPairs) else ()
        except UserError as error:
            errors.setdefault(str(error), (error, []))[1].append(name)
            bad += error.bad_rows if isinstance(error, BadRowsError) else ()
    path = None if folder is None else folder / "bad_rows.jsonl"
    if path is not None and bad:
        write_bad_rows(path, bad)
    elif path is not None:
        path.unlink(missing_ok=True)  # of a start before the data was corrected
    if not errors:
        return
    for text, (each, names) in errors.items():
        inner = names[0].rpartition(".")[2]
        notes, own = getattr(each, "__notes__", []), f"in the ingredient '{inner}'"
        several = len(errors) > 1 or len(names) > 1 or bool(session.tasks)
        is_own = several or any(note.startswith(own) for note in notes)
        notes[:] = [note for note in notes if note != own]
        head = f"{', '.join(names)}: " if is_own else ""
        holder = all_data(session)[names[0]][0]
        each.args = (f"{head}{text}{what_helps(inner, each, holder)}",)
    first, *more = (each for each, _ in errors.values())
    if not (more or isinstance(first, DataError)):
        raise first
    which = "All" if len(bad) < KEPT else "The first"
    where = f"\n{which} bad rows are in {path}." if bad and path else ""
    raise DataError("\n".join(map(str, (first, *more))) + where)


def what_helps(name: str, error: Exception, session: Session) -> str:
    """What else there is than a missing file of ``valid_data``; all settings of a file misread."""
    node = session.nodes.get(DATA[0])
    config: Any = node and node.config
    if not hasattr(config, "holdout"):
        return ""
    if name == DATA[1] and isinstance(error, MissingFileError):
        return f" Name one ({name}.path=...), or leave it rows of {DATA[0]}: {DATA[0]}.holdout=0.1."
    is_few = isinstance(error, BadRowsError) and 2 * error.count.bad <= error.count.total
    if name != DATA[0] or is_few or not isinstance(error, DataError):
        return ""
    file = first_file(config.path)
    if not (seen := seen_words(file, [*getattr(config, "columns", ())], f"{name}.")):
        return ""
    held = "" if config.holdout else f" {name}.holdout=0.1"
    written = f"Or have a recipe written that says so: textmill new {shlex.quote(str(file))}"
    return f"\nAs the file looks: {seen}{held}\n{written}"


def _refuse_other_columns(
    name: str, data: TextPairs, use: RowUse, node: IngredientNode | None
) -> None:
    """Refuses columns without one that the task reads, where they are those of a file."""
    own = node.ingredient.value if node is not None else None
    known = own.columns if isinstance(own, TextPairs.Config) else type(data.config).columns
    wanted = [column for column in known if column in (use.columns or ())]
    if all(column in data.config.columns for column in wanted):
        return
    cells = first_cells(data.files[0], data.layout) if data.layout.has_header else None
    said = data.config.columns
    places = said if isinstance(said, Mapping) else {column: column for column in said}
    guess = proposed(wanted, cells or ())
    every = {column: places.get(column, guess[column]) for column in wanted}
    owner = DATA[0] if data.is_held_out else name
    has = f" The file has {', '.join(map(repr, cells))}." if cells else ""
    raise DataError(
        f"columns: the task reads {' and '.join(wanted)}; found {', '.join(said)}.{has} Say where "
        f"each is, as {columns_setting(every, f'{owner}.')}"
    )
