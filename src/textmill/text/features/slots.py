"""Slots of a text: what is marked in it, by tags of its words or by spans of its characters."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import DividedText, ListCell, read_training, words_in
from textmill.text.features.labels import listed, names_in
from textmill.text.features.tag_spans import tag_spans
from textmill.text.metadata import Saved, refuse_twice
from textmill.text.tokenizers.tokenizer import not_text

Format = Literal["tags", "spans"]
"""How a cell has its slots: ``O B-time I-time``, a tag for each word; or ``16:24:time,39:57:day``,
the first character of each and the one after its last, counted from 0, with its name."""

OUTSIDE = "O"


class SlotSpan(NamedTuple):
    """A slot and where it is: characters ``start`` to before ``end``."""

    label: str
    start: int
    end: int


class Slots(Saved, Sequence[str]):
    """The tags that words can have: ``O``, and a first and an inner one for each slot."""

    def __init__(
        self, names: Iterable[str], *, column: str = "slots", format: Format = "tags"
    ) -> None:
        self.names, self.column, self.format = tuple(names), column, format
        if not self.names:
            raise UserError("There must be one slot at least, but there is none.")
        refuse_twice(self.names, "Slots")
        for name in self.names:
            if name.split() != [name] or "," in name:
                raise UserError(
                    f"A slot's name must be text without white space and commas, but is {name!r}."
                )
        marks = (f"{mark}-{name}" for name in self.names for mark in "BI")
        self._tags = (OUTSIDE, *marks)

    @override
    def __len__(self) -> int:
        return len(self._tags)

    @override
    def __getitem__(self, number: Any) -> Any:
        return self._tags[number]

    @property
    def listed(self) -> str:
        return listed(self.names, "slots")

    def read(self, value: Any, text: str, *, row: int) -> list[SlotSpan]:
        spans = read_slots(value, text, self.format, column=self.column, row=row)
        wrong = next((span.label for span in spans if span.label not in self.names), None)
        if wrong is not None:
            raise DataError(
                f"Row {row}, column '{self.column}': {wrong!r:.80} is no slot. {self.listed}"
            )
        return spans

    def cell(self, tags: Sequence[str], text: str) -> str:
        """What a cell would have, that marks a text by these tags."""
        if self.format == "tags":
            return " ".join(tags)
        spans = spans_of(tags, places_of(text))
        return ",".join(f"{start}:{end}:{label}" for label, start, end in spans)


def tags_of(spans: Sequence[SlotSpan], places: Sequence[tuple[int, int]]) -> list[str]:
    """A tag for each word.

    A slot that begins or ends within a word has the whole word; a word that two slots share is
    the first one's.
    """
    found, taken = [OUTSIDE] * len(places), 0
    for label, start, end in spans:
        words = [i for i, (a, b) in enumerate(places) if a < end and start < b and i >= taken]
        for number, i in enumerate(words):
            found[i] = f"{'I' if number else 'B'}-{label}"
        taken = words[-1] + 1 if words else taken
    return found


def spans_of(tags: Sequence[str], places: Sequence[tuple[int, int]]) -> list[SlotSpan]:
    """The spans that tags mark; ``I-`` without a beginning is one, as for ``conlleval``."""
    return [
        SlotSpan(label, places[first][0], places[after - 1][1])
        for label, first, after in tag_spans(tags)
    ]


def text_of(value: Any, column: str, row: int) -> str:
    """A row's text; of a list of words, with a space between two."""
    text = value if isinstance(value, str) else " ".join(words_in(value, column, row))
    if error := not_text([text], column=column, first=row):
        raise error
    return text


def places_of(text: str) -> list[tuple[int, int]]:
    """Where each word of a text begins and ends: at white space, or as the text was divided."""
    if isinstance(text, DividedText):
        return [*text.places]
    return [match.span() for match in re.finditer(r"\S+", text)]


class SpansError(DataError):
    """A cell whose spans cannot be read."""

    def __init__(self, problem: str, *, column: str, row: int, other: str = "") -> None:
        super().__init__(f"Row {row}, column '{column}': {problem}{other and f'. {other}'}")
        self.problem, self.column = problem, column


def read_slots(value: Any, text: str, format: Format, *, column: str, row: int) -> list[SlotSpan]:
    """The slots in one cell, in the order of the text, known ones or not."""
    if format == "tags":
        tags, places = words_in(value, column, row), places_of(text)
        for place, tag in enumerate(tags):
            mark, dash, label = tag.partition("-")
            if tag != OUTSIDE and not (mark in ("B", "I") and dash and label):
                raise DataError(
                    f"Row {row}, column '{column}': wanted O, or B- or I- with a slot, found "
                    f"{tag!r:.80} at {place}. Spans of characters, as 16:24:time, are read with "
                    "slots.format=spans."
                )
        if len(tags) != len(places):
            raise DataError(
                f"Row {row}, column '{column}': has {len(tags)} tags, but the text has "
                f"{len(places)} words: wanted a tag for each."
            )
        return spans_of(tags, places)
    if not isinstance(value, str):
        raise SpansError(f"wanted text, found {type(value).__name__}.", column=column, row=row)
    parts = value.parts if isinstance(value, ListCell) else value.split(",")
    cells = [cell.strip() for cell in parts] if value.strip() else []
    found = sorted((_span(cell, text, column, row) for cell in cells), key=lambda span: span.start)
    for one, two in itertools.pairwise(found):
        if two.start < one.end:
            both = " and ".join(f"{start}:{end}:{label}" for label, start, end in (one, two))
            raise SpansError(f"the slots {both} overlap.", column=column, row=row)
    return found


def _span(cell: str, text: str, column: str, row: int) -> SlotSpan:
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9}):(\S+)", cell)
    if match is None:
        problem = f"wanted spans of characters, as 16:24:time,39:57:day, found {cell!r:.80}"
        other = "Tags of words are read with slots.format=tags."
        raise SpansError(problem, column=column, row=row, other=other)
    start, end = int(match[1]), int(match[2])
    if end > len(text):
        problem = f"{cell!r:.80} ends after the text, which has {len(text)} characters."
        raise SpansError(problem, column=column, row=row)
    if not text[start:end].strip():
        raise SpansError(f"{cell!r:.80} holds no word of the text.", column=column, row=row)
    return SlotSpan(match[3], start, end)


@registries.slots.register("fitted")
class FittedSlots(Component):
    """The slots that occur in a column of ``train_data``, in the order of their first row."""

    class Config(BaseConfig):
        column: str = "slots"
        """The column of the slots."""
        text: str = "text"
        """The column of the text in which the slots are."""
        format: Format = "tags"
        """How a cell writes slots. tags: ``O B-time I-time``, one for each word; spans:
        ``16:24:time,39:57:day``, the first character of each and the one after its last, counted
        from 0."""
        names: tuple[str, ...] | None = None
        """The slots; null: those that occur."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Slots:
            if self.names is not None:
                return Slots(self.names, column=self.column, format=self.format)
            found = read_training(
                train_data,
                [self.column, self.text],
                self._labels,
                purpose="to take slots from",
                setting="slots.column or slots.text",
            )
            names = names_in(found, "slot", self.column)
            return Slots(names, column=self.column, format=self.format)

        def _labels(self, row: int, cell: Any, text: Any) -> list[str]:
            text = text_of(text, self.text, row)
            spans = read_slots(cell, text, self.format, column=self.column, row=row)
            return [span.label for span in spans]
