"""What tokenizers of every kind do alike: special ids, language tags, both modes, saving.

A kind brings its :class:`Pieces`, text to ids and back; the frame around them is the same for all.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.errors import UserError
from weft.text.metadata import SavedTextError, settings_of
from weft.text.ragged import Ragged
from weft.text.tokenizers.languages import LANGUAGE_SETTINGS, Languages
from weft.text.tokenizers.tokenizer import (
    DESCRIPTION,
    Decoder,
    Encoder,
    Mode,
    Tokenizer,
    VocabInfo,
    not_text,
)

__all__ = ["Marks", "Pieces", "TaggedTokenizer", "language_settings"]


@dataclass(frozen=True)
class Marks:
    """The special ids among the pieces; None where the pieces have no such mark."""

    pad: int | None
    unk: int | None
    bos: int | None
    eos: int | None


class Pieces(ABC):
    """A vocabulary: text to ids without marks, and back."""

    size: int
    """Number of ids, marks included."""
    marks: Marks
    """Special ids among them."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Ragged:
        """Many texts at once."""

    @abstractmethod
    def encode_one(self, text: str) -> Sequence[int] | NDArray[Any]:
        """One text, without the cost of a batch: a pipeline's ``map`` encodes one by one."""

    @abstractmethod
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        """Texts of rows of ids from 0 to ``size``; special ids leave no trace."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """All that decides the ids."""


class TaggedTokenizer(Tokenizer):
    """Pieces, then the marks they lack, then language tags.

    A source is ``[tag] pieces eos``, a target ``bos [tag] pieces eos``. A side with one language
    has no tags.
    """

    languages: Languages
    vocabulary: Pieces

    def _frame(self, vocabulary: Pieces, languages: Languages) -> None:
        """Sets the ids; what the constructors end with."""
        self.vocabulary, self.languages = vocabulary, languages
        marks = vocabulary.marks
        size = vocabulary.size
        # Many published models lack pad (and some bos): such ids follow the pieces, as the tags do.
        known: dict[str, int] = {}
        for name in ("pad", "bos", "eos", "unk"):
            index = getattr(marks, name)
            if index is None:
                index, size = size, size + 1
            known[name] = index
        self._first_tag = size
        self._vocab_info = VocabInfo(
            size=size + len(languages.tagged),
            unk_idx=known["unk"],
            bos_idx=known["bos"],
            eos_idx=known["eos"],
            pad_idx=known["pad"],
        )

    @property
    @override
    def vocab_info(self) -> VocabInfo:
        return self._vocab_info

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        if mode not in ("source", "target"):
            raise UserError(f"create_encoder: mode must be 'source' or 'target', but is {mode!r}.")
        before = self.target_prefix(lang) if mode == "target" else self._tag("source", lang)
        return _MarkedEncoder(self.vocabulary, before, [self._vocab_info.eos_idx])

    @override
    def create_decoder(self) -> Decoder:
        return _PieceDecoder(self.vocabulary)

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        return [self._vocab_info.bos_idx, *self._tag("target", lang)]

    def fingerprint(self) -> str:
        """The sha256 of all that decides the ids: the vocabulary's bytes, marks and languages."""
        settings = json.dumps([*self.languages.settings().values(), asdict(self._vocab_info)])
        return hashlib.sha256(self.vocabulary.to_bytes() + settings.encode()).hexdigest()

    def _tag(self, side: str, lang: str | None) -> list[int]:
        offset = self.languages.offset(side, lang)
        return [] if offset is None else [self._first_tag + offset]

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._vocab_info.size} ids, {self.languages})"


class _MarkedEncoder(Encoder):
    def __init__(self, pieces: Pieces, before: Sequence[int], after: Sequence[int]) -> None:
        self._pieces, self._before, self._after = pieces, before, after

    @override
    def batch(self, texts: Sequence[str]) -> Ragged:
        # Libraries take a pair for two texts and bytes for one; nothing else is asked row by row.
        if not set(map(type, texts)) <= {str} and (error := not_text(texts)):
            raise error
        try:
            rows = self._pieces.encode(texts)
        except Exception:
            if error := not_text(texts):
                raise error from None
            raise
        return rows.wrapped(self._before, self._after)

    @override
    def __call__(self, text: str) -> NDArray[np.int32]:
        # A batch of one costs 100 microseconds, this 5.
        try:
            ids = self._pieces.encode_one(text) if type(text) is str else None
        except (RuntimeError, TypeError, UnicodeError):
            ids = None
        if ids is None:
            return super().__call__(text)  # whose error names the text
        return np.array([*self._before, *ids, *self._after], dtype=np.int32)


class _PieceDecoder(Decoder):
    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    @override
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        size = self._pieces.size
        kept = [[i for i in map(int, row) if 0 <= i < size] for row in rows]
        return self._pieces.decode(kept) if kept else []


def language_settings(
    folder: Path,
    settings: dict[str, Any],
    more: Mapping[str, type | tuple[type, ...]] | None = None,
) -> dict[str, Any]:
    """A stranger's saved settings, checked: the languages, and what a kind has ``more``."""
    kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(LANGUAGE_SETTINGS, str)
    kinds |= {"source_langs": list, "target_langs": list, **(more or {})}
    path = folder / DESCRIPTION
    settings_of(path, settings, kinds)
    if settings["tags"] not in ("auto", "always", "never"):
        raise SavedTextError(f"{path}: 'tags' cannot be {settings['tags']!r:.80}.")
    lists = {name: tuple(settings[name]) for name in ("source_langs", "target_langs")}
    return settings | lists
