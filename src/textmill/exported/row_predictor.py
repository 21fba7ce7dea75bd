"""Rows in, answers out: what every predictor does, whatever computes the answers."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.exported.given_rows import as_mapping, columns_hint, rows_in

Row = Mapping[str, Any]
T = TypeVar("T")

CHUNK_CHARACTERS = 1_000_000
"""A stream answers fewer rows together where they are this long: memory stays bounded."""

ITSELF = re.compile(r"Row 0(?:, | )")
"""How the error of a row begins that was looked at by itself: it is no row 0 of the stream."""


class RowPredictor(ABC):
    """Answers strings, lists of words, or rows of columns.

    One thread at a time may ask: a model keeps what it is at while it answers.

    Args:
        columns: What each row must have; a string fills the only one, and so does a list.
    """

    checks_itself = False
    """Whether :meth:`answers` refuses each row that :meth:`check` does: then rows are looked at one
    by one only where they are refused together."""

    def __init__(self, columns: Sequence[str], optional: Sequence[str] = ()) -> None:
        self.columns, self.optional_columns = tuple(columns), tuple(optional)

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: answers rows of {', '.join(self.columns)}>"

    @abstractmethod
    def answers(self, rows: Sequence[Row]) -> list[Any]:
        """An answer to each row, in order."""

    @abstractmethod
    def check(self, row: Row) -> None:
        """Refuses a row that cannot be answered, with a DataError that says why."""

    @abstractmethod
    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        """An answer as plain data."""

    @property
    def answer_type(self) -> Any:
        """What :meth:`answer_row` is annotated to give, one of :mod:`textmill.text.answer_rows`."""
        return returned_type(type(self).answer_row)

    @overload
    def __call__(self, row: str | Row) -> Any: ...

    @overload
    def __call__(self, row: Iterable[str | Row | Sequence[str]]) -> list[Any]: ...

    def __call__(self, row: str | Row | Iterable[str | Row | Sequence[str]]) -> Any:
        """Answers one row (a string, or a mapping of columns), or a list of rows in order.

        The rows of a table are a list, too: of a DataFrame of pandas or polars, of a Table of
        pyarrow, of a Dataset of Hugging Face. A mapping is always one row; its columns become a
        table by ``pyarrow.table(columns)``. A named tuple is one row, as a mapping is.

        A list of strings is as many texts. In a list a row may be a list, too: a text that is
        given as its words, or as its sentences. One such text is ``[["How", "are", "you"]]``.
        Every column takes a string; those whose words are labelled or counted take a list of
        words, and a source of which a text is made takes a list of sentences. A number is no text
        here, as it is in a file: ``str`` makes it one.

        Raises:
            DataError: A row cannot be answered; says which, and why.
        """
        one = row if isinstance(row, str) else as_mapping(row)
        if one is None:
            return self.answers([self.row(each) for each in rows_in(row)])
        try:
            return self.answers([self.row(one)])[0]
        except DataError as error:
            hint = "" if isinstance(row, str) else columns_hint(row, self.columns)
            if not hint:
                raise
            raise DataError(f"{error}{hint}") from error

    def embedder(self) -> "RowPredictor":
        """What answers texts with their vectors, by the same model.

        Raises:
            UserError: The model makes none.
        """
        raise UserError(
            f"{self!r} makes no vectors of texts. Name a run whose model has an encoder, or an "
            "export of a run that was trained to embed."
        )

    def embed(self, texts: Iterable[str | Row | Sequence[str]]) -> NDArray[np.float32]:
        """The vectors of texts, in order. *Shape:* ``[N, D]``.

        Args:
            texts: Strings; or rows, as in a call, a table's, too.

        Raises:
            UserError: The model makes none.
            DataError: A text cannot be read; says which, and why.

        Example:
            ``textmill.load("runs/pairs/0a1b").embed(["How are you?", "Fine."]).shape`` is ``(2,
            384)``.
        """
        if isinstance(texts, str | Mapping):
            raise DataError("Wanted a list of texts, found a single one: embed([text])[0].")
        embedder = self.embedder()
        vectors = [answer.vector for answer in embedder([*rows_in(texts)])]
        return np.stack(vectors) if vectors else np.zeros((0, embedder.vector_size()), np.float32)

    def vector_size(self) -> int:
        """Features of the vectors that an :meth:`embedder` answers with."""
        return len(self.answers([dict.fromkeys(self.columns, "")])[0].vector)

    def row(self, given: str | Row | Sequence[str]) -> Row:
        """A row of the columns the model reads: a string or a list fills the only one.

        Raises:
            DataError: It lacks one, or has NUL in one, which is a bad row of training data, too.
        """
        row = self._row(given)
        for name in (*self.columns, *self.optional_columns):
            _refuse_nul(row.get(name), name)
        return row

    def _row(self, given: str | Row | Sequence[str]) -> Row:
        wanted, row = ", ".join(self.columns), as_mapping(given)
        if row is None and isinstance(given, str | list | tuple):
            if len(self.columns) != 1:
                what = "string" if isinstance(given, str) else "list"
                raise DataError(f"This model reads the columns {wanted}; a {what} fills only one.")
            return {self.columns[0]: given}
        if row is None:
            raise DataError(
                f"A row is a string or a mapping of columns ({wanted}); "
                f"found {type(given).__name__}."
            )
        missing = [name for name in self.columns if name not in row]
        if missing:
            raise DataError(
                f"A row needs the columns {wanted}; '{missing[0]}' is missing. "
                f"Found: {', '.join(map(str, row)) or 'none':.200}."
            )
        return row

    def stream(
        self, rows: Iterable[str | Row | Sequence[str]], *, size: int = 256
    ) -> Iterator[dict[str, Any]]:
        """Answers any number of rows in bounded memory, in order; a bad row becomes an error row.

        Args:
            rows: Strings, mappings or lists of words, as they come; or a table, as in a call.
            size: Rows answered together, at most; they are sorted by length inside.

        Yields:
            Per row its inputs with ``prediction`` and ``score``, or with ``error``.
        """
        for chunk in row_chunks(rows_in(rows), characters, size=size):
            yield from ({**row, **answer} for row, answer in self.answered(chunk))

    def answered(
        self, rows: Sequence[str | Row | Sequence[str]]
    ) -> list[tuple[Row, Mapping[str, Any]]]:
        """Each row with its answer as plain data, or with ``error``; all are answered together."""
        return [
            (row, {"error": str(a)} if isinstance(a, DataError) else self.answer_row(a))
            for row, a in self.answers_or_errors(rows)
        ]

    def answers_or_errors(self, rows: Sequence[str | Row | Sequence[str]]) -> list[tuple[Row, Any]]:
        """Each row with its typed answer, or with the DataError that says why it has none."""
        if not self.checks_itself:
            return self._checked(rows)
        try:
            whole = [self.row(given) for given in rows]
            answers = self.answers(whole)
        except DataError:
            return self._checked(rows)
        return [(dict(row), answer) for row, answer in zip(whole, answers, strict=True)]

    def _checked(self, rows: Sequence[str | Row | Sequence[str]]) -> list[tuple[Row, Any]]:
        """As :meth:`answers_or_errors`; each row is looked at by itself first."""
        good: list[Row] = []
        results: list[tuple[Row, DataError | None]] = []
        for given in rows:
            try:
                row = self.row(given)
                self.check(row)
            except DataError as error:
                named = as_mapping(given)
                shown = {self.columns[0]: given} if named is None else dict(named)
                results.append((shown, DataError(ITSELF.sub("", str(error), count=1))))
            else:
                results.append((dict(row), None))
                good.append(row)
        answers = iter(self.answers(good))
        return [(row, next(answers) if problem is None else problem) for row, problem in results]


def row_chunks(
    rows: Iterable[T],
    length: Callable[[T], int],
    *,
    size: int = 256,
    most: int = CHUNK_CHARACTERS,
) -> Iterator[list[T]]:
    """Rows to answer together: as many as ``size``, or fewer that are long.

    Args:
        rows: As they come.
        length: How many characters one has.
        size: Rows, at most.
        most: Characters after which no row is added.

    Example:
        >>> [len(chunk) for chunk in row_chunks(["a" * 600_000] * 3, len)]
        [2, 1]
    """
    chunk, total = list[T](), 0
    for row in rows:
        chunk.append(row)
        total += length(row)
        if len(chunk) >= size or total >= most:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


def returned_type(method: Callable[..., Any]) -> Any:
    """What a method is annotated to give; a mapping of anything where that is not known."""
    try:
        return get_type_hints(method).get("return", Mapping[str, Any])
    except NameError:  # of a name that only type checkers know
        return Mapping[str, Any]


def _refuse_nul(value: object, column: str) -> None:
    if isinstance(value, str) and "\0" in value:
        at = value.index("\0")
        raise DataError(f"Column '{column}': NUL at character {at}. Take it out.")
    for part in value if isinstance(value, list | tuple) else ():
        _refuse_nul(part, column)


def characters(value: object) -> int:
    """How long the text of a row is, in lists and columns, too.

    Example:
        >>> characters({"words": ["Ann", "fell"], "text": "Rome"})
        11
    """
    if isinstance(value, Mapping | list | tuple):
        return sum(map(characters, value.values() if isinstance(value, Mapping) else value))
    return len(value) if isinstance(value, str | bytes) else 0
