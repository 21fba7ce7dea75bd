"""Batches cut out of encoded columns: rectangles, filled on the right."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textmill.text.columns.column import Column
from textmill.text.ragged import Ragged


def padded_columns(
    encoded: Mapping[str, Ragged],
    kinds: Mapping[str, Column],
    indices: ArrayLike,
    *,
    least: int = 0,
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.int64]]]:
    """Rows of encoded columns, each column as one array.

    Args:
        encoded: Columns by role.
        kinds: What each is.
        indices: The rows.
        least: Places that an array has at least, if of padding alone.

    Returns:
        Arrays by role: *Shape:* ``[B, L]``, or ``[B]`` where each row has one number, or
        ``[B, L, W]`` where each place of a row has several; int64 or float32. And the places of
        each row that are no padding, where it has any: *Shape:* ``[B]``.

    Example:
        >>> from textmill.text.columns.numbers import NumberColumn
        >>> score = NumberColumn("score")
        >>> made = padded_columns({"score": score.encode(["1", "3"])}, {"score": score}, [1, 0])
        >>> made[0]["score"].tolist(), made[1]
        ([3.0, 1.0], {})
    """
    rows = np.asarray(indices, dtype=np.int64)
    columns: dict[str, NDArray[Any]] = {}
    lengths: dict[str, NDArray[np.int64]] = {}
    box: NDArray[Any]
    for role, column in encoded.items():
        kind = kinds[role]
        if kind.single:
            columns[role] = column.values[column.offsets[:-1][rows]].astype(kind.dtype)
            continue
        lengths[role] = column.bounds(rows)[1] // kind.width
        if issubclass(kind.dtype, np.floating):
            box = _rectangle(column, rows).astype(kind.dtype)
            if kind.width > 1:
                box = box.reshape(len(rows), box.shape[1] // kind.width, kind.width)
        else:
            box = _several(column.padded(rows, kind.pad), kind)
        if not kind.fixed and (missing := least - box.shape[1]) > 0:
            around = [(0, 0), (0, missing), *[(0, 0)] * (box.ndim - 2)]
            box = np.pad(box, around, constant_values=kind.pad)
        columns[role] = box
    return columns, lengths


def _several(values: NDArray[np.int64], kind: Column) -> NDArray[np.int64]:
    """Rows with several numbers at each place, without those that are padding at all places."""
    if kind.width == 1:
        return values
    box = values.reshape(len(values), -1, kind.width)
    used = np.flatnonzero((box != kind.pad).any(axis=(0, 1)))
    return np.ascontiguousarray(box[..., : 1 + used[-1] if len(used) else 1])


def _rectangle(column: Ragged, rows: NDArray[np.int64]) -> NDArray[np.floating]:
    """Rows of floats, filled with zero."""
    starts, lengths = column.bounds(rows)
    places = np.arange(int(lengths.max(initial=0)))
    if not len(column.values):
        return np.zeros((len(rows), 0))
    out: NDArray[np.floating] = column.values.take(starts[:, None] + places, mode="clip")
    return np.where(places < lengths[:, None], out, 0.0)
