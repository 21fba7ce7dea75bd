"""Reading the data of a recipe before anything else costs time: every row of every file."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.ingredient import BuiltFrom
from textmill.config.planning.session import Session
from textmill.config.sources.own_code import code_in
from textmill.config.values.typed_values import plain
from textmill.data.bad_rows import (
    KEPT,
    AccountedRows,
    BadRow,
    BadRowsError,
    RowCount,
    write_bad_rows,
)
from textmill.data.first_row import is_header
from textmill.data.huggingface import HuggingFacePairs
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, UserError
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Task
from textmill.text.cells import Fingerprinted, RowCheck
from textmill.text.features.labels import FittedLabels

__all__ = [
    "DATA",
    "RowUse",
    "fingerprint_of",
    "load_data",
    "read_all",
    "refuse_other_header",
    "use_by_plan",
    "use_by_task",
]

DATA = ("train_data", "valid_data", "test_data")


_LACKS = "there is no file"
FIXED = ("source", "target", "references")
"""Columns that tasks read under these names, which no setting has."""


@dataclass(frozen=True)
class RowUse:
    """What a task reads of rows, as far as that is known before they are read."""

    columns: Collection[str] | None = None
    """The columns that may be read: all others may be empty. None: any may be."""
    check: RowCheck | None = None
    """What a row must have beside them."""
    may_lack: Collection[str] = ()
    """Columns that a row may have empty, as it has several labels or none."""


def load_data(name: str, data: object, use: RowUse = RowUse()) -> RowCount | None:
    """Reads data that accounts for its rows; other data is left as it is.

    Returns:
        Good and bad rows, or None.

    Raises:
        BadRowsError: There are more bad rows than are allowed.
    """
    if use.columns is not None and isinstance(data, TextPairs):
        data.require((*use.columns, *FIXED), may_lack=use.may_lack)
    if use.check is not None and isinstance(data, TextPairs | HuggingFacePairs):
        data.check_rows(use.check)
    return data.read(ingredient=name).count if isinstance(data, AccountedRows) else None


def use_by_plan(session: Session) -> RowUse:
    """What a planned task reads of rows.

    Its columns are every text in the settings of what is no data. They are not known if there is no
    task, or if a part of the recipe's own may read any column.

    Example:
        >>> use_by_plan(Session({}, {}))
        RowUse(columns=None, check=None)
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
    return RowUse(known if task and ours else None, _check_of(task and task.config), several)


def use_by_task(task: Task) -> RowUse:
    """What a built task reads of rows; one of the recipe's own may read any column."""
    ours = type(task).__module__.startswith("textmill.")
    return RowUse(task.text.columns if ours else None, _check_of(getattr(task, "config", None)))


def _check_of(config: object) -> RowCheck | None:
    return config.row_check() if isinstance(config, ColumnsTask.Config) else None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def refuse_other_header(name: str, data: object, first: object) -> None:
    """Refuses data whose first line, which is no row, has not the names of the training data.

    Data that follows ``train_data`` has its ``header=true``: of a file without one a row is lost.

    Raises:
        DataError: The names are others.
    """
    if not (isinstance(first, TextPairs) and isinstance(data, TextPairs)):
        return
    wanted, found = first.header, data.header
    if wanted is None or found is None or is_header(found, wanted):
        return
    places = ", ".join(f"{column}: ..." for column in data.config.columns)
    raise DataError(
        f"{data.files[0]}:1: wanted the header of {first.files[0]}, "
        f"{', '.join(map(repr, wanted))}; found {', '.join(map(repr, found))}. If that is a row: "
        f"{name}.header=false. If it is a header of other names, say which: {name}.columns="
        f"{{{places}}}"
    )


def fingerprint_of(data: object) -> str | None:
    """What tells data from other data: 64 hexadecimal digits, where the data knows them."""
    return data.fingerprint() if isinstance(data, Fingerprinted) else None


def read_all(
    session: Session, order: Mapping[str, Any] | tuple[str, ...], folder: Path | None
) -> None:
    """Builds and reads all data of a plan; ``bad_rows.jsonl`` lists the bad rows of all of it.

    Without a folder nothing is written.

    Raises:
        DataError: Some data cannot be used; the message says it of all of it.
    """
    errors: dict[str, list[str]] = {}  # the same of several data, where they are of one file
    bad: list[BadRow] = []
    for name, data in _built(session, [name for name in DATA if name in order]).items():
        try:
            load_data(name, data, use_by_plan(session))
            bad += data.bad_rows if isinstance(data, AccountedRows) else ()
            refuse_other_header(name, data, session.get(DATA[0]) if DATA[0] in order else None)
        except DataError as error:
            errors.setdefault(str(error), []).append(name)
            bad += error.bad_rows if isinstance(error, BadRowsError) else ()
    path = None if folder is None else folder / "bad_rows.jsonl"
    if path is not None and bad:
        write_bad_rows(path, bad)
    elif path is not None:
        path.unlink(missing_ok=True)  # of a start before the data was corrected
    if errors:
        which = "All" if len(bad) < KEPT else "The first"
        where = f"\n{which} bad rows are in {path}." if bad and path else ""
        named = (
            f"{', '.join(names)}: {text}" if len(names) > 1 else text
            for text, names in errors.items()
        )
        raise DataError("\n".join(named) + where)


def _built(session: Session, names: Sequence[str]) -> dict[str, Any]:
    """All data, by its name; where several cannot be made, as two files are missing, all of it."""
    made, errors = {}, dict[str, UserError]()
    for name in names:
        try:
            made[name] = session.get(name)
        except UserError as error:
            errors[name] = error
    if len({str(error) for error in errors.values()}) > 1:
        raise DataError("\n".join(f"{name}: {error}" for name, error in errors.items()))
    for name, one in errors.items():
        notes = getattr(one, "__notes__", [])
        own = f"in the ingredient '{name}'"
        if any(note.startswith(own) for note in notes):
            one.args = (f"{name}: {one}",)  # else it is of what the data is made from
            notes[:] = [note for note in notes if note != own]
        train = session.nodes.get(DATA[0])
        if name == DATA[1] and hasattr(train and train.config, "holdout") and _LACKS in str(one):
            text = f"Name one ({name}.path=...), or leave it rows of {DATA[0]}"
            one.args = (f"{one} {text}: {DATA[0]}.holdout=0.1.",)
        raise one
    return made
