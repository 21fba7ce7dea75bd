"""What all pipelines do: find their model, read their input, answer it in order."""

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    cast,
    get_args,
    overload,
)

from typing_extensions import override

from textmill.data.formats.cells import text_problem
from textmill.errors import DataError, UserError
from textmill.exported.row_predictor import Row, RowPredictor, characters, row_chunks, rows_in
from textmill.pipelines.find_model import ModelWanted, load_model
from textmill.pipelines.given_text import HEAD, GivenText, is_pdf, text_lines, whole_text
from textmill.text.answers import Answer
from textmill.text.processors.text_processor import TextProcessor

if TYPE_CHECKING:
    from textmill.pipelines.documents import Document

InputType = Literal["str", "txt", "pdf"]
"""What an input is: a string or a list of strings; the path of a text file; that of a PDF."""

_FILE_NAME = re.compile(r"\S+\.(?:pdf|txt)", re.IGNORECASE)
"""A string that may be the name of a file."""


@dataclass(frozen=True, kw_only=True)
class PipelineResult(Answer):
    """The answer of a pipeline to one text; base class, whose subclasses add what they find."""

    keys: ClassVar[tuple[str, ...]] = ("text", "line?", "page?", "error?")
    required = frozenset({"text"})

    text: str
    """The text that was read."""
    line: int | None = None
    """Its line in a file of texts, from 1."""
    page: int | None = None
    """Where it begins in a PDF, from 1."""
    error: str | None = None
    """Why the text could not be answered; the other values say nothing then. None: it was."""

    @override
    def row(self) -> dict[str, Any]:
        """The result as plain data, as JSON has it; of an error only its text and place."""
        found = super().row()
        names = found if self.error is None else ("text", "line", "page", "error")
        return {name: found[name] for name in names if name in found}

    def lines(self) -> list[str]:
        """What a terminal shows of it."""
        return str(self).splitlines()

    def cells(self) -> list[dict[str, Any]]:
        """Its rows in a table, with the pipeline's :attr:`columns`."""
        return [{}]


R = TypeVar("R", bound=PipelineResult)
Answered = Sequence[tuple[Row, Any]]
"""Rows, each with the model's typed answer."""


class Pipeline(ABC, Generic[R]):
    """From texts and files to typed results, by a model that is found by its name.

    A subclass says which model it wants, what is asked of the model for a text, and what result its
    answers make: see ``docs/pipelines.md``. One thread at a time may ask.

    Args:
        model: The folder of a run or of an export, or a predictor that is loaded; None: the folder
            ``name`` in ``$TEXTMILL_HOME/models`` (``~/.textmill/models``), else the model that
            textmill ships.
        device: ``auto``, or a device as torch names it.
        allow_code: Whether the recipe that a run folder brings may be executed.

    Raises:
        UserError: There is no model; says the ways to have one. Or it is of another task.
    """

    wanted: ClassVar[ModelWanted]
    """The model."""
    result_class: ClassVar[type[PipelineResult]]
    """What it answers with."""
    extensions: ClassVar[tuple[str, ...]] = (".pdf", ".txt")
    """Extensions of the files that it reads."""
    by_line: ClassVar[bool] = False
    """Whether each line of a text file is a text; else the file is one."""

    def __init__(
        self,
        model: str | Path | RowPredictor | None = None,
        *,
        device: str = "auto",
        allow_code: bool = False,
    ) -> None:
        self.predictor = (
            model
            if isinstance(model, RowPredictor)
            else load_model(self.wanted, model, device=device, allow_code=allow_code)
        )
        self.check_model(str(model or self.name))

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self.predictor!r}>"

    @property
    def name(self) -> str:
        """What the pipeline and the folder of its model are called."""
        return self.wanted.name

    @property
    def processor(self) -> TextProcessor:
        """The text processor of the model, which a run and an export have."""
        found = getattr(getattr(self.predictor, "task", self.predictor), "text", None)
        assert isinstance(found, TextProcessor)
        return found

    # -- what a pipeline of one's own says

    def check_model(self, model: str) -> None:
        """Refuses a loaded model, which errors call ``model``, that does not suit the pipeline."""

    def rows(self, given: GivenText) -> Sequence[Any]:
        """The rows that the model answers for a text, as a predictor takes them; one by default."""
        return [given.text]

    @abstractmethod
    def result(self, given: GivenText, answered: Answered) -> R:
        """The result for a text, by each of its :meth:`rows` with the model's answer."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What a table has of each result, beside its place, text and error."""
        return ()

    def texts(self, document: "Document") -> Iterable[GivenText]:
        """The texts of a PDF that are answered; by default one, of abstract and body.

        Other parts of a paper are found in ``document.lines``.
        """
        from textmill.pipelines.documents import find_abstract, find_body, joined_passages

        parts = (find_abstract(document), find_body(document))
        return [GivenText.of(joined_passages(filter(None, parts)))]

    # -- what all do

    @overload
    def __call__(self, given: str) -> R: ...

    @overload
    def __call__(self, given: list[str] | tuple[str, ...]) -> list[R]: ...

    def __call__(self, given: str | list[str] | tuple[str, ...]) -> R | list[R]:
        """Answers a string, or a list of strings in order.

        Raises:
            DataError: One cannot be answered; says which, and why.
        """
        results = self.predict(given, type="str")
        for number, result in enumerate(results):
            if result.error is not None:
                where = "" if isinstance(given, str) else f"Text {number}: "
                raise DataError(f"{where}{result.error}")
        return results[0] if isinstance(given, str) else results

    def predict(
        self,
        given: str | Path | Sequence[str],
        type: InputType | None = None,
        *,
        password: str | None = None,
    ) -> list[R]:
        """The result for each text, in order; of one that cannot be answered, its ``error``.

        Args:
            given: A string, a list of strings, or the path of a file.
            type: What it is. None: a ``Path`` is a file, of the kind that it has; a string is a
                text, never a file's name, so that no text that somebody else wrote opens a file.
            password: Of a PDF that is encrypted; other files are read without.

        Raises:
            UserError: The file cannot be read; or what is given is not of the type, or is a string
                and has a password.
            DataError: The file is no text, or no PDF, as its type says.
        """
        return [*self.stream(given, type, password=password)]

    def stream(
        self,
        given: str | Path | Iterable[str],
        type: InputType | None = None,
        *,
        password: str | None = None,
    ) -> Iterator[R]:
        """As :meth:`predict`, one after the other: in bounded memory, however long a file is."""
        kind = _type_of(given, type)
        if kind == "str":
            if password is not None:
                raise UserError("password is for a PDF, but texts were given. Leave it out.")
            texts = [given] if isinstance(given, str) else rows_in(given)
            yield from self.answer(map(_given, texts))
            return
        assert isinstance(given, str | Path)
        if kind == "pdf":
            from textmill.pipelines.documents import read_pdf

            yield from self.answer(self.texts(read_pdf(given, password=password)))
            return
        try:
            opened = Path(given).open("rb")  # noqa: SIM115  # closed below; only its opening is tried
        except OSError as error:
            raise UserError(f"{given} cannot be read: {error.strerror}.") from None
        with opened as file:
            found_pdf = is_pdf(file.peek(HEAD))
            if found_pdf and type is None:
                yield from self.stream(given, "pdf", password=password)
            elif found_pdf:
                raise DataError(f"{given}: wanted text, found a PDF. Give it with type='pdf'.")
            else:
                yield from self._read_text(file, str(given))

    def predict_bytes(self, name: str, content: bytes, *, password: str | None = None) -> list[R]:
        """As :meth:`predict` of a file's content; errors call it ``name``.

        It says itself whether it is a PDF; if its name ends in ``.pdf``, it must be one.
        """
        return [*self.read(BytesIO(content), name, password=password)]

    def read(
        self,
        stream: BinaryIO,
        name: str,
        *,
        password: str | None = None,
        seconds: float | None = None,
    ) -> Iterator[R]:
        """The results for an open file of bytes, one after the other, as :meth:`predict_bytes`.

        Args:
            stream: The file.
            name: What errors call it.
            password: Of a PDF that is encrypted.
            seconds: How long it may take; None: a PDF is read as long as its limits allow.

        Raises:
            DataError: It cannot be read, or took longer.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        # A pipe cannot go back to what was looked at.
        peeked = stream if isinstance(stream, BufferedReader) else BufferedReader(stream)  # type: ignore[type-var]
        if not (is_pdf(peeked.peek(HEAD)) or name.lower().endswith(".pdf")):
            yield from self._read_text(peeked, name, end=end)
            return
        from textmill.pipelines.documents import PdfLimits, read_pdf

        limits = PdfLimits()
        if seconds is not None:
            limits = replace(limits, seconds=min(seconds, limits.seconds))
        content = peeked.read(limits.bytes + 1)  # as much as is known to be too much
        document = read_pdf(content, name=name, limits=limits, password=password)
        yield from self.answer(self.texts(document), end=end)

    def _read_text(self, stream: BinaryIO, name: str, *, end: float = math.inf) -> Iterator[R]:
        texts = text_lines(stream, name) if self.by_line else [whole_text(stream, name)]
        yield from self.answer(texts, end=end)

    def answer(self, texts: Iterable[GivenText], *, end: float = math.inf) -> Iterator[R]:
        """The results for texts that are read, in order; some hundred are answered together.

        A DataError ends them if the time of ``time.monotonic`` is after ``end``.
        """
        for some in row_chunks(texts, lambda given: len(given.text)):
            problems = [each.problem or text_problem(each.text) for each in some]
            both = zip(some, problems, strict=True)
            asked = [[] if problem else self.rows(each) for each, problem in both]
            found = self._answered([row for rows in asked for row in rows], end)
            for given, problem, rows in zip(some, problems, asked, strict=True):
                answered = [next(found) for _ in rows]
                wrong = [str(answer) for _, answer in answered if isinstance(answer, DataError)]
                if problem or wrong:
                    yield self._failed(given, problem or wrong[0])
                else:
                    yield self.result(given, answered)

    def _answered(self, rows: Iterable[Any], end: float) -> Iterator[tuple[Row, Any]]:
        for some in row_chunks(rows, characters):
            if time.monotonic() > end:
                raise DataError("The time for the file is over. Give it in parts.")
            yield from self.predictor.answers_or_errors(some)

    def _failed(self, given: GivenText, problem: str) -> R:
        return cast("R", self.result_class(text=given.text, error=problem, **given.place))


def _given(text: object) -> GivenText:
    if not isinstance(text, str):
        hint = " Of a table give the column of the texts: table['text']." * isinstance(text, dict)
        raise UserError(f"Wanted a string, found {type(text).__name__}.{hint}")
    return GivenText(text)


def _type_of(given: Any, said: str | None) -> InputType:
    """What an input is; a UserError if it is not what is said, or may be the name of a file."""
    known = ", ".join(map(repr, get_args(InputType)))
    if said is not None and said not in get_args(InputType):
        raise UserError(f"type is {said!r}; wanted one of {known}, or None.")
    if isinstance(given, Path):
        if said == "str":
            raise UserError(f"type is 'str', but {given} is a path. Leave type out.")
        return "pdf" if said == "pdf" or (not said and given.suffix.lower() == ".pdf") else "txt"
    if said is None and isinstance(given, str) and _FILE_NAME.fullmatch(given.strip()):
        raise UserError(
            f"{given!r:.200} may be a text or a file. For a file give its type, as type='pdf', or "
            "give a pathlib.Path; for a text, type='str'."
        )
    if not isinstance(given, str) and said not in (None, "str"):
        raise UserError(f"type is {said!r}: wanted the path of one file, found a list.")
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise UserError(
            f"Wanted a string, a list of strings or a pathlib.Path; found {type(given).__name__}."
        )
    return said or "str"  # type: ignore[return-value]  # one of them, as was looked at
