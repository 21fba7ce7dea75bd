"""A column of rows: how its values become numbers and batches, and how it is saved."""

import copy
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from textmill.config.registry import Registry
from textmill.errors import DataError, UserError
from textmill.text.metadata import Saved, SavedTextError, read_registered, write_description
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

columns = Registry(
    "column",
    {
        "textmill.text.columns.dictionary": ["given_kinds", "phrases"],
        "textmill.text.columns.labels": ["label", "labels", "slots", "tags", "trees"],
        "textmill.text.columns.numbers": ["number", "numbers"],
        "textmill.text.processors.question_answering": ["answers", "matches", "passage"],
        "textmill.text.processors.extract": ["overlaps", "sentences"],
        "textmill.text.columns.token_ids": ["text"],
        "textmill.text.columns.words": ["affixes", "characters", "ngrams", "pieces", "words"],
    },
)
"""Kinds of column by the name they are saved under."""

DESCRIPTION = "column.json"


class Column(Saved, ABC):
    """Values of one column of the rows, as arrays. A subclass is registered in ``columns``.

    It is saved by the arguments of its constructor, each an attribute of the same name: a JSON
    value, a tokenizer, or what is saved likewise (:class:`~textmill.text.metadata.Saved`).

    Attributes:
        name: The column of the rows, and of the encoded arrays.

    Args:
        name: The same.
        fitted: What it was fitted with, by the name of the recipe's ingredient.
    """

    kind: ClassVar[str]
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
    fixed: ClassVar[bool] = False
    """Whether each row has as many numbers as any other, more than one: none is padding."""
    shares: ClassVar[bool] = False
    """Whether it reads a column of the rows that another one may read too."""
    unseen: bool = False
    """Whether a label that training has not seen is encoded, as ``UNSEEN``, and not refused."""

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
        """The numbers of each row.

        Raises:
            DataError: A value cannot be used; names its row (from 0) and the column.
        """

    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        """What :meth:`encode` gives of a single row, faster; None: it is to be asked."""
        return None

    def save_files(self, folder: Path) -> dict[str, Any]:
        """Writes the column's files and returns its settings, as JSON values."""
        return _arguments(self, folder)

    @classmethod
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "Column":
        """Makes the column from what ``save_files`` wrote; ``settings`` may be a stranger's.

        Raises:
            UserError: They cannot be; a ValueError will do, too.
        """
        unread = dict(settings)
        made: Column = _made(cls, folder, unread)
        if unread:
            raise UserError(f"unknown setting {next(iter(unread))!r:.80}.")
        return made

    def with_unseen(self) -> Self:
        """The same column for evaluated rows, whose labels training may not have seen."""
        other = copy.copy(self)
        other.unseen = True
        return other

    def unseen_in(self, value: Any) -> list[str]:
        """The labels in one cell that training has not seen; empty for columns without labels."""
        return []

    def check_beside(self, role: str, columns: Mapping[str, "Column"]) -> None:
        """Refuses other columns of the rows that do not go with this one.

        Raises:
            UserError: It cannot; says which setting makes it fit.
        """

    def check(  # most columns fit any others
        self, encoded: Mapping[str, Ragged], kinds: Mapping[str, "Column"]
    ) -> None:
        """Refuses rows in which this column does not fit another one.

        Raises:
            DataError: It does not; names the row (from 0) and the columns.
        """

    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """Encoded rows, each cut after its first ``limit`` places."""
        lengths, most = encoded.lengths, limit * self.width
        position = np.arange(len(encoded.values)) - np.repeat(encoded.offsets[:-1], lengths)
        offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, most))]).astype(np.int64)
        return Ragged(encoded.values[position < most], offsets)

    def save(self, folder: Path) -> None:
        """Writes all that ``load_column`` needs into ``folder``, as data."""
        folder.mkdir(parents=True, exist_ok=True)
        write_description(folder / DESCRIPTION, self.kind, self.save_files(folder))


ColumnKind = type[Column] | UnionType
"""What a column can be: a class of columns, or one of several."""


def load_column(folder: Path) -> Column:
    path = folder / DESCRIPTION
    owner, settings = read_registered(path, columns)
    try:
        loaded: Column = owner.from_files(folder, settings)
    except SavedTextError:
        raise
    except (OverflowError, UserError, ValueError) as error:
        raise SavedTextError(f"{path}: {error}") from None
    return loaded


def _arguments(made: Saved, folder: Path) -> dict[str, Any]:
    """The arguments that something was made with, as JSON values; tokenizers are saved."""
    found: dict[str, Any] = {}
    for name in _names(type(made)):
        value = getattr(made, name)
        if isinstance(value, Saved):
            found |= _arguments(value, folder)
        elif isinstance(value, Tokenizer):
            value.save(folder / name)
        else:
            found[name] = _plain(value)
    return found


def _names(kind: type[Any]) -> list[str]:
    given = inspect.signature(kind).parameters.values()
    return [one.name for one in given if one.kind is not one.VAR_KEYWORD]


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _made(kind: type[Any], folder: Path, settings: dict[str, Any]) -> Any:
    """Something by its arguments, taken out of ``settings``, each of its annotated type."""
    hints = get_type_hints(kind.__init__) | get_type_hints(kind)
    given: dict[str, Any] = {}
    for name in _names(kind):
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Saved):
            given[name] = _made(hint, folder, settings)
        elif hint is Tokenizer:
            given[name] = load_tokenizer(folder / name)
        elif name not in settings:
            raise UserError(f"the setting '{name}' is missing.")
        else:
            value = settings.pop(name)
            try:
                given[name] = _reader(hint).validate_json(json.dumps(value), strict=True)
            except ValueError:
                raise UserError(f"the setting '{name}' cannot be {value!r:.80}.") from None
    return kind(**given)


@cache
def _reader(hint: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_listed(hint))


def _listed(hint: Any) -> Any:
    """An annotation with lists for what may be iterated once."""
    origin, parts = get_origin(hint), tuple(map(_listed, get_args(hint)))
    if origin in (Iterable, Sequence):
        return list[parts[0]]  # type: ignore[valid-type]  # known when it runs
    return tuple.__class_getitem__(parts) if origin is tuple else hint


def texts_of(values: Sequence[Any], name: str) -> list[str]:
    """The values as they are, if all of them are text.

    Example:
        >>> texts_of(["Hi.", 7], "text")
        Traceback (most recent call last):
        textmill.errors.DataError: Row 1, column 'text': wanted text, found 7 (int).
    """
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
        each row that are no padding, where it has any: *Shape:* ``[B]``.
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
