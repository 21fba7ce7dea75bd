"""Reading the data of a recipe before anything else costs time: every row of every file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.config.session import Session
from weft.data.bad_rows import AccountedRows, BadRow, BadRowsError, RowCount, write_bad_rows
from weft.data.first_row import is_header
from weft.data.text_pairs import TextPairs
from weft.errors import DataError, UserError

__all__ = ["DATA", "fingerprint_of", "read_all", "read_data", "refuse_other_header"]

DATA = ("train_data", "valid_data", "test_data")


def read_data(name: str, data: object) -> RowCount | None:
    """Reads data that accounts for its rows; other data is left as it is.

    Returns:
        Good and bad rows, or None.

    Raises:
        BadRowsError: There are more bad rows than are allowed.
    """
    return data.read(ingredient=name).count if isinstance(data, AccountedRows) else None


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
    made = getattr(data, "fingerprint", None)
    return str(made()) if callable(made) else None


def read_all(
    session: Session, order: Mapping[str, Any] | tuple[str, ...], folder: Path | None
) -> None:
    """Builds and reads all data of a plan; ``bad_rows.jsonl`` lists the bad rows of all of it.

    Args:
        session: Builds.
        order: The names that are planned.
        folder: Where ``bad_rows.jsonl`` is; None: nothing is written.

    Raises:
        DataError: Some data cannot be used; the message says it of all of it.
    """
    errors: dict[str, list[str]] = {}  # the same of several data, where they are of one file
    bad: list[BadRow] = []
    for name, data in _built(session, [name for name in DATA if name in order]).items():
        try:
            read_data(name, data)
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
        where = f"\nAll bad rows are in {path}." if bad and path else ""
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
        own = f"in the ingredient '{name}'"
        if any(note.startswith(own) for note in getattr(one, "__notes__", ())):
            one.args = (f"{name}: {one}",)  # else it is of what the data is made from
        raise one
    return made
