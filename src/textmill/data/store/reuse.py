"""Ids that another store has: those of the files of some data that did not change."""

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from textmill.data.rows import StoredRows
from textmill.data.store.arrays import DamagedStoreError, StoreManifest, open_arrays
from textmill.text.processors.text_processor import Encoded
from textmill.text.ragged import Ragged


class KeptRows(NamedTuple):
    """Rows whose ids are known."""

    first: int
    """The number of the first."""
    stop: int
    """The number of the one after the last."""
    ids: Encoded | None
    """Their ids."""


def open_ids(
    folder: Path, facts: Mapping[str, Any], *, whole: bool = False
) -> tuple[StoreManifest, Encoded] | None:
    """The manifest of a token store and its mapped ids; None where there are none.

    Args:
        folder: The store.
        facts: What it must have been made of.
        whole: Verify every byte, not sizes and times only.

    Raises:
        DamagedStoreError: They are not what was written, or not of ``facts``.
    """
    found = open_arrays(folder, facts, whole=whole)
    if found is None:
        return None
    manifest, arrays = found
    try:
        columns = {
            name: Ragged(arrays[f"{name}.values"], arrays[f"{name}.offsets"])
            for name in facts["columns"]
        }
    except ValueError as error:
        raise DamagedStoreError(f"{folder}: {error}") from None
    return manifest, Encoded(columns, arrays["over_length"])


def part_of(encoded: Encoded, start: int, stop: int) -> Encoded:
    """The rows from one number up to another; the ids are not copied."""
    columns = {
        name: Ragged(
            column.values[column.offsets[start] : column.offsets[stop]],
            column.offsets[start : stop + 1] - column.offsets[start],
        )
        for name, column in encoded.columns.items()
    }
    over = encoded.over_length
    return Encoded(columns, over[(over >= start) & (over < stop)] - start)


def kept_elsewhere(
    folder: Path, facts: Mapping[str, Any], rows: Sequence[Mapping[str, str]]
) -> list[KeptRows]:
    """The parts of some rows that stores beside a folder have, in their order.

    A part is the rows of a file that is as it was, encoded by the same text processor.

    Args:
        folder: The store that is to be made.
        facts: What it is made of.
        rows: All its rows.
    """
    pieces = rows.pieces if isinstance(rows, StoredRows) else ()
    ends = itertools.accumulate(count for _, count in pieces)
    wanted = {piece: (end - piece[1], end) for piece, end in zip(pieces, ends, strict=True)}
    found, like = list[KeptRows](), json.loads(json.dumps({**facts, "data": ""}))
    for other in sorted(folder.parent.iterdir()) if wanted else ():
        with suppress(DamagedStoreError, KeyError):
            manifest = StoreManifest.read(other)
            theirs = [(str(name), int(count)) for name, count in manifest.summary["pieces"]]
            if {**manifest.facts, "data": ""} != like or not wanted.keys() & {*theirs}:
                continue
            opened = open_ids(other, manifest.facts)
            starts = itertools.accumulate((count for _, count in theirs), initial=0)
            for piece, start in zip(theirs, starts, strict=False):
                if opened is not None and piece in wanted:
                    ids = part_of(opened[1], start, start + piece[1])
                    found.append(KeptRows(*wanted.pop(piece), ids))
    return sorted(found, key=lambda part: part.first)
