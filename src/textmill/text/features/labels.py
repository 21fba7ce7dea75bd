"""Labels: the names that a task can answer, with a number each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import ListCell, read_training, unlisted
from textmill.text.metadata import Saved, refuse_twice

UNSEEN = -2
"""The number of a label that did not occur in training, in evaluated rows; padding is -1."""

SHOWN = 12
"""Names that an error lists."""


def shown(names: Sequence[str]) -> str:
    """The first names, followed by dots if there are more."""
    return ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")


def listed(names: Sequence[str], what: str) -> str:
    return f"The {len(names)} {what} are {shown(names)}{'' if len(names) > SHOWN else '.'}"


class Labels(Saved, Sequence[str]):
    """Names in the order of their numbers.

    Args:
        names: Each once.
        column: The column of the rows that they are in.
        multiple: Whether a row has any number of them; one a word is several a row, too.
        separator: Between two of a row; None is any white space.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        column: str = "label",
        multiple: bool = False,
        separator: str | None = None,
    ) -> None:
        self.names, self.column = tuple(names), column
        self.multiple, self.separator = multiple, separator
        if not self.names:
            raise UserError("There must be one label at least, but there is none.")
        self._numbers = {name: number for number, name in enumerate(self.names)}
        refuse_twice(self.names, "Labels")

    def numbers(self, names: Sequence[Any], *, unseen: bool = False) -> NDArray[np.int32]:
        known = self._numbers
        try:
            if unseen and all(isinstance(name, str) and name.strip() for name in names):
                return np.array([known.get(name, UNSEEN) for name in names], dtype=np.int32)
            return np.array([known[name] for name in names], dtype=np.int32)
        except (KeyError, TypeError):
            row = next(i for i, name in enumerate(names) if not self.has(name))
            raise DataError(
                f"Row {row}, column '{self.column}': {names[row]!r:.80} is no label. {self.listed}"
            ) from None

    def has(self, name: object) -> bool:
        return isinstance(name, str) and name in self._numbers

    @property
    def listed(self) -> str:
        return listed(self.names, "labels")

    @override
    def __len__(self) -> int:
        return len(self.names)

    @override
    def __getitem__(self, number: Any) -> Any:
        return self.names[number]

    @override
    def __eq__(self, other: object) -> bool:
        return self.names == other.names if isinstance(other, Labels) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.names)


def one_label(value: Any, *, column: str, row: int) -> Any:
    """The label in one cell: a list of one is that one, all else as it is."""
    if not isinstance(value, ListCell):
        return value
    if len(value.parts) != 1:
        raise DataError(
            f"Row {row}, column '{column}': wanted one label, found a list of "
            f"{len(value.parts)}. Several labels a row need labels.multiple=true."
        )
    return value.parts[0]


def split_labels(value: Any, separator: str | None, *, column: str, row: int) -> list[str]:
    """The labels in one cell: a list as it is, a text cut at the separator or at white space."""
    value = unlisted(value)
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(separator)]
        return [part for part in parts if part]
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return list(value)
    raise DataError(
        f"Row {row}, column '{column}': wanted text or a list of texts, "
        f"found {type(value).__name__}."
    )


def names_in(found: Iterable[str], what: str, column: str) -> list[str]:
    """The names that occur in a column of ``train_data``, in the order of their first row."""
    names = [*dict.fromkeys(found)]
    if not names:
        raise DataError(f"No row of train_data has a {what} in its column '{column}'.")
    return names


@registries.labels.register("fitted")
class FittedLabels(Component):
    """The labels that occur in a column of ``train_data``, in the order of their first row."""

    class Config(BaseConfig):
        column: str = "label"
        """The column of the rows."""
        names: tuple[str, ...] = ()
        """The labels, if they are known; a row of ``train_data`` may then have no other."""
        multiple: bool = False
        """Whether a row may have several labels, or none."""
        separator: str | None = None
        """Delimiter of a row's labels (if ``multiple``); null: any white space."""

        def __post_init__(self) -> None:
            if self.separator is not None and not self.multiple:
                raise UserError(
                    "labels.separator divides several labels of a row: set labels.multiple=true "
                    "with it."
                )
            if self.separator == "":
                raise UserError("labels.separator must not be empty; null is any white space.")

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Labels:
            how = {name: getattr(self, name) for name in ("column", "multiple", "separator")}
            found = read_training(
                train_data,
                [self.column],
                self._of,
                purpose="to take labels from",
                setting="labels.column, or declare the labels by labels.names",
            )
            return Labels(self.names or names_in(found, "label", self.column), **how)

        def _of(self, number: int, value: Any) -> list[str]:
            if self.multiple:
                return split_labels(value, self.separator, column=self.column, row=number)
            value = one_label(value, column=self.column, row=number)
            if not isinstance(value, str) or not value.strip():
                raise DataError(
                    f"Row {number}, column '{self.column}': wanted a label, found {value!r:.80}."
                )
            return [value]
