"""The text processor of intents with slots: a text to a frame."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.answers import Answer, MarkedText, label_evidence
from textmill.text.cells import Rows, cell_at, whole_column
from textmill.text.columns.column import Column
from textmill.text.columns.inputs import BESIDE_WORDS, WORD_KINDS
from textmill.text.columns.labels import LabelColumn, LabelsColumn, SlotsColumn
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.words import NgramsColumn
from textmill.text.features.slots import SlotSpan, places_of, read_slots, spans_of, tags_of, text_of
from textmill.text.features.tag_spans import marked_parts
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors


@dataclass(frozen=True)
class FrameSlot(MarkedText):
    """A slot that was found in a text."""

    keys = ("label", *MarkedText.keys)

    label: str
    """The slot."""


@dataclass(frozen=True)
class Frame(Answer):
    """What a text wants, with its slots; ``str()`` writes it in brackets."""

    keys = ("prediction=__str__", "score", "predicted_intent=intent", "predicted_slots=slots")
    options = frozenset({"explain"})

    intent: str
    """The most probable intent."""
    score: float
    """Its probability."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The probability of every intent."""
    slots: tuple[FrameSlot, ...] = ()
    """In the order of the text."""
    text: str = ""
    """The text that it is of."""
    tags: tuple[str, ...] = ()
    """The tag of each word."""
    tag_scores: tuple[float, ...] = ()
    """The probability of each."""

    @override
    def __str__(self) -> str:
        parts, at = [f"[{self.intent}"], 0
        for slot in self.slots:
            parts += [self.text[at : slot.start], f"[{slot.label} {slot.text} ]"]
            at = slot.end
        return " ".join(" ".join([*parts, self.text[at:], "]"]).split())

    @override
    def evidence(self, label: str | None = None) -> tuple[str, float, float]:
        return label_evidence(self.scores, label)


@text_processors.register("intent_slot")
class IntentSlotText(ColumnsText):
    """Text, and what stands beside its words, to an intent and slots."""

    answer_class = Frame
    kind = "intent_slot"
    leading = "words"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **WORD_KINDS,
        "ngrams": NgramsColumn,
        "context": TextsColumn,
        "label": LabelColumn,
        "slots": SlotsColumn,
    }
    target_roles = frozenset({"label", "slots"})
    optional = BESIDE_WORDS | {"ngrams", "context"}

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        super().__init__(inputs, targets)
        label, slots = self.targets["label"], self.targets["slots"]
        if isinstance(label, LabelsColumn):
            raise UserError("A text has one intent: labels.multiple must be false.")
        assert isinstance(label, LabelColumn)
        assert isinstance(slots, SlotsColumn)
        self.column, self.labels, self.slots = inputs["words"].name, label.labels, slots.slots

    def gold(self, row: Mapping[str, Any], *, number: int = 0) -> tuple[str, list[SlotSpan]]:
        """The right intent and slots of a row, as its columns have them, known ones or not."""
        text = self._said(row, number)
        return row[self.labels.column], self._read(row, text, number)

    def _said(self, row: Mapping[str, Any], number: int = 0) -> str:
        return text_of(cell_at(row, self.column, number), whole_column(self.column), number)

    def _read(self, row: Mapping[str, Any], text: str, number: int) -> list[SlotSpan]:
        slots = self.slots
        cell = row[slots.column]
        return read_slots(cell, text, slots.format, column=slots.column, row=number)

    @override
    def unseen_in(self, row: Mapping[str, Any], role: str) -> list[str]:
        if role != "slots":
            return super().unseen_in(row, role)
        return [span.label for span in self.gold(row)[1] if span.label not in self.slots.names]

    def off_words(self, rows: Rows) -> tuple[int, int, int]:
        """Slots that begin or end within a word, or share a word with one before.

        Returns:
            How many there are, how many slots there are in all, and the first such row, or -1.
        """
        off, every, first = 0, 0, -1
        for number, row in enumerate(rows):
            spans = self.gold(row, number=number)[1]
            places = places_of(self._said(row, number))
            lost = len({*spans} - {*spans_of(tags_of(spans, places), places)})
            first = number if lost and first < 0 else first
            off, every = off + lost, every + len(spans)
        return off, every, first

    @override
    def with_read_targets(self, rows: Rows) -> Rows:
        """Rows with a tag for each word as their slots."""
        return [self._tagged(row, number) for number, row in enumerate(rows)]

    def _tagged(self, row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """The row with tags in its column of slots; unchanged if it lacks a column."""
        if not all(name in row for name in self.columns):
            return row
        text = self._said(row, number)
        if self.targets["slots"].unseen:
            spans = self._read(row, text, number)
        else:
            spans = self.slots.read(row[self.slots.column], text, row=number)
        return {**row, self.slots.column: tags_of(spans, places_of(text))}

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> list[Frame]:
        found = []
        for intents, tags, chances in outputs:
            chance = np.asarray(intents, dtype=np.float64)
            best = int(chance.argmax())
            frame = Frame(
                intent=self.labels[best],
                score=float(chance[best]),
                scores=dict(zip(self.labels, chance.tolist(), strict=True)),
                tags=tuple(self.slots[tag] for tag in np.asarray(tags).tolist()),
                tag_scores=tuple(np.asarray(chances, dtype=np.float64).tolist()),
            )
            found.append(frame)
        return found

    @override
    def completed(self, answer: Frame, row: Mapping[str, Any]) -> Frame:
        text = self._said(row)
        parts = marked_parts(text, places_of(text), answer.tags, answer.tag_scores)
        return replace(answer, text=text, slots=tuple(FrameSlot(kind, **p) for kind, p in parts))
