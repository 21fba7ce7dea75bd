"""What tokenizers of every kind do alike: special ids, languages and their tags, modes, saving.

A kind brings its :class:`Pieces`, text to ids and back; the frame around them is the same for all.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config import Config as BaseConfig
from textmill.errors import UserError
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import (
    Decoder,
    Encoder,
    Mode,
    Tokenizer,
    VocabInfo,
    not_text,
)

Tags = Literal["auto", "always", "never"]


class LanguageConfig(BaseConfig):
    """The languages of both sides; one of both sides has one tag."""

    source_langs: tuple[str, ...] = ("source",)
    """Languages of the source side."""
    target_langs: tuple[str, ...] = ("target",)
    """Languages of the target side."""
    default_source_lang: str | None = None
    """Language of a source whose language is not given. None: the first."""
    default_target_lang: str | None = None
    """Language of a target whose language is not given. None: the first."""
    tags: Tags = "auto"
    """Language tags: on sides with several languages (auto), on both (always), or never."""

    def filled(self) -> Self:
        """The same with the default languages filled in, once they are checked."""
        defaults = {}
        for side in ("source", "target"):
            langs, given = getattr(self, f"{side}_langs"), getattr(self, f"default_{side}_lang")
            if not langs or len(set(langs)) < len(langs):
                raise UserError(
                    f"{side}_langs must name one language or several different ones, but is "
                    f"{langs!r:.200}."
                )
            if given is not None and given not in langs:
                raise UserError(
                    f"default_{side}_lang is '{given}', which is not in {side}_langs: "
                    f"{_listed(langs)}."
                )
            defaults[f"default_{side}_lang"] = given or langs[0]
        return replace(self, **defaults)

    @property
    def tagged(self) -> tuple[str, ...]:
        """The languages that have a tag, in the order of their ids."""
        sides = [side for side in (self.source_langs, self.target_langs) if self._has_tags(side)]
        return tuple(dict.fromkeys(lang for side in sides for lang in side))

    def offset(self, side: str, lang: str | None) -> int | None:
        """Which tag a text of that side gets, from 0; None if the side has no tags."""
        langs, lang = getattr(self, f"{side}_langs"), lang or getattr(self, f"default_{side}_lang")
        if lang not in langs:
            raise UserError(
                f"'{lang}' is not a {side} language of this tokenizer; these are: {_listed(langs)}."
            )
        return self.tagged.index(lang) if self._has_tags(langs) else None

    def language_settings(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(LanguageConfig)}

    def _has_tags(self, langs: tuple[str, ...]) -> bool:
        return self.tags == "always" or (self.tags == "auto" and len(langs) > 1)


def _listed(langs: Sequence[str]) -> str:
    """The names of 200 languages, no more: a list from a file may be of any length."""
    return ", ".join(langs[:200]) + (", ..." if len(langs) > 200 else "")


@dataclass(frozen=True)
class Marks:
    """The special ids among the pieces; None: the pieces have no such mark."""

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

    languages: LanguageConfig
    vocabulary: Pieces

    def frame(self, vocabulary: Pieces, config: LanguageConfig) -> None:
        """Sets the ids; what the constructors end with."""
        self.vocabulary, self.languages = vocabulary, (languages := config.filled())
        size = vocabulary.size
        # Many published models lack pad (and some bos): such ids follow the pieces, as the tags do.
        known: dict[str, int] = {}
        for name in ("pad", "bos", "eos", "unk"):
            index = getattr(vocabulary.marks, name)
            if index is None:
                index, size = size, size + 1
            known[f"{name}_idx"] = index
        self._first_tag = size
        self._vocab_info = VocabInfo(size=size + len(languages.tagged), **known)

    @classmethod
    def from_file(cls, path: Path | str, **settings: Any) -> Self:
        """Loads the file of the pieces, with settings of the Config; languages may be a set."""
        if cls.saved_file is None:
            raise UserError(f"{cls.__name__} has no file: build it from its Config.")
        for side in {"source_langs", "target_langs"} & set(settings):
            langs = settings[side]
            is_set = isinstance(langs, set | frozenset)  # sorted, so that tags have one order
            settings[side] = (
                (langs,) if isinstance(langs, str) else tuple(sorted(langs) if is_set else langs)
            )
        make: Any = cls
        made: Self = make(cls.Config(**{cls.saved_file[0]: Path(path)}, **settings))
        return made

    @property
    @override
    def vocab_info(self) -> VocabInfo:
        return self._vocab_info

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        if mode not in ("source", "target"):
            raise UserError(f"create_encoder: mode must be 'source' or 'target', but is {mode!r}.")
        before = self.target_prefix(lang) if mode == "target" else self.tag_ids("source", lang)
        return MarkedEncoder(self.vocabulary, before, [self._vocab_info.eos_idx])

    @override
    def create_decoder(self) -> Decoder:
        return _PieceDecoder(self.vocabulary)

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        return [self._vocab_info.bos_idx, *self.tag_ids("target", lang)]

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        return super().save_files(folder) | self.languages.language_settings()

    @override
    def file_content(self) -> bytes:
        return self.vocabulary.to_bytes()

    def fingerprint(self) -> str:
        """The sha256 of all that decides the ids: the vocabulary's bytes, marks and languages."""
        languages = self.languages.language_settings().values()
        settings = json.dumps([*languages, asdict(self._vocab_info)])
        return hashlib.sha256(self.vocabulary.to_bytes() + settings.encode()).hexdigest()

    def tag_ids(self, side: str, lang: str | None) -> list[int]:
        """The language tag of a text of that side; empty if it has none."""
        offset = self.languages.offset(side, lang)
        return [] if offset is None else [self._first_tag + offset]

    @override
    def __repr__(self) -> str:
        langs = self.languages.source_langs, self.languages.target_langs
        sides = "->".join("+".join(side) for side in langs)
        return f"{type(self).__name__}({self._vocab_info.size} ids, {sides})"


class MarkedEncoder(Encoder):
    """Pieces of a text with marks before and after them."""

    def __init__(self, pieces: Pieces, before: Sequence[int], after: Sequence[int]) -> None:
        self._pieces, self._before, self._after = pieces, before, after

    @override
    def batch(self, texts: Sequence[str]) -> Ragged:
        # Libraries take a pair for two texts and bytes for one; nothing else is asked row by row.
        if not set(map(type, texts)) <= {str} and (error := not_text(texts)):
            raise error
        if len(texts) == 1 and (row := self._one(texts[0])) is not None:
            return Ragged(row, np.array([0, len(row)], dtype=np.int64))
        try:
            rows = self._pieces.encode(texts)
        except Exception:
            if error := not_text(texts):
                raise error from None
            raise
        return rows.wrapped(self._before, self._after)

    @override
    def __call__(self, text: str) -> NDArray[np.int32]:
        return super().__call__(text) if (row := self._one(text)) is None else row

    def _one(self, text: str) -> NDArray[np.int32] | None:
        """The ids of one text, faster than a batch of one; None if it is not text."""
        try:
            ids = self._pieces.encode_one(text) if type(text) is str else None
        except (RuntimeError, TypeError, UnicodeError):
            ids = None  # the batch's error names the text
        return None if ids is None else np.array([*self._before, *ids, *self._after], np.int32)


class _PieceDecoder(Decoder):
    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    @override
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        size = self._pieces.size
        kept = [[i for i in map(int, row) if 0 <= i < size] for row in rows]
        return self._pieces.decode(kept) if kept else []
