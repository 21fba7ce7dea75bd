"""The way from text to arrays and from outputs to answers: one object, saved with checkpoints."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from textmill.config.registry import Registry
from textmill.errors import DataError, UserError
from textmill.text.answers import Translated
from textmill.text.cells import Rows, RowsByColumn, joined_text, values_of
from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import DictionaryColumn
from textmill.text.columns.numbers import WeightColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.metadata import SavedFolder, arguments_of, made_of
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Mode, Tokenizer, encode_column, id_type, not_text

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
        "textmill.text.processors.text_processor": ["seq2seq"],
    },
)
"""Kinds of text processor by the name they are saved under."""

CHARACTERS_A_TOKEN = 100
"""A longer text is not encoded to know that it is too long: SentencePiece's pieces have 16
characters at most, unless a person has added longer ones."""
_BESIDE: Final[Mapping[str, type[Any]]] = {"dictionary": DictionaryColumn, "weight": WeightColumn}
NO_SENTENCE = "is an empty list; give at least one sentence."


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


@text_processors.register("seq2seq")
class Seq2SeqText(TextProcessor):
    """Source text to target text by one tokenizer: translation, summaries, question to answer.

    A language of None is the tokenizer's default; lengths count marks, and None is no limit.
    ``beside`` the source there may be a ``dictionary`` of its words, and the row's ``weight``.
    """

    answer_class = Translated
    kind = "seq2seq"
    optional_columns = ("prefix",)

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        max_source_length: int | None = None,
        max_target_length: int | None = None,
        source_prefix: str = "",
        beside: Mapping[str, Column] = {},
    ) -> None:
        self.beside, self._kinds = beside, {"source": TextColumn("source", tokenizer), **beside}
        self.weight = beside.get("weight")
        self.tokenizer, self.source_prefix = tokenizer, source_prefix
        self.source_lang, self.target_lang = source_lang, target_lang
        self.max_source_length, self.max_target_length = max_source_length, max_target_length
        self.limits = {"source": max_source_length, "target": max_target_length}
        if tokenizer.vocab_info.eos_idx < 0 or not self.target_prefix:
            raise UserError(
                f"Generated text needs marks of its beginning and end, but the tokenizer, a "
                f"{type(tokenizer).__name__}, has none. Set tokenizer.marks=true."
            )
        for side, limit in self.limits.items():
            least = 3 + len(self.target_prefix)
            if limit is not None and limit < least:
                raise DataError(f"max_{side}_length must be {least} or more, but is {limit}.")
        for role, column in beside.items():
            column.check_beside(role, self._kinds)
        if "dictionary" in beside and source_prefix:
            raise UserError(
                "A dictionary counts the words of the source from its first on, so that "
                "task.source_prefix must be empty."
            )

    @property
    @override
    def input_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        known = [column.name for role, column in self.beside.items() if role == "dictionary"]
        return tuple(dict.fromkeys(["source", *known]))

    @property
    @override
    def target_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        return ("target", *(c.name for role, c in self.beside.items() if role == "weight"))

    @property
    @override
    def ingredients(self) -> dict[str, Any]:
        known = {n: made for c in self.beside.values() for n, made in c.fitted.items()}
        return {"tokenizer": self.tokenizer, **known}

    @property
    @override
    def arrays(self) -> dict[str, str]:
        texts = dict.fromkeys(("source", "target"), id_type(self.tokenizer))
        return texts | {role: column.kept_as for role, column in self.beside.items()}

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        for role, column in self.beside.items():
            column.save(folder / "columns" / role)
        return {**arguments_of(self, folder, without=["beside"]), "beside": [*self.beside]}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        names, beside = settings.pop("beside", []), dict[str, Column]()
        for role in map(str, names if isinstance(names, list) else [names]):
            if role not in _BESIDE:
                raise UserError(f"the setting 'beside' cannot be {names!r:.80}.")
            beside[role] = _BESIDE[role].load(folder / "columns" / role)
        return made_of(cls, folder, settings, beside=beside)

    @property
    def target_prefix(self) -> list[int]:
        """The ids that begin every target: what generation starts from."""
        return self.tokenizer.target_prefix(self.target_lang)

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        """Encodes the column ``source``, with targets ``target``, and what is beside them.

        A text may be a list of texts, of sentences say: there are spaces between.
        """
        columns, over = {}, np.zeros(len(rows), dtype=np.bool_)
        for name in ("source", "target") if with_targets else ("source",):
            encoded = self._encode(name, _column(rows, name))
            limit = self.limits[name]
            if limit is not None:
                over |= encoded.lengths > limit
                encoded = encoded.clipped(limit) if truncate else encoded
            columns[name] = encoded
        for role, column in self.beside.items():
            if with_targets or role == "dictionary":
                columns[role] = column.encode(values_of(rows, column.name))
                column.check(columns, self._kinds)
        return Encoded(columns, np.flatnonzero(over))

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[str]:
        eos = self.tokenizer.vocab_info.eos_idx
        rows = [np.asarray(row, dtype=np.int64).tolist() for row in outputs]
        kept = [row[: row.index(eos)] if eos in row else row for row in rows]
        return self.tokenizer.create_decoder().batch(kept)

    def roundtrip(self, source: ArrayLike, target: ArrayLike | None = None) -> list[str]:
        """Sentences about rows of a padded batch whose ids are not those of their text.

        Rows with the unknown id are left out: their text is lost.

        Args:
            source: *Shape:* ``[B, S]``, padded ids as the model gets them.
            target: *Shape:* ``[B, T]``, the whole targets, prefix included.
        """
        sides = [("source", source)] if target is None else [("source", source), ("target", target)]
        info = self.tokenizer.vocab_info
        found = []
        for name, ids in sides:
            # each row up to its last id that is not padding
            given = [
                row[: 1 + np.flatnonzero(row != info.pad_idx).max(initial=-1)]
                for row in np.asarray(ids)
            ]
            texts = self.decode(given)
            if name == "source":  # what is encoded gets it again
                texts = [text.removeprefix(self.source_prefix) for text in texts]
            for i, expected in enumerate(self._encode(name, texts)):
                if not np.array_equal(given[i], expected) and info.unk_idx not in given[i]:
                    found.append(
                        f"row {i}, {name} {texts[i]!r}: the batch has ids {given[i].tolist()}, "
                        f"but this text is encoded as {expected.tolist()}"
                    )
        return found

    def _encode(self, side: str, texts: Sequence[str]) -> Ragged:
        mode: Mode = "source" if side == "source" else "target"
        lang = self.source_lang if side == "source" else self.target_lang
        encoder = self.tokenizer.create_encoder(mode=mode, lang=lang)
        prefix = self.source_prefix if side == "source" else ""
        # A value that is not text is left for the error that names it.
        given = (
            [prefix + text if type(text) is str else text for text in texts] if prefix else texts
        )
        return encode_column(encoder, given, side)


def source_text(row: Mapping[str, Any]) -> str:
    """The ``source`` of a row to answer, as one text."""
    source = joined_text(row.get("source"))
    if source == []:
        raise DataError(f"'source' {NO_SENTENCE}")
    if not isinstance(source, str):
        raise DataError(f"'source' must be a string; found {type(source).__name__}.")
    return source


def longest_texts(columns: Mapping[str, Ragged], limits: Mapping[str, int | None]) -> str:
    """The longest text of each column that has one over its limit, in words."""
    found = list[str]()
    for name, limit in limits.items():
        lengths = columns[name].lengths
        row = int(lengths.argmax())
        if limit is not None and lengths[row] > limit:
            found.append(f"the longest {name} has {int(lengths[row])} tokens (row {row})")
    return ", ".join(found)


def _column(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    if isinstance(rows, RowsByColumn) and name in rows.names:
        return rows.column(name)
    texts = [joined_text(value) for value in values_of(rows, name)]
    if [] in texts:
        raise DataError(f"Row {texts.index([])}, column '{name}': {NO_SENTENCE}")
    return texts


def prefix_of(row: Mapping[str, Any], default: str) -> str:
    """What the answer to a row is to begin with: its own ``prefix``, else the default."""
    prefix = row.get("prefix", default)
    if not isinstance(prefix, str):
        raise DataError(f"'prefix' must be a string; found {type(prefix).__name__}.")
    if error := not_text([prefix]):
        raise DataError(str(error).replace("Text 0", "'prefix'"))
    return prefix


def prefix_ids(text: Seq2SeqText, prefixes: Sequence[str]) -> list[list[int]] | None:
    """The ids of texts that answers begin with, without any marks; None if all are empty."""
    distinct = sorted(set(prefixes) - {""})
    if not distinct:
        return None
    rows = [{"source": "", "target": prefix} for prefix in distinct]
    start, limit = len(text.target_prefix), text.limits["target"]
    for prefix in distinct:
        if limit is not None and len(prefix) > CHARACTERS_A_TOKEN * limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(prefix):,} characters; "
                f"an answer can begin with {limit - start - 1} tokens at most."
            )
    ids: dict[str, list[int]] = {"": []}
    for prefix, target in zip(
        distinct, text.encode(rows, with_targets=True)["target"], strict=True
    ):
        ids[prefix] = target[start:-1].tolist()
        if limit is not None and len(target) > limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(ids[prefix])} tokens; "
                f"an answer can begin with {limit - start - 1} at most."
            )
    return [ids[prefix] for prefix in prefixes]
