"""A column of rows: how its values become numbers and batches, and how it is saved."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textmill.config.registry import Registry
from textmill.errors import DataError
from textmill.text.metadata import SavedFolder
from textmill.text.ragged import Ragged, offsets_of

columns = Registry(
    "column",
    {
        "textmill.text.columns.dictionary": ["given_kinds", "phrases"],
        "textmill.text.columns.labels": [
            *("label", "labels", "slots", "tags", "tree_actions", "trees")
        ],
        "textmill.text.columns.numbers": ["number", "numbers"],
        "textmill.text.processors.question_answering": ["answers", "matches", "passage"],
        "textmill.text.processors.extract": ["overlaps", "sentences"],
        "textmill.text.columns.texts": ["texts"],
        "textmill.text.columns.token_ids": ["text"],
        "textmill.text.columns.words": ["affixes", "characters", "ngrams", "pieces", "words"],
    },
)
"""Kinds of column by the name they are saved under."""


class Column(SavedFolder):
    """Values of one column of the rows, as arrays. A subclass is registered in ``columns``.

    It is saved by the arguments of its constructor (:class:`~textmill.text.metadata.Saved`).

    Args:
        name: The column of the rows, and of the encoded arrays.
        fitted: What it was fitted with, by the name of the recipe's ingredient.
    """

    registry = columns
    description = "column.json"
    dtype: ClassVar[type[np.generic]] = np.int64
    """What a batch holds of it: ids, or float32."""
    pad: int = 0
    """What fills the rows of a batch."""
    width: int = 1
    """Numbers at each place of a row; where it is above 1, a batch has ``[B, L, width]``."""
    limit: int | None = None
    """Most places of a row; None is no limit."""
    unit: ClassVar[str] = "tokens"
    """What stands at its places, in words."""
    single: ClassVar[bool] = False
    """Whether a row has exactly one number: a batch then has *Shape:* ``[B]``, else ``[B, L]``."""
    sorted: bool = True
    """Whether rows of like length share a batch: not where a length is part of the target, or
    where it says much of it and a batch of one length leads a model of high rates astray."""
    fixed: bool = False
    """Whether each row has as many numbers as any other, more than one: none is padding."""
    shares: bool = False
    """Whether it reads a column of the rows that another one may read too."""
    unseen: bool = False
    """Whether a label that did not occur in training is encoded as ``UNSEEN``, not refused."""

    def __init__(self, name: str, **fitted: Any) -> None:
        self.name, self._fitted = name, fitted

    @property
    def kept_as(self) -> str:
        """The type that its encoded values are kept in, on a disk."""
        return "<f4" if issubclass(self.dtype, np.floating) else "<i4"

    @property
    def fitted(self) -> Mapping[str, Any]:
        """What it was fitted with, by the name of the recipe's ingredient."""
        return self._fitted

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Ragged:
        """The numbers of each row; a DataError names the row (from 0) and column of a bad value."""

    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        """What :meth:`encode` gives of a single row, faster; None: it is to be asked.

        *Shape:* ``[L]``; where a place has several numbers ``[L, W]``, as :func:`places_in` cuts.
        """
        return None

    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        """Cells with these numbers; empty if they cannot be read back.

        Args:
            encoded: The numbers of each row of a batch, without padding.
            texts: The cell of each row in the first input column, which was read back before.
        """
        return ()

    def with_unseen(self) -> Self:
        """The same column for evaluated rows, whose labels training may not have seen."""
        other = copy.copy(self)
        other.unseen = True
        return other

    def unseen_in(self, value: Any) -> list[str]:
        """The labels in one cell that did not occur in training; empty without labels."""
        return []

    def check_beside(self, role: str, columns: Mapping[str, "Column"]) -> None:
        """Refuses columns of the rows that do not go with this one; names the setting to change."""

    def check(  # most columns fit any others
        self, encoded: Mapping[str, Ragged], kinds: Mapping[str, "Column"]
    ) -> None:
        """Refuses rows in which this column does not fit another one; names row and columns."""

    def places(self, encoded: Ragged) -> NDArray[np.int64]:
        """How many places each row has. *Shape:* ``[n]``."""
        return encoded.lengths // self.width

    def box(
        self, encoded: Ragged, rows: NDArray[np.int64], least: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """Padded rows with the places of each, of a column whose places differ in size; else None.

        *Shape:* ``[B, L, W]``, L and W at least ``least``, and ``[B]``.
        """
        return None

    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """Encoded rows, each cut after its first ``limit`` places."""
        lengths, most = encoded.lengths, limit * self.width
        if lengths.max(initial=0) <= most:
            return encoded
        position = np.arange(len(encoded.values)) - np.repeat(encoded.offsets[:-1], lengths)
        return Ragged(encoded.values[position < most], offsets_of(np.minimum(lengths, most)))


ColumnKind = type[Column] | UnionType
"""What a column can be: a class of columns, or one of several."""


def texts_of(values: Sequence[Any], name: str) -> list[str]:
    """The values as they are, if all of them are text."""
    for row, value in enumerate(values):
        if not isinstance(value, str):
            found = f"{value!r:.80} ({type(value).__name__})"
            raise DataError(f"Row {row}, column '{name}': wanted text, found {found}.")
    return list(values)


def padded_columns(
    encoded: Mapping[str, Ragged],
    kinds: Mapping[str, Column],
    indices: ArrayLike,
    *,
    least: int = 0,
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.int64]]]:
    """Rows of encoded columns, each column as one array.

    Returns:
        Arrays by role: *Shape:* ``[B, L]``, or ``[B]`` where each row has one number, or
        ``[B, L, W]`` where each place of a row has several; int64 or float32. And the places of
        each row that are not padding, if rows have several: *Shape:* ``[B]``.
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
        if (own := kind.box(column, rows, least)) is not None:
            columns[role], lengths[role] = own
            continue
        lengths[role] = column.bounds(rows)[1] // kind.width
        if issubclass(kind.dtype, np.floating):
            box = _rectangle(column, rows).astype(kind.dtype)
            if kind.width > 1:
                box = box.reshape(len(rows), box.shape[1] // kind.width, kind.width)
        else:
            box = places_in(column.padded(rows, kind.pad), kind)
        if not kind.fixed and (missing := least - box.shape[1]) > 0:
            around = [(0, 0), (0, missing), *[(0, 0)] * (box.ndim - 2)]
            box = np.pad(box, around, constant_values=kind.pad)
        columns[role] = box
    return columns, lengths


def places_in(values: NDArray[np.int64], kind: Column) -> NDArray[np.int64]:
    """Rows with several numbers at each place, without those that are padding at all places."""
    if kind.width == 1:
        return values
    box = values.reshape(len(values), -1, kind.width)
    used = (box != kind.pad).any(axis=(0, 1)).nonzero()[0]
    return np.ascontiguousarray(box[..., : 1 + used[-1] if len(used) else 1])


def _rectangle(column: Ragged, rows: NDArray[np.int64]) -> NDArray[np.floating]:
    """Rows of floats, filled with zero."""
    starts, lengths = column.bounds(rows)
    places = np.arange(int(lengths.max(initial=0)))
    if not len(column.values):
        return np.zeros((len(rows), 0))
    out: NDArray[np.floating] = column.values.take(starts[:, None] + places, mode="clip")
    return np.where(places < lengths[:, None], out, 0.0)
