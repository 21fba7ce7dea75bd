"""What every predictor does with rows, whether a run or an export answers them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict, Unpack, override

from textmill.errors import DataError, UserError
from textmill.text.answers import Answer, returned_type, row_type
from textmill.text.explanations import Explanation, PartsLeftOut, Reason
from textmill.text.processors.text_processor import TextProcessor

Row = Mapping[str, Any]
T = TypeVar("T")

CHUNK_CHARACTERS = 1_000_000
"""Rows of a stream are answered once they have so many characters, which bounds memory."""

SINGLE_ROW_PREFIX = re.compile(r"Row 0(?:, | )")
"""Prefix of errors of rows that were checked one at a time; it is not their number."""

SLICE = 256
"""Rows of a table that become Python objects at once."""

TO_ROWS: dict[str, dict[str, str]] = {
    "to_pylist": {},
    "to_dicts": {},
    "to_dict": {"orient": "records"},
}
"""Methods that give a table's rows as dicts, of pyarrow, polars and pandas: none is imported."""


class RowTable(Sized, Protocol):
    """A DataFrame of pandas or polars, or a Table or RecordBatch of pyarrow."""

    @property
    def columns(self) -> Any: ...


AnyTable = TypeVar("AnyTable", bound=RowTable)


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Options of a request; None leaves the model's own setting."""

    n_best: int | None = None
    """Answers to a row, the best first: of a text that is generated, for each mask, or labels in
    ``scores``."""
    beam_size: int | None = None
    """Sequences that a search of a text follows at once; by default ``n_best`` at least."""
    threshold: float | None = None
    """Probability above which a label is an answer, in place of the run's own; from 0 to 1."""
    explain: bool | None = None
    """Whether answers have ``reasons``: the words of the row with their weights."""

    def __post_init__(self) -> None:
        for name in ("n_best", "beam_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is a number above 0; found {value}.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise UserError(f"threshold is a number from 0 to 1; found {self.threshold}.")

    @property
    def given(self) -> dict[str, Any]:
        """What is not None or False, by name."""
        return {k: v for k, v in vars(self).items() if v is not None and v is not False}


class CallOptions(TypedDict, total=False):
    """Those of :class:`AnswerOptions` that a call takes."""

    n_best: int | None
    beam_size: int | None
    threshold: float | None


PLAIN = AnswerOptions()
"""No options: the model's own settings."""


class RowPredictor(ABC):
    """Answers strings, lists of words, or rows of columns.

    Only one thread may use it at a time.

    Args:
        columns: What each row must have; a string fills the only one, and so does a list.
    """

    checks_itself = False
    """Whether :meth:`answers` refuses every row that :meth:`check` refuses; then rows are checked
    one by one only if a batch is refused."""
    data: Mapping[str, Any] = MappingProxyType({})
    """Settings by which the run's data was read, if it was a file."""

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

    @property
    def answer_class(self) -> Any:
        """The class of answers, where their ``row()`` is their plain data; None: see answer_row."""
        return None

    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        """An answer as plain data."""
        found: Mapping[str, Any] = answer.row()
        return found

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns that are texts: those whose words an explanation leaves out."""
        return self.columns

    def with_options(self, options: AnswerOptions) -> "RowPredictor":
        """The same model with the options of a request."""
        if not options.given:
            return self
        kind = self.answer_class
        known = kind.options if isinstance(kind, type) and issubclass(kind, Answer) else ()
        if {*options.given} <= {*known}:
            return ChosenAnswers(self, options)
        raise UserError(
            f"This model takes no {' with '.join(options.given)}. Models that generate text take "
            "n_best and beam_size, those that fill masks n_best, classifiers n_best, threshold and "
            "explain, those that answer with a number explain."
        )

    def explain(self, row: str | Row, *, label: str | None = None) -> Explanation:
        """The answer to one row, and what each word of its texts does to it.

        Each word is left out once, so a model is asked as many times as a text has words; of a text
        of more than 100 words some together. What only two words say together, or either of them,
        is not seen.

        Args:
            row: A string, or a mapping of columns. Parts of strings are left out, and of no lists.
            label: The label that is explained; by default the most probable one.

        Raises:
            UserError: The answers of the model have no weights: they are no labels and no numbers.
            DataError: The row cannot be answered, or has no words.

        Example:
            ``textmill.load("runs/sms/0a1b").explain("Free entry!")`` shows its label, and the words
            with their weights.
        """
        self.with_options(AnswerOptions(explain=True))
        left_out = PartsLeftOut(self.row(row), self.text_columns)
        return left_out.explanation(self.answers([*map(self.divided, left_out.rows)]), label)

    def rows_asked(self, given: str | Row | Sequence[str]) -> int:
        """The rows that the model computes to answer one: of an explanation one a word, too."""
        return 1

    @property
    def answer_type(self) -> Any:
        """The type of what :meth:`answer_row` gives."""
        kind = self.answer_class
        return returned_type(type(self).answer_row) if kind is None else row_type(kind)

    @overload
    def __call__(self, row: str | Row, **options: Unpack[CallOptions]) -> Any: ...

    @overload
    def __call__(self, row: AnyTable, **options: Unpack[CallOptions]) -> AnyTable: ...

    @overload
    def __call__(
        self, row: Iterable[str | Row | Sequence[str]], **options: Unpack[CallOptions]
    ) -> list[Any]: ...

    def __call__(
        self,
        row: str | Row | RowTable | Iterable[str | Row | Sequence[str]],
        **options: Unpack[CallOptions],
    ) -> Any:
        """Answers one row (a string, or a mapping of columns), or a list of rows in order.

        A DataFrame of pandas or polars, and a Table of pyarrow, are answered by another one: a row
        for each row, with the index of pandas, and the columns of :meth:`answer_row`. A Dataset of
        Hugging Face is a list of rows. A mapping is always one row; its columns become a table by
        ``pyarrow.table(columns)``. A named tuple is one row, as a mapping is. Columns may have the
        names of the training file, too.

        A list of strings is as many texts. In a list a row may be a list, too: a text that is
        given as its words, or as its sentences. One such text is ``[["How", "are", "you"]]``.
        Every column takes a string; those whose words are labelled or counted take a list of
        words, and a source of which a text is made takes a list of sentences. A number is no text
        here, as it is in a file: ``str`` makes it one.

        Args:
            row: One row, or many.
            options: ``n_best``, ``beam_size`` and ``threshold``, as of :class:`AnswerOptions`.

        Raises:
            DataError: A row cannot be answered; says which, and why.
            UserError: The model does not take an option.
        """
        asked = AnswerOptions(**options)
        if asked.given:
            return self.with_options(asked)(row)
        one = row if isinstance(row, str) else as_mapping(row)
        if one is None:
            answers = self.answers([self.row(each) for each in rows_in(row)])
            return _table_like(row, map(self.answer_row, answers)) if _is_table(row) else answers
        try:
            return self.answers([self.row(one)])[0]
        except DataError as error:
            hint = "" if isinstance(row, str) else columns_hint(row, self.columns)
            if not hint:
                raise
            raise DataError(f"{error}{hint}") from error

    def embedder(self) -> "RowPredictor":
        """A predictor that answers texts with their vectors, by the same model."""
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
        return self.divided(row)

    def divided(self, row: Row) -> Row:
        """A row whose text has its words, if they are not those that white space divides."""
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
        row = self.by_own_names(row)
        missing = [name for name in self.columns if name not in row]
        if missing:
            raise DataError(
                f"A row needs the columns {wanted}; '{missing[0]}' is missing. "
                f"Found: {', '.join(map(str, row)) or 'none':.200}."
            )
        return row

    @property
    def own_names(self) -> dict[str, str]:
        """The model's columns by the training file's names for them, which rows may use."""
        known = self.data.get("columns")
        names = known if isinstance(known, Mapping) else {}
        return {at: name for name, at in names.items() if isinstance(at, str) and at not in names}

    def by_own_names(self, row: Row) -> Row:
        """A row whose columns have the training file's names by the model's names for them."""
        own = {at: name for at, name in self.own_names.items() if at in row and name not in row}
        return {own.get(name, name): cell for name, cell in row.items()} if own else row

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
        good: list[Row] = []
        results: list[tuple[Row, DataError | None]] = []
        for given in rows:
            try:
                row = self.row(given)
                self.check(row)
            except DataError as error:
                named = as_mapping(given)
                shown = {self.columns[0]: given} if named is None else dict(named)
                results.append((shown, DataError(single_row_error(error))))
            else:
                results.append((dict(row), None))
                good.append(row)
        answers = iter(self.answers(good))
        return [(row, next(answers) if problem is None else problem) for row, problem in results]


class ChosenAnswers(RowPredictor):
    """The answers of a model by options of which it knows nothing, and their reasons if wanted."""

    def __init__(self, model: RowPredictor, options: AnswerOptions) -> None:
        super().__init__(model.columns, model.optional_columns)
        self.data = model.data
        self.model, self.explains = model, options.explain is True
        self.chosen = replace(options, explain=None).given
        self.checks_itself = model.checks_itself and not self.explains

    @property
    @override
    def text_columns(self) -> tuple[str, ...]:
        return self.model.text_columns

    @property
    @override
    def answer_class(self) -> Any:
        return Explanation if self.explains else self.model.answer_class

    @property
    @override
    def answer_type(self) -> Any:
        plain = self.model.answer_type
        if not self.explains:
            return plain
        fields = {**get_type_hints(plain, include_extras=True), "reasons": list[row_type(Reason)]}  # type: ignore[misc]
        made: Any = TypedDict
        return made(f"Explained{plain.__name__}", fields)

    @override
    def answers(self, rows: Sequence[Row]) -> list[Any]:
        if not self.explains:
            return [answer.chosen(**self.chosen) for answer in self.model.answers(rows)]
        return [self._explained(row) for row in rows]

    def _explained(self, row: Row) -> Explanation:
        left_out = PartsLeftOut(row, self.text_columns)
        found = left_out.explanation(self.model.answers([*map(self.divided, left_out.rows)]))
        return replace(found, answer=found.answer.chosen(**self.chosen))

    @override
    def check(self, row: Row) -> None:
        self.model.check(row)
        if self.explains:
            PartsLeftOut(row, self.text_columns)

    @override
    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        if not self.explains:
            return self.model.answer_row(answer)
        return {**self.model.answer_row(answer.answer), **answer.row()}

    @override
    def divided(self, row: Row) -> Row:
        return self.model.divided(row)

    @override
    def rows_asked(self, given: str | Row | Sequence[str]) -> int:
        if not self.explains:
            return 1
        try:
            return len(PartsLeftOut(self.row(given), self.text_columns).rows)
        except DataError:  # to answer it says so
            return 1

    @override
    def embedder(self) -> RowPredictor:
        return self.model.embedder()


def is_answerable(predictor: RowPredictor, row: str | Row) -> bool:
    try:
        predictor.check(predictor.row(row))
    except DataError:  # as a text without a mask
        return False
    return True


class ExportedPredictor(RowPredictor):
    """Answers rows as the trained model did, without torch, by its saved text processor."""

    checks_itself = True

    def __init__(self, text: TextProcessor) -> None:
        super().__init__(text.input_columns, text.optional_columns)
        self.text = text

    @override
    def divided(self, row: Row) -> Row:
        return self.text.divided(row)

    @property
    @override
    def text_columns(self) -> tuple[str, ...]:
        return self.text.text_columns

    @property
    @override
    def answer_class(self) -> Any:
        return self.text.answer_class


def row_chunks(
    rows: Iterable[T], length: Callable[[T], int], *, size: int = 256, most: int = CHUNK_CHARACTERS
) -> Iterator[list[T]]:
    """Rows to answer together: at most ``size``, and none is added after ``most`` characters.

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


def single_row_error(error: DataError) -> str:
    """The error of a row that was checked by itself, without its number."""
    return SINGLE_ROW_PREFIX.sub("", str(error), count=1)


def _refuse_nul(value: object, column: str) -> None:
    if isinstance(value, str) and "\0" in value:
        at = value.index("\0")
        raise DataError(f"Column '{column}': NUL at character {at}. Take it out.")
    for part in value if isinstance(value, list | tuple) else ():
        _refuse_nul(part, column)


def characters(value: object) -> int:
    """Number of characters in a row, its lists and columns included."""
    if isinstance(value, Mapping | list | tuple):
        return sum(map(characters, value.values() if isinstance(value, Mapping) else value))
    return len(value) if isinstance(value, str | bytes) else 0


def as_mapping(given: Any) -> Mapping[str, Any] | None:
    """One row as a mapping; None of anything else.

    A row is a mapping, a named tuple, or what has ``keys`` that are all strings: a row of sqlite3,
    or the pandas Series that is a row of a DataFrame.
    """
    if isinstance(given, str | list):
        return None
    if isinstance(given, Mapping):
        return given
    if isinstance(given, tuple) and hasattr(given, "_asdict"):
        fields: dict[str, Any] = given._asdict()
        return fields
    if _is_table(given) or not hasattr(given, "keys"):
        return None
    names = [*given.keys()]
    return dict(given) if names and all(isinstance(name, str) for name in names) else None


def rows_in(given: Any) -> Iterable[Any]:
    """The rows of a table, or the items of a list or of another iterable that has an order.

    A table is a DataFrame of pandas or polars, or a Table or RecordBatch of pyarrow. Each of its
    rows is a dict, made when it is asked for.
    """
    kind = type(given).__name__
    if isinstance(given, str):
        raise DataError("Wanted a list of rows, found one str. Put it into a list.")
    if (row := as_mapping(given)) is not None:
        raise DataError(
            f"Wanted a list of rows, found one {kind} with {_names_of(row)}. A single row goes "
            f"into a list: [row].{columns_hint(given, [*row])}"
        )
    if isinstance(given, set | frozenset):
        raise DataError(f"Wanted rows in an order, found a {kind}, which has none. Make it a list.")
    if _is_table(given):
        return _rows_of_table(given)
    if hasattr(given, "to_pylist"):  # an array of pyarrow, whose items are not Python strings
        listed: list[Any] = given.to_pylist()
        return listed
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise DataError(f"Wanted a string, a mapping of columns, or a list of these; found {kind}.")
    return given


def columns_hint(given: Any, names: Sequence[str]) -> str:
    """What to write, as a sentence after a space, if one row seems to hold many.

    A mapping may hold the columns of a table, and a Series the texts of many rows.
    """
    if type(given).__name__ == "Series":
        return " Of a Series of texts make a list: list(texts)."
    row = as_mapping(given) or {}
    values = [row.get(name) for name in names]
    if all(isinstance(value, Iterable) and not isinstance(value, str) for value in values):
        return " If these are columns of several rows, give a table: pyarrow.table(columns)."
    return ""


def _is_table(given: Any) -> bool:
    """Whether it has named columns; iterating over a table may give their names."""
    return hasattr(given, "columns") and not isinstance(given, Mapping)


def _rows_of_table(table: Any) -> Iterator[dict[str, Any]]:
    method = next((name for name in TO_ROWS if hasattr(table, name)), None)
    if method is None or not hasattr(table, "__len__"):
        raise DataError(
            f"Wanted a list of rows, found a {type(table).__name__}, which cannot be read row by "
            "row. Make it a list with a dict for each row, or a DataFrame of pandas or polars."
        )
    sliced = getattr(table, "iloc", table)
    return (
        row
        for start in range(0, len(table), SLICE)
        for row in getattr(sliced[start : start + SLICE], method)(**TO_ROWS[method])
    )


def _table_like(table: Any, rows: Iterable[Mapping[str, Any]]) -> Any:
    """Rows as a table of the same kind."""
    kind, given = type(table), [*rows]
    names = dict.fromkeys(chain.from_iterable(given))  # pyarrow takes those of the first row
    made = [{**names, **row} for row in given]
    if hasattr(kind, "from_pylist"):
        return kind.from_pylist(made)
    if hasattr(table, "iloc"):
        return kind(made, index=table.index)
    return kind(made, infer_schema_length=None)  # polars takes the types of the first hundred


def _names_of(row: Mapping[str, Any]) -> str:
    names = [*map(str, row)]
    return f"the names {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"
