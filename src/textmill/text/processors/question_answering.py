"""Extractive question answering: the columns of a question and its context, and its answers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Self

from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.answers import Answer
from textmill.text.cells import RowCheck, Rows, list_in, no_column, split_answers
from textmill.text.columns.column import Column, columns
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import CharactersColumn
from textmill.text.features.passages import Place, TokenizedPassage, read_passages
from textmill.text.features.slots import text_of
from textmill.text.features.spelling import Characters
from textmill.text.processors.column_processor import WEIGHTS, ColumnsText
from textmill.text.processors.text_processor import Encoded, text_processors
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Tokenizer

STEM = 5
"""Letters that two words share where they are taken for forms of one; shorter words have none."""


@columns.register("passage")
class PassageColumn(TextColumn):
    """Passages, which the text processor reads, as the ids of their tokens. One can have none."""

    kind = "passage"

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([passage.ids for passage in values])


@columns.register("matches")
class MatchesColumn(Column):
    """How far each token of a context is one of its question; a value is the tokens of both.

    3: it is there as it is written; 2: in other cases of its letters; 1: a word with the same first
    five letters is; 0: none of these. Known words and others alike: names that training never saw
    are found by it.

    Source: Chen et al. 2017, "Reading Wikipedia to Answer Open-Domain Questions" (DrQA), section
    3.2, whose third feature is the lemma.
    """

    kind = "matches"
    sorted = False

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([_matches(*passages) for passages in values])


def _matches(question: Sequence[str], context: Sequence[str]) -> list[int]:
    written, small = set(question), {word.lower() for word in question}
    stems = {word[:STEM] for word in small if len(word) >= STEM}
    found = []
    for word in context:
        lower = word.lower()
        known = (lower[:STEM] in stems, lower in small, word in written)
        found.append(3 if known[2] else 2 if known[1] else int(known[0]))
    return found


@columns.register("answers")
class AnswersColumn(Column):
    """The right answers of each row: the first and the last token of each; none has no answer.

    Args:
        name: The column of the answers' texts.
        starts: That of the characters they begin at.
    """

    kind = "answers"
    sorted = False
    pad = -1  # no token has this number
    width = 2

    def __init__(self, name: str, starts: str = "answer_starts") -> None:
        super().__init__(name)
        self.starts = starts

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([[*chain.from_iterable(spans)] for spans in values])


RECENT, RECENT_CHARACTERS = 16, 300_000
"""Contexts whose places are kept, and characters of all of them: some 8 MB of places."""
CHUNK = 4096
"""Rows whose equal contexts are read once in a check, and whose texts it holds."""
TOGETHER = 32
"""Contexts whose tokens it holds: 800 words are some 160 KB."""


@dataclass(frozen=True)
class FoundAnswer(Answer):
    """A part of a context that answers a question, or none; ``str()`` gives its text."""

    keys = ("prediction=text", "score", "start", "end", "no_answer?")

    text: str
    """As it is in the context; empty if there is no answer."""
    start: int | None
    """The first character, from 0, in the context; in that of a list of words, one space is between
    two. None if there is no answer."""
    end: int | None
    """After the last character."""
    score: float
    """The probability of this answer, or that there is none."""
    no_answer: float | None = None
    """The probability that there is none; None of a model that always gives an answer."""

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class AnswerTokens:
    """An answer by the numbers of its tokens, from 0."""

    first: int
    """The number of its first token; -1 if there is no answer."""
    last: int
    """Its last token."""
    score: float
    """As of `FoundAnswer`."""
    no_answer: float
    """As of `FoundAnswer`."""


@dataclass(frozen=True)
class GoldAnswers(RowCheck):
    """Columns of right answers; as a check: they can be read and are in the context."""

    context: str
    answers: str
    starts: str
    reads = ("context", "answers")

    @override
    def refuse(self, row: Mapping[str, Any]) -> None:
        # An object with both lists makes the column of places needless.
        if self.starts in row or isinstance(row[self.answers], Mapping):
            self.read(row, number=0)
        else:
            _listed(row, self.answers, str, number=0)

    def read(self, row: Mapping[str, Any], *, number: int) -> list[tuple[str, int]]:
        """The right answers of a row with the characters they begin at."""
        texts, starts = self._answers(row, number)
        if len(texts) != len(starts):
            raise DataError(
                f"Row {number} has {len(texts)} texts in '{self.answers}', but {len(starts)} "
                f"numbers in '{self.starts}': wanted where each begins."
            )
        context = text_of(row[self.context], self.context, number)
        for text, start in zip(texts, starts, strict=True):
            if not text.strip():
                raise DataError(
                    f"Row {number}, column '{self.answers}': an answer is empty. A question "
                    "without an answer has an empty list."
                )
            there = context[start : start + len(text)] if start >= 0 else ""
            if there != text:
                near = context.find(text)
                raise DataError(
                    f"Row {number}, column '{self.starts}': {text!r:.80} is not at {start} "
                    f"of '{self.context}', where {there!r:.80} is; "
                    + (f"it is at {near}." if near >= 0 else "it is nowhere there.")
                )
        return list(zip(texts, starts, strict=True))

    def _answers(self, row: Mapping[str, Any], number: int) -> tuple[list[str], list[int]]:
        """The texts of a row's answers and where they begin, of two columns or of one with both."""
        value = row[self.answers]
        if not isinstance(value, Mapping):
            texts = _listed(row, self.answers, str, number=number)
            return texts, _listed(row, self.starts, int, number=number)
        found = split_answers(value)
        if isinstance(found, str):
            raise DataError(f"Row {number}, column '{self.answers}': {found}.")
        return found


@text_processors.register("question")
class QuestionText(ColumnsText):
    """A question and a context to a span of the context, or to none; :meth:`of` makes its columns.

    Right answers are a list of texts, or one as JSON, empty where there is none, and beside it a
    list of the characters they begin at in the context, from 0; or one object with both lists,
    ``text`` and ``answer_start``.
    """

    answer_class = FoundAnswer
    kind = "question"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        "question": PassageColumn,
        "context": PassageColumn,
        "matches": MatchesColumn,
        "question_characters": CharactersColumn,
        "context_characters": CharactersColumn,
        "answers": AnswersColumn,
    }
    target_roles = frozenset({"answers"})
    optional = frozenset({"question_characters", "context_characters"})
    answer_settings = {"always_answers": (False, True)}  # noqa: RUF012  # as above
    always_answers: bool = False
    """Whether the model answers every question."""

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        super().__init__(inputs, targets)
        question, answers = self.inputs["question"], self.targets["answers"]
        assert isinstance(question, PassageColumn)
        assert isinstance(answers, AnswersColumn)
        self.question, self.context = question.name, self.inputs["context"].name
        self.answers, self.tokenizer = answers, question.tokenizer
        self._recent: dict[str, Sequence[Place]] = {}

    @classmethod
    def of(
        cls,
        tokenizer: Tokenizer,
        *,
        question: str = "question",
        context: str = "context",
        answers: str = "answers",
        starts: str = "answer_starts",
        max_question_length: int | None = None,
        characters: Characters | None = None,
        weights: Mapping[str, Column] = {},
    ) -> Self:
        inputs: dict[str, Column] = {
            "question": PassageColumn(question, tokenizer, limit=max_question_length),
            "context": PassageColumn(context, tokenizer),
            "matches": MatchesColumn("matches"),
        }
        if characters is not None:
            if characters.column not in (question, context):
                raise UserError(
                    f"The characters must be those of '{question}' or '{context}', but are of "
                    f"'{characters.column}': set characters.column={context}."
                )
            for role, name in (("question", question), ("context", context)):
                inputs[f"{role}_characters"] = CharactersColumn(characters, name=name)
        return cls(inputs, {"answers": AnswersColumn(answers, starts), **weights})

    @property
    @override
    def input_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        return (self.question, self.context)

    @property
    @override
    def target_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        return (self.answers.name, self.answers.starts, *self._weights)

    @property
    def _weights(self) -> list[str]:
        return [column.name for role, column in self.targets.items() if role in WEIGHTS]

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        for number, row in enumerate(rows):
            nested = isinstance(row.get(self.answers.name), Mapping)
            for name in self.columns if with_targets else self.input_columns:
                if name not in row and not (nested and name == self.answers.starts):
                    raise no_column(name, row, number)
        questions, contexts = (
            self._read([text_of(row[name], name, number) for number, row in enumerate(rows)])
            for name in self.input_columns
        )
        made: list[dict[str, Any]] = [
            {self.question: question, self.context: context, "matches": (question, context)}
            for question, context in zip(questions, contexts, strict=True)
        ]
        for number, row in enumerate(rows) if with_targets else ():
            spans = self._spans(contexts[number], row, number)
            made[number][self.answers.name] = sorted({tokens for tokens, _ in spans})
            made[number] |= {name: row[name] for name in self._weights}
        return super().encode(made, with_targets=with_targets, truncate=truncate)

    def _read(self, texts: Sequence[str]) -> list[TokenizedPassage]:
        return read_passages(self.tokenizer, texts)

    def _places(self, text: str) -> Sequence[Place]:
        """The places of a context's tokens: questions about one context come together."""
        places = self._recent.pop(text, None) or self._read([text])[0].places
        self._recent[text] = places
        while len(self._recent) > RECENT or (
            len(self._recent) > 1 and sum(map(len, self._recent)) > RECENT_CHARACTERS
        ):
            del self._recent[next(iter(self._recent))]
        return places

    def _spans(
        self, context: TokenizedPassage, row: Mapping[str, Any], number: int
    ) -> list[tuple[tuple[int, int], bool]]:
        return [
            _covered(context.places, start, start + len(text))
            for text, start in self.gold(row, number=number)
        ]

    @override
    def cut(self, encoded: Encoded) -> Encoded:
        cut, limit = dict(super().cut(encoded)), self.inputs["question"].limit
        role = "question_characters"
        if limit is not None and role in cut:
            cut[role] = self.inputs[role].cut(cut[role], limit)
        return Encoded(cut, encoded.over_length[:0])

    def gold(self, row: Mapping[str, Any], *, number: int = 0) -> list[tuple[str, int]]:
        """The right answers of a row with the characters they begin at."""
        answers = GoldAnswers(self.context, self.answers.name, self.answers.starts)
        return answers.read(row, number=number)

    def off_tokens(self, rows: Rows) -> tuple[int, int, int]:
        """Answers that begin or end within a token.

        Returns:
            How many there are, how many answers there are in all, and the first such row, or -1.
        """
        off, every, first = 0, 0, len(rows)
        numbered = enumerate(rows)
        while chunk := [*islice(numbered, CHUNK)]:
            asked: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
            for number, row in chunk:
                context = text_of(row[self.context], self.context, number)
                asked.setdefault(context, []).append((number, row))
            contexts = iter(asked)
            while texts := [*islice(contexts, TOGETHER)]:
                for passage, context in zip(self._read(texts), texts, strict=True):
                    for number, row in asked[context]:
                        exact = [is_exact for _, is_exact in self._spans(passage, row, number)]
                        first = first if all(exact) else min(first, number)
                        off, every = off + exact.count(False), every + len(exact)
        return off, every, first if off else -1

    @override
    def decode(self, outputs: Iterable[tuple[int, int, float, float]]) -> list[AnswerTokens]:
        return [AnswerTokens(*output) for output in outputs]

    @override
    def completed(self, answer: AnswerTokens, row: Mapping[str, Any]) -> FoundAnswer:
        none = None if self.always_answers else answer.no_answer
        if answer.first < 0:
            return FoundAnswer("", None, None, answer.score, none)
        text = text_of(row[self.context], self.context, 0)
        places = self._places(text)
        start, end = places[answer.first][0], places[answer.last][1]
        return FoundAnswer(text[start:end], start, end, answer.score, none)


def _covered(places: Sequence[Place], start: int, end: int) -> tuple[tuple[int, int], bool]:
    """The first and the last token with a character of a span, and whether they are exactly it."""
    first = bisect_right(places, start, key=lambda place: place[1])
    last = bisect_left(places, end, key=lambda place: place[0]) - 1
    return (first, last), places[first][0] == start and places[last][1] == end


def _listed(row: Mapping[str, Any], name: str, kind: type, *, number: int) -> list[Any]:
    value = list_in(row[name])
    fits = isinstance(value, Sequence) and not isinstance(value, str)
    if not fits or any(type(part) is not kind for part in value):
        what = "texts" if kind is str else "numbers"
        raise DataError(
            f"Row {number}, column '{name}': wanted a list of {what}, or one as JSON, found "
            f"{row[name]!r:.80}."
        )
    return list(value)
