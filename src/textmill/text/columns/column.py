"""A column of rows: how its values become numbers, and how it is saved."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from textmill.config.registry import Registry
from textmill.errors import DataError, UserError
from textmill.text.metadata import SavedTextError, read_registered, settings_of, write_description
from textmill.text.ragged import Ragged

columns = Registry(
    "column",
    {
        "textmill.text.columns.dictionary": ["given_kinds", "phrases"],
        "textmill.text.columns.labels": ["label", "labels", "slots", "tags"],
        "textmill.text.columns.numbers": ["number", "numbers"],
        "textmill.text.columns.question": ["answers", "matches", "passage"],
        "textmill.text.columns.sentences": ["overlaps", "sentences"],
        "textmill.text.columns.token_ids": ["text"],
        "textmill.text.columns.trees": ["trees"],
        "textmill.text.columns.words": ["affixes", "characters", "ngrams", "pieces", "words"],
    },
)
"""Kinds of column by the name they are saved under."""

DESCRIPTION = "column.json"


class Column(ABC):
    """Values of one column of the rows, as arrays. A subclass is registered in ``columns``.

    Attributes:
        name: The column of the rows, and of the encoded arrays.

    Args:
        name: The same.
        fitted: What it was fitted with, by the name of the recipe's ingredient.
    """

    kind: ClassVar[str]
    saved: ClassVar[Mapping[str, type | tuple[type, ...]] | None] = None
    """The settings that ``save_files`` returns, each with its type: what :func:`load_column` checks
    before ``from_files`` sees them; None: ``from_files`` does."""
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

    @abstractmethod
    def save_files(self, folder: Path) -> dict[str, Any]:
        """Writes the column's files and returns its settings, as JSON values."""

    @classmethod
    @abstractmethod
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "Column":
        """Makes the column from what ``save_files`` wrote; ``settings`` may be a stranger's.

        Raises:
            UserError: They cannot be; a ValueError will do, too.
        """

    def with_unseen(self) -> Self:
        """The same column for evaluated rows, whose labels training may not have seen."""
        other = copy.copy(self)
        other.unseen = True
        return other

    def unseen_in(self, value: Any) -> list[str]:
        """The labels in one cell that training has not seen; empty for columns without labels."""
        return []

    def check_beside(self, role: str, columns: Mapping[str, "Column"]) -> None:  # noqa: B027
        """Refuses other columns of the rows that do not go with this one.

        Raises:
            UserError: It cannot; says which setting makes it fit.
        """

    def check(  # noqa: B027  # most columns fit any others
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
    """Loads a column saved by ``Column.save``.

    Raises:
        SavedTextError: The folder holds no column, or one that was changed.
    """
    path = folder / DESCRIPTION
    owner, settings = read_registered(path, columns)
    if owner.saved is not None:
        settings_of(path, settings, owner.saved)
    try:
        loaded: Column = owner.from_files(folder, settings)
    except SavedTextError:
        raise
    except (OverflowError, UserError, ValueError) as error:
        raise SavedTextError(f"{path}: {error}") from None
    return loaded


def texts_of(values: Sequence[Any], name: str) -> list[str]:
    """The values as they are, if all of them are text.

    Raises:
        DataError: One is not; names its row and the column.

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
