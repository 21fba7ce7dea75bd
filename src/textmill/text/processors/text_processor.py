"""The way from text to arrays and from outputs to answers: one object, saved with checkpoints."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.registry import Registry
from textmill.text.cells import Rows
from textmill.text.metadata import SavedFolder
from textmill.text.ragged import Ragged

text_processors = Registry(
    "text processor",
    {
        "textmill.text.processors.column_processor": ["columns"],
        "textmill.text.processors.ensemble": ["ensemble"],
        "textmill.text.processors.extract": ["extract"],
        "textmill.text.processors.intent_slots": ["intent_slot"],
        "textmill.text.processors.language_model": ["language", "masked"],
        "textmill.text.processors.question_answering": ["question"],
        "textmill.text.processors.tagging": ["tagging", "trees"],
        "textmill.text.processors.texts": ["classification", "embedding", "ranking", "regression"],
        "textmill.text.processors.seq2seq": ["seq2seq"],
    },
)
"""Kinds of text processor by the name they are saved under."""


@dataclass(frozen=True)
class Encoded(Mapping[str, Ragged]):
    """Encoded columns, and which rows are over a length limit; ``encoded["source"]`` is a column.

    A row over the limit is still in the columns, whole: whoever asked decides what becomes of it.
    """

    columns: Mapping[str, Ragged]
    over_length: NDArray[np.int64]
    """Indices of rows longer than a limit, rising; empty where there is none."""

    @override
    def __getitem__(self, name: str) -> Ragged:
        return self.columns[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    @override
    def __len__(self) -> int:
        return len(self.columns)

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))


class TextProcessor(SavedFolder):
    """Rows of text to arrays, and a model's outputs to answers."""

    registry = text_processors
    description = "text.json"
    input_columns: ClassVar[tuple[str, ...]]
    """Columns every row must have, in prediction too."""
    target_columns: ClassVar[tuple[str, ...]]
    """Columns that only training and evaluation need."""
    optional_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a row to predict may have, too."""
    weight: Any = None
    """The column of the weights of rows; None: all count alike."""
    answer_class: ClassVar[type[Any] | None] = None
    """What its task answers with: its method ``row`` gives plain data."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.input_columns, *self.target_columns)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The input columns that are texts: those whose words an explanation leaves out."""
        return self.input_columns

    def divided(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row to predict whose text has its words, if they are not those of white space."""
        return row

    @property
    def ingredients(self) -> dict[str, Any]:
        """The recipe's ingredients that this path holds and stands for when a run is loaded."""
        return {}

    def ingredients_for(self, names: Collection[str]) -> dict[str, Any]:
        """The :attr:`ingredients` for a recipe whose ingredients with settings have these names."""
        return self.ingredients

    @property
    def arrays(self) -> dict[str, str]:
        """What ``encode`` gives with targets, by name, each with the type that it is kept in."""
        return dict.fromkeys(self.columns, "<i4")

    def difference(self, other: "TextProcessor") -> str:
        """What differs from another path that the same settings made, in words; empty: nothing."""
        return ""

    @abstractmethod
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        """Encodes rows; ``truncate`` cuts those over a length limit, else they are reported."""

    @abstractmethod
    def decode(self, outputs: Iterable[Any]) -> list[Any]:
        """One answer for each of a model's outputs."""


def load_text_processor(folder: Path) -> TextProcessor:
    """Loads a text processor saved by ``TextProcessor.save``."""
    return TextProcessor.load(folder)
