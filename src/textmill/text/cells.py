"""The values of rows: a cell is a text or a list of texts, and an error of one has its place."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from typing_extensions import override

from textmill.errors import DataError

T = TypeVar("T")


class ListCell(str):
    """A list of texts as the text of them with one space between two; ``parts`` has them.

    Rows are rows of text, whatever their format, and most columns want no more. One of words, tags,
    labels or numbers takes the parts, so that none is cut where it has a space. It equals its text.
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, parts: Iterable[str]) -> "ListCell":
        listed = tuple(parts)
        made = super().__new__(cls, " ".join(listed))
        made.parts = listed
        return made

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return ListCell, (self.parts,)


class DividedText(ListCell):
    """A text whose words are not those that white space divides; it equals the text as it is."""

    __slots__ = ("places",)
    places: tuple[tuple[int, int], ...]
    """Where each word begins and ends."""

    def __new__(cls, text: str, places: Iterable[tuple[int, int]]) -> "DividedText":
        made = str.__new__(cls, text)
        made.places = tuple(places)
        made.parts = tuple(text[start:end] for start, end in made.places)
        return made

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return DividedText, (str(self), self.places)


def unlisted(value: Any) -> Any:
    """The parts of a list cell; any other value unchanged."""
    return list(value.parts) if isinstance(value, ListCell) else value


def list_in(value: Any) -> Any:
    """The parts of a list cell, or what a text says as JSON; None if it is not JSON."""
    if not isinstance(value, str) or isinstance(value, ListCell):
        return unlisted(value)
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def texts_in(value: Any, column: str, row: int) -> list[str]:
    r"""The texts of a list, one or more; of a text, its lines.

    Example:
        >>> texts_in(["hi", "how are you?"], "turns", 0), texts_in("hi\nhello\n", "turns", 0)
        (['hi', 'how are you?'], ['hi', 'hello'])
    """
    value = unlisted(value)
    if isinstance(value, str):
        if re.match(r"\s*\[\s*[\"\]]", value):
            raise DataError(
                f"Row {row}, column '{column}': wanted a list of texts, found the JSON of one as "
                f"text, {value!r:.80}. Files have such by lists=[{column}], lines by --format "
                "jsonl."
            )
        return [line for line in value.split("\n") if line.strip()] or [value]
    is_list = isinstance(value, Sequence) and not isinstance(value, bytes)
    if not is_list or not all(isinstance(part, str) for part in value):
        raise DataError(
            f"Row {row}, column '{column}': wanted text or a list of texts, found {value!r:.80}."
        )
    if not value:
        raise DataError(f"Row {row}, column '{column}': wanted one text or more, found none.")
    return list(value)


def words_in(value: Any, column: str, row: int) -> list[str]:
    value = unlisted(value)
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise DataError(
            f"Row {row}, column '{column}': wanted text or a list of words, "
            f"found {type(value).__name__}."
        )
    for place, word in enumerate(value):
        if not isinstance(word, str) or word.split() != [word]:
            raise DataError(
                f"Row {row}, column '{column}': wanted a list of words without white space, found "
                f"{word!r:.80} at {place}."
            )
    return list(value)


Rows = Sequence[Mapping[str, Any]]
"""Rows as they are read: values by the name of their column."""

NESTED = ("text", "answer_start")
"""The keys of an object with answers; each has a list, empty if there is no answer."""


def split_answers(value: Mapping[str, Any]) -> tuple[list[str], list[int]] | str:
    """The texts of answers and the characters they begin at; or what is wrong, in words."""
    texts, starts = (value.get(key) for key in NESTED)
    for key, what, part, kind in zip(
        NESTED, ("texts", "numbers"), (texts, starts), (str, int), strict=True
    ):
        if not isinstance(part, list) or any(type(each) is not kind for each in part):
            return f"wanted a list {key!r} of {what}, found {part!r:.80}"
    if len(texts or ()) != len(starts or ()):
        return (
            f"has {len(texts or ())} texts, but {len(starts or ())} numbers in 'answer_start': "
            "wanted where each begins"
        )
    return list(texts or ()), list(starts or ())


def training_cell(
    values: Mapping[str, Any], column: str, row: int, *, purpose: str, setting: str
) -> Any:
    """The value of a column of a row of training data, which a setting names."""
    if (whole := whole_column(column)) != column:
        listed = training_cell(values, whole, row, purpose=purpose, setting=setting)
        return texts_in(listed, whole, row)[-1]
    if column not in values:
        has = ", ".join(map(str, values))
        raise DataError(
            f"Row {row} of train_data has no column '{column}' {purpose}; it has: {has}. Name the "
            f"column by {setting}."
        )
    return values[column]


def text_cell(
    values: Mapping[str, Any], column: str, row: int, *, purpose: str, setting: str
) -> str:
    """The text of a column of a row of training data; of a list of words, the text of them."""
    text = training_cell(values, column, row, purpose=purpose, setting=setting)
    if isinstance(text, str):
        return text
    if isinstance(text, Sequence) and all(isinstance(word, str) for word in text):
        return " ".join(text)
    raise DataError(
        f"Row {row}, column '{column}': wanted text {purpose}, found {type(text).__name__}. Name "
        f"the columns of text by {setting}."
    )


def read_training(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    read: Callable[..., Iterable[T]],
    *,
    purpose: str,
    setting: str,
) -> Iterator[T]:
    """What ``read(row, *cells)`` gives of each row; an error of a row begins with its place."""
    with placed_errors(rows):
        for row, values in enumerate(rows):
            cells = (
                training_cell(values, name, row, purpose=purpose, setting=setting)
                for name in columns
            )
            yield from read(row, *cells)


NUMBERED = re.compile(r"Row (\d+)(?:, | (?=has \d))")
"""How an error of one row begins: its number from 0, then what is wrong with it."""


@runtime_checkable
class PlacedRows(Protocol):
    """Rows that know where they were read."""

    def place_of(self, row: int, /) -> str | None:
        """The place of a row, as ``sms.tsv:2``; None where it has none."""


class RowCheck:
    """Base of what tasks ask of the cells of a row, which are frozen dataclasses of settings."""

    reads: ClassVar[tuple[str, ...]]
    """The settings that name the columns it looks at; a row that lacks one of these passes."""

    def refuse(self, row: Mapping[str, Any]) -> None:
        """Raises a DataError about row 0 if something is wrong with a row that has the columns."""
        raise NotImplementedError

    def __call__(self, row: Mapping[str, Any]) -> str | None:
        """What is wrong with a row; None: nothing."""
        if all(getattr(self, name) in row for name in self.reads):
            try:
                self.refuse(row)
            except DataError as error:
                # Without "Row 0": it was checked by itself, and that is not its number.
                return re.sub(r"^Row 0(?:, |: | (?=has ))", "", str(error)).removesuffix(".")
        return None

    def passes(self, columns: Mapping[str, Sequence[Any]]) -> bool:
        """Whether nothing is wrong with any of many rows, given by column."""
        rows = zip(*columns.values(), strict=True)
        return not any(map(self, (dict(zip(columns, row, strict=True)) for row in rows)))


@runtime_checkable
class RowsByColumn(Protocol):
    """Rows that are kept by column: no dict is made for each."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""

    def column(self, name: str, /) -> list[str]:
        """The values of one."""


@runtime_checkable
class Fingerprinted(Protocol):
    """Data that knows what tells it from other data."""

    def fingerprint(self) -> str:
        """64 hexadecimal digits."""


LAST = ".-1"
"""After the name of a column: the last text of the list in it."""


def whole_column(name: str) -> str:
    """The column of the rows that a name is of; another one if it names a list's last text."""
    return name.removesuffix(LAST)


def cell_at(row: Mapping[str, Any], name: str, number: int = 0) -> Any:
    """The cell of a column, or the last text of the list in it.

    Example:
        >>> cell_at({"turns": ["hi", "wake me up"]}, "turns.-1")
        'wake me up'
    """
    whole = whole_column(name)
    is_whole = whole == name or name in row
    return row[name] if is_whole else texts_in(row[whole], whole, number)[-1]


def values_of(rows: Sequence[Mapping[str, Any]], name: str) -> Sequence[Any]:
    # To look for the methods of a protocol takes as long as to encode a short text.
    if type(rows) is not list and isinstance(rows, RowsByColumn) and name in rows.names:
        return rows.column(name)
    try:
        if whole_column(name) != name:
            return [cell_at(row, name, number) for number, row in enumerate(rows)]
        return [row[name] for row in rows]
    except KeyError:
        name = whole_column(name)
        number = next(i for i, row in enumerate(rows) if name not in row)
        raise no_column(name, rows[number], number) from None


def no_column(name: str, row: Mapping[str, Any], number: int) -> DataError:
    has = ", ".join(map(str, row)) or "none"
    return DataError(f"Row {number} has no column '{name}'; its columns: {has}.")


@contextmanager
def placed_errors(rows: Any) -> Iterator[None]:
    """Puts a row's place before its error, if the rows know places by a method ``place_of``."""
    try:
        yield
    except DataError as error:
        text = str(error)
        numbered = NUMBERED.match(text)
        known = numbered is not None and isinstance(rows, PlacedRows)
        place = rows.place_of(int(numbered[1])) if numbered and known else None
        if numbered is None or place is None:
            raise
        raise DataError(f"{place}: {text[numbered.end() :]}") from error


def joined_text(value: Any) -> Any:
    """A list of texts as one text with spaces between, as readers of files give it; else the value.

    Example:
        >>> joined_text(["It rains.", "It pours."]), joined_text("Go."), joined_text(["Go.", 3])
        ('It rains. It pours.', 'Go.', ['Go.', 3])
    """
    value = list(value.parts) if isinstance(value, DividedText) else value
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return value
