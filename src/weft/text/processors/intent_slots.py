"""The text processor of intents with slots: a text to a frame."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from weft.errors import UserError
from weft.text.columns.inputs import BESIDE_WORDS, WORD_KINDS, word_inputs
from weft.text.columns.labels import LabelColumn
from weft.text.columns.ngrams import NgramsColumn
from weft.text.columns.slots import SlotsColumn
from weft.text.features.labels import Labels
from weft.text.features.slots import Slots, SlotSpan, places_of, read_slots, text_of
from weft.text.processors.column_processor import ColumnsText, fitted_with
from weft.text.processors.tagging import MarkedText
from weft.text.processors.text_processor import Encoded, text_processors
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["Frame", "FrameSlot", "IntentSlotText"]


@dataclass(frozen=True)
class FrameSlot(MarkedText):
    """A slot that was found in a text."""

    label: str
    """The slot."""


@dataclass(frozen=True)
class Frame:
    """What a text wants, with its slots; ``str()`` writes it in brackets.

    Example:
        >>> slot = FrameSlot("time", text="at 8", start=8, end=12, score=0.9)
        >>> print(Frame("set_alarm", 0.8, text="wake me at 8", slots=(slot,)))
        [set_alarm wake me [time at 8 ] ]
    """

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


@text_processors.register("intent_slot")
class IntentSlotText(ColumnsText):
    """Text to an intent and slots.

    Args:
        tokenizer: Of words.
        labels: The intents there are.
        slots: The slots there are.
        column: The column of the text.
        max_length: Most words of a text; None is no limit.
        ngrams: Knows the n-grams of texts; None: the intents' scores are of words alone.
        beside: What is known of words, as :func:`~weft.text.columns.inputs.word_inputs` takes
            it: ``characters``, ``affixes``, ``dictionary``.

    Raises:
        UserError: The intents are several a row, or the characters or affixes are those of another
            column.
    """

    kind = "intent_slot"
    leading = "words"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **WORD_KINDS,
        "ngrams": (NgramsColumn,),
        "label": (LabelColumn,),
        "slots": (SlotsColumn,),
    }
    optional = BESIDE_WORDS | {"ngrams"}

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Labels,
        slots: Slots,
        *,
        column: str = "text",
        max_length: int | None = None,
        ngrams: Tokenizer | None = None,
        **beside: Any,
    ) -> None:
        inputs = word_inputs(tokenizer, column=column, max_length=max_length, **beside)
        if ngrams is not None:
            inputs["ngrams"] = NgramsColumn(column, ngrams)
        if labels.multiple:
            raise UserError("A text has one intent: labels.multiple must be false.")
        self.column, self.labels, self.slots = column, labels, slots
        super().__init__(inputs, {"label": LabelColumn(labels), "slots": SlotsColumn(slots)})

    def gold(self, row: Mapping[str, Any], *, number: int = 0) -> tuple[str, list[SlotSpan]]:
        """The right intent and slots of a row, as its columns have them, known ones or not.

        Raises:
            DataError: The slots cannot be read, or are of another text.
        """
        text = text_of(row[self.column], self.column, number)
        return row[self.labels.column], self._read(row, text, number)

    def _read(self, row: Mapping[str, Any], text: str, number: int) -> list[SlotSpan]:
        """The slots in a row's cell, known ones or not."""
        slots = self.slots
        cell = row[slots.column]
        return read_slots(cell, text, slots.format, column=slots.column, row=number)

    @override
    def unseen_in(self, row: Mapping[str, Any], role: str) -> list[str]:
        if role != "slots":
            return super().unseen_in(row, role)
        return [span.label for span in self.gold(row)[1] if span.label not in self.slots.names]

    def off_words(self, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
        """Slots that begin or end within a word, or share a word with one before.

        Returns:
            How many there are, how many slots there are in all, and the first such row, or -1.
        """
        off, every, first = 0, 0, -1
        for number, row in enumerate(rows):
            spans = self.gold(row, number=number)[1]
            places = places_of(text_of(row[self.column], self.column, number))
            lost = len({*spans} - {*self.slots.spans(self.slots.tags(spans, places), places)})
            first = number if lost and first < 0 else first
            off, every = off + lost, every + len(spans)
        return off, every, first

    @override
    def encode(
        self, rows: Sequence[Mapping[str, Any]], *, with_targets: bool, truncate: bool = False
    ) -> Encoded:
        """Encodes the columns; slots become a tag for each word.

        Raises:
            DataError: A row lacks a column, or has a value that cannot be used; names both.
        """
        if with_targets:
            rows = [self._tagged(row, number) for number, row in enumerate(rows)]
        return super().encode(rows, with_targets=with_targets, truncate=truncate)

    def _tagged(self, row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """The row with tags in its column of slots; as it is, where it lacks what that takes."""
        if not all(name in row for name in self.columns):
            return row
        text = text_of(row[self.column], self.column, number)
        if self.targets["slots"].unseen:
            spans = self._read(row, text, number)
        else:
            spans = self.slots.read(row[self.slots.column], text, row=number)
        return {**row, self.slots.column: self.slots.tags(spans, places_of(text))}

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> list[Frame]:
        """Answers without their text.

        Args:
            outputs: For each row the probabilities of all intents, the number of each word's tag,
                and its probability.
        """
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

    def completed(self, frame: Frame, row: Mapping[str, Any]) -> Frame:
        """An answer with its row's text, and the slots that its tags mark in it."""
        text = text_of(row[self.column], self.column, 0)
        places = places_of(text)[: len(frame.tags)]
        starts = [start for start, _ in places]
        slots = []
        for label, start, end in self.slots.spans(frame.tags, places):
            inside = [
                score
                for at, score in zip(starts, frame.tag_scores, strict=True)
                if start <= at < end
            ]
            part = text[start:end]
            slots.append(FrameSlot(label, text=part, start=start, end=end, score=min(inside)))
        return replace(frame, text=text, slots=tuple(slots))

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "IntentSlotText":
        columns = cls.load_columns(folder, settings)
        words = columns["words"]
        return cls(**fitted_with(columns), column=words.name, max_length=words.limit)
