"""Where a header says that the columns of a file are."""

import sys
from collections.abc import Mapping, Sequence

from weft.data.formats.row_format import RowFormat
from weft.errors import DataError

__all__ = ["ABSENT", "header_places", "misplaced", "plain_name"]

ABSENT = sys.maxsize
"""The position of an optional column that a file does not have."""


def header_places(layout: RowFormat, header: Sequence[str], file: str) -> list[int]:
    """The position of each column of a layout in a file with that header.

    The first columns in their order are those of these names, where the header has the names
    elsewhere; in a header of other names they are the first ones.

    Raises:
        DataError: The header lacks a column, or has it at another position than the layout.

    Example:
        >>> from weft.data.formats.lines import tsv_format
        >>> layout = tsv_format(("label", "text"), header=True)
        >>> header_places(layout, ["id", "Text", "Label"], "a.tsv")
        [2, 1]
        >>> header_places(layout, ["category", "sentence"], "a.tsv")
        [0, 1]
    """
    places = layout.columns
    named = {name: at for name, at in places.items() if isinstance(at, str)}
    missing = [at for name, at in named.items() if at not in header and name in layout.required]
    if missing:
        raise DataError(
            f"{file}:1: wanted the column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing))}, found the header {', '.join(map(repr, header))}."
        )
    found = {
        name: at if isinstance(at, int) else header.index(at) if at in header else ABSENT
        for name, at in places.items()
    }
    if named or (wrong := misplaced(places, header)) is None:
        return [*found.values()]
    names = [plain_name(cell) for cell in header]
    is_first = [*places.values()] == [*range(len(places))]
    if not is_first or any(plain_name(name) not in names for name in layout.required):
        raise DataError(f"{file}:1: {wrong}")
    by_name = (plain_name(name) for name in places)
    return [names.index(name) if name in names else ABSENT for name in by_name]


def misplaced(places: Mapping[str, int | str], header: Sequence[str]) -> str | None:
    """What is wrong where a header has the name of a column at another position; else None.

    Example:
        >>> print(misplaced({"label": 0, "text": 1}, ["text", "category"]))
        wanted 'text' at position 1 (from 0), found 'category' there, and 'text' at 0. Say where \
each column is by its name in the header, as columns={label: ..., text: text}
    """
    names = [plain_name(cell) for cell in header]
    for name, at in places.items():
        there = names[at] if isinstance(at, int) and at < len(names) else None
        if isinstance(at, int) and plain_name(name) in names and there != plain_name(name):
            found = "nothing" if there is None else repr(header[at])
            elsewhere = names.index(plain_name(name))
            return (
                f"wanted {name!r} at position {at} (from 0), found {found} there, and "
                f"{header[elsewhere]!r} at {elsewhere}. Say where each column is by its name in "
                f"the header, as columns={{{_by_name(places, header)}}}"
            )
    return None


def plain_name(name: str) -> str:
    """A name as it is compared: neither spaces around it nor the case of its letters count."""
    return name.strip().casefold()


def _by_name(places: Mapping[str, int | str], header: Sequence[str]) -> str:
    """The columns with their names in the header, as a setting."""
    names = {plain_name(cell): cell for cell in header}
    return ", ".join(f"{name}: {names.get(plain_name(name), '...')}" for name in places)
