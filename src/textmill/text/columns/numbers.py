"""Columns of numbers: one a row as a target, or several as features of a row."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import RowCheck, list_in, read_training, unlisted
from textmill.text.columns.column import Column, columns
from textmill.text.metadata import Saved
from textmill.text.ragged import Ragged, offsets_of

LARGEST = float(np.finfo(np.float32).max)
"""Of a number that a module is given, 3.4e38."""
STARS = re.compile(
    r"([0-5](?:[.,]\d+)?)\s*(?:/\s*5|(?:von|out of|sur|de) 5|(?:stars?|sterne?|étoiles?|estrellas?)"
    r"(?: (?:von|out of|sur|de) 5)?|stelle|星|점)",
    re.IGNORECASE,
)
"""A rating as people write it: ``4/5``, ``4 stars``, ``4,5 Sterne``; its number is the first."""
LEAST = 1e-30
"""Of a deviation: less is rounding, and a number divided by it no float32."""


@columns.register("number")
class NumberColumn(Column):
    """One number a row.

    Args:
        span: The least and the greatest number there may be, which become 0 and 1; None: numbers
            stay as they are.
        least: The least number there may be; None is no limit.
    """

    kind = "number"
    dtype = np.float32
    single = True

    def __init__(
        self, name: str, *, span: tuple[float, float] | None = None, least: float | None = None
    ) -> None:
        super().__init__(name)
        self.span, self.least = span, least
        if span is not None and not (-LARGEST <= span[0] < span[1] <= LARGEST):
            raise UserError(
                f"The span of the numbers of '{name}' must be finite and rise, but is from "
                f"{span[0]!r:.40} to {span[1]!r:.40}; a float32 holds {LARGEST:.2g}."
            )

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        return [self.restored(float(number)) for number in encoded]

    def restored(self, number: float) -> float:
        if self.span is None:
            return float(number)
        low, high = self.span
        return low + float(number) * (high - low)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        numbers = [self._scaled(value, row) for row, value in enumerate(values)]
        return Ragged(np.array(numbers, dtype=np.float32), np.arange(len(numbers) + 1))

    def _scaled(self, value: Any, row: int) -> float:
        number = number_in(value, self.name, row)
        if self.least is not None and number < self.least:
            raise DataError(
                f"Row {row}, column '{self.name}': wanted a number of {self.least:g} or more, "
                f"found {value!r:.80}."
            )
        if self.span is None:
            if abs(number) > LARGEST:
                raise _too_large(value, self.name, row)
            return number
        low, high = self.span
        if not low <= number <= high:
            raise DataError(
                f"Row {row}, column '{self.name}': wanted a number from {low:g} to {high:g}, "
                f"found {value!r:.80}."
            )
        return (number - low) / (high - low)


@dataclass(frozen=True)
class NumberCheck(RowCheck):
    """A cell holds one number."""

    column: str
    span: tuple[float, float] | None = None
    """The least and the greatest one."""
    reads = ("column",)

    @override
    def refuse(self, row: Mapping[str, Any]) -> None:
        self._encoder.encode([row[self.column]])

    @override
    def passes(self, columns: Mapping[str, Sequence[Any]]) -> bool:
        try:
            self._encoder.encode(columns.get(self.column, ()))
        except DataError:
            return False
        return True

    @cached_property
    def _encoder(self) -> NumberColumn:
        return NumberColumn(self.column, span=self.span)


class Numbers(Saved):
    """Numbers that are features, and what brings each to mean 0 and deviation 1.

    Args:
        mean: *Shape:* ``[dim]``.
        deviation: *Shape:* ``[dim]``; 1 for a feature that never changes.
        of_words: Whether each word of a row has such numbers, and not the row.
    """

    def __init__(
        self,
        column: str,
        mean: Sequence[float],
        deviation: Sequence[float],
        of_words: bool = False,
    ) -> None:
        self.column, self.of_words = column, of_words
        self.mean = np.asarray(mean, dtype=np.float64)
        self.deviation = np.asarray(deviation, dtype=np.float64)
        good = self.mean.shape == self.deviation.shape and (self.deviation > LEAST).all()
        if not (good and np.isfinite(self.mean).all() and np.isfinite(self.deviation).all()):
            raise UserError(
                "Dense features must have a mean and a positive deviation for each number. Save "
                "the text processor again."
            )

    @property
    def dim(self) -> int:
        return len(self.mean)

    def normalized(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Rows of numbers, each less its feature's mean, over its deviation; infinite, if large."""
        with np.errstate(over="ignore"):
            return ((values - self.mean) / self.deviation).astype(np.float32)


@columns.register("numbers")
class NumbersColumn(Column):
    """A fixed number of numbers a row, or a word, normalized: dense features."""

    kind = "numbers"
    sorted = False
    dtype = np.float32

    def __init__(self, name: str, numbers: Numbers) -> None:
        super().__init__(name, dense=numbers)
        self.numbers, self.fixed = numbers, not numbers.of_words
        self.width = numbers.dim if numbers.of_words else 1

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        dim, of_words = self.numbers.dim, self.numbers.of_words
        cells = [
            lists_in(each, self.name, row, of_words=of_words) for row, each in enumerate(values)
        ]
        lists = [(row, numbers) for row, cell in enumerate(cells) for numbers in cell]
        for row, numbers in lists:
            if len(numbers) != dim:
                raise DataError(
                    f"Row {row}, column '{self.name}': wanted {dim} numbers, found {len(numbers)}."
                )
        table = np.array([numbers for _, numbers in lists], dtype=np.float64)
        found = self.numbers.normalized(table.reshape(len(lists), dim))
        if not (finite := np.isfinite(found)).all():
            at, place = np.argwhere(~finite)[0].tolist()
            raise _too_large(lists[at][1][place], self.name, lists[at][0])
        return Ragged(found.reshape(-1), offsets_of(np.array([*map(len, cells)], np.int64) * dim))

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        if ("words" in columns) != self.numbers.of_words:
            kind, each = ("words", "word") if "words" in columns else ("fitted", "text")
            raise UserError(
                f"The numbers in '{self.name}' must be a list for each {each}: set "
                f"{role}.type={kind}."
            )

    @override
    def check(self, encoded: Mapping[str, Ragged], kinds: Mapping[str, Column]) -> None:
        if not self.numbers.of_words:
            return
        own = next(role for role, column in kinds.items() if column is self)
        lists, words = self.places(encoded[own]), encoded["words"].lengths
        if len(wrong := np.flatnonzero(lists != words)):
            row = int(wrong[0])
            raise DataError(
                f"Row {row}, column '{self.name}': has {lists[row]} lists of numbers, but "
                f"'{kinds['words'].name}' has {words[row]} words: wanted one for each."
            )


@registries.dense.register("fitted")
class FittedNumbers(Component):
    """Dense features of a column, normalized by their mean and deviation in ``train_data``."""

    class Config(BaseConfig):
        column: str = "dense"
        """The column: ``[0.5, 2]`` as JSON, or numbers with spaces or commas between."""
        normalize: bool = True
        """Whether each is brought to mean 0 and deviation 1."""
        of_words: ClassVar[bool] = False

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Numbers:
            lists = list[list[float]]()

            def read(row: int, cell: Any) -> list[list[float]]:
                found = lists_in(cell, self.column, row, of_words=self.of_words)
                dim = len(lists[0] if lists else found[0] if found else ())
                if other := [each for each in found if len(each) != dim]:
                    raise DataError(
                        f"Row {row}, column '{self.column}': wanted {dim} numbers as in the first "
                        f"row, found {len(other[0])}."
                    )
                return found

            told = {"purpose": "of numbers", "setting": "dense.column"}
            for each in read_training(train_data, [self.column], read, **told):
                lists.append(each)
            table = np.array(lists, dtype=np.float64)
            if not table.size:
                raise DataError(
                    f"The column '{self.column}' of train_data has no number to take dense "
                    "features from."
                )
            mean, deviation = np.zeros(table.shape[1]), np.ones(table.shape[1])
            if self.normalize:
                # About the first row: sums about zero lose all digits of a large mean.
                moved = table - table[0]
                mean, deviation = table[0] + moved.mean(axis=0), moved.std(axis=0)
            deviation[deviation <= LEAST] = 1.0
            return Numbers(self.column, mean.tolist(), deviation.tolist(), self.of_words)


@registries.dense.register("words")
class FittedWordNumbers(FittedNumbers):
    """Dense features of each word, normalized as those of texts."""

    class Config(FittedNumbers.Config):
        """``column`` has a list of numbers for each word, as JSON: ``[[0.5, 2], [1, 0]]``."""

        of_words = True


def lists_in(value: Any, name: str, row: int, *, of_words: bool) -> list[list[float]]:
    """The lists of numbers in one cell: one, or with ``of_words`` one for each word, as JSON."""
    if not of_words:
        return [numbers_in(value, name, row)]
    words = list_in(value)
    if not isinstance(words, list) or not all(isinstance(each, list) for each in words):
        raise DataError(
            f"Row {row}, column '{name}': wanted a list of numbers for each word, as "
            f"[[0.5, 2], [1, 0]], found {value!r:.80}."
        )
    return [numbers_in(each, name, row) for each in words]


def numbers_in(value: Any, name: str, row: int) -> list[float]:
    """The numbers in one cell: a list, or text of one, in brackets or not.

    Example:
        >>> numbers_in("[0.5, 2]", "dense", 0), numbers_in("1 2", "dense", 0)
        ([0.5, 2.0], [1.0, 2.0])
    """
    value = unlisted(value)
    if isinstance(value, str):
        inner = value.strip().removeprefix("[").removesuffix("]")
        value = inner.replace(",", " ").split()
    if not isinstance(value, Sequence):
        raise DataError(
            f"Row {row}, column '{name}': wanted numbers, found {type(value).__name__}."
        )
    return [number_in(part, name, row) for part in value]


_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+)")
"""A number as most of Europe writes it; 1,234 may also be one thousand, and is refused."""


def number_in(value: Any, name: str, row: int) -> float:
    """A finite number, or the text of one; ``name`` and ``row`` say where, in errors.

    Example:
        >>> number_in("1.5", "score", 0), number_in("1,5", "score", 0), number_in("4/5", "stars", 0)
        (1.5, 1.5, 4.0)
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, str) and (stars := STARS.fullmatch(value.strip())):
            value = stars[1]
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            value = value.replace(",", ".")
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise DataError(
            f"Row {row}, column '{name}': wanted a number, found {value!r:.80}."
        ) from None
    if not math.isfinite(number):
        raise DataError(f"Row {row}, column '{name}': wanted a finite number, found {value!r:.80}.")
    return number


def _too_large(value: Any, name: str, row: int) -> DataError:
    return DataError(
        f"Row {row}, column '{name}': wanted a number that a float32 holds, found {value!r:.80}."
    )
