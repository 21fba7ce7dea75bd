"""A tokenizer fitted on the training data itself, so that a recipe names its files once."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.runtime.files import write_atomic
from textmill.text import registries
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer, CharacterTokenizer
from textmill.text.tokenizers.file_cache import kept
from textmill.text.tokenizers.multilingual import MultilingualTokenizer
from textmill.text.tokenizers.sentencepiece import ModelType, train_sentencepiece
from textmill.text.tokenizers.tokenizer import Tokenizer, fit_at_most, refuse_huge
from textmill.text.tokenizers.training_text import TrainingText, training_text

Kind = Literal[
    "sentencepiece",
    "bpe",
    "byte_bpe",
    "words",
    "characters",
    "bytes",
]
_BELONGS_TO: dict[str, tuple[str, ...]] = {
    "model_type": ("sentencepiece",),
    "character_coverage": ("sentencepiece", "bpe", "characters"),
    "byte_fallback": ("sentencepiece",),
    "min_count": ("bpe", "byte_bpe", "words", "characters"),
    "lowercase": ("bpe", "words"),
}
"""Settings that not all kinds have, and which have them."""
_FITTED = 3
"""Counts the changes of how files are fitted, and of which rows are read of the same file (3:
numbers in JSON lines): a cached one of an older textmill is not taken."""
MOST_CHARACTERS = 100_000_000
"""SentencePiece holds all its text, in 22 bytes a character: more than 2.2 GB are not needed."""


_log = logging.getLogger(__name__)


@registries.tokenizers.register("fitted")
class FittedTokenizer(Component):
    """Makes a tokenizer from all text of ``train_data``, which gives rows.

    It is kept in ``cache_dir`` under a name made of the data's fingerprint and the settings; where
    it is found there as it was written, no text is read. Of data without a fingerprint the text
    itself is in the name.
    """

    class Config(BaseConfig):
        """Settings of the fitted tokenizer."""

        kind: Kind = "sentencepiece"
        """SentencePiece; bpe, byte_bpe, words as a tokenizer.json; or each character, or each
        byte. words lose spaces around punctuation."""
        vocab_size: int = 5000
        """Most pieces of the vocabulary, special ones included; both languages share them. A small
        text gives fewer, which a line says. Bytes take 260."""
        model_type: ModelType = "unigram"
        """How SentencePiece finds pieces; unigram is what its authors recommend."""
        character_coverage: float = 1.0
        """Share of characters that get a piece; 0.9995 for Chinese or Japanese."""
        byte_fallback: bool = False
        """Whether SentencePiece writes characters without a piece as bytes (256 pieces), not as
        unknown."""
        min_count: int = 1
        """How often a word or character must occur to be known, a pair of pieces to be one (not
        for sentencepiece)."""
        lowercase: bool = False
        """Whether texts are written small first (bpe, words)."""
        columns: tuple[str, ...] = ()
        """The columns of the rows whose text it is fitted on; empty: all of them."""
        source_langs: tuple[str, ...] = ("source",)
        """Languages of the source side."""
        target_langs: tuple[str, ...] = ("target",)
        """Languages of the target side."""
        cache_dir: Path = setting(Path(".textmill"), in_key=False)
        """Folder of trained tokenizers, from the working directory; what is there is not remade."""

        def __post_init__(self) -> None:
            for name, kinds in _BELONGS_TO.items():
                if self.kind not in kinds and getattr(self, name) != getattr(type(self), name):
                    raise UserError(
                        f"tokenizer.{name} is not a setting of the kind '{self.kind}'; these have "
                        f"it: {', '.join(kinds)}. Leave it out, or choose one of these."
                    )
            refuse_huge(self.vocab_size)
            if self.min_count < 1:
                raise UserError(f"tokenizer.min_count must be 1 or more, but is {self.min_count}.")
            if not 0 < self.character_coverage <= 1:
                raise UserError(
                    "tokenizer.character_coverage must be above 0, at most 1, but is "
                    f"{self.character_coverage}."
                )

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, str]]
        ) -> Tokenizer:
            """Fits the tokenizer, or finds it fitted."""
            langs = {"source_langs": self.source_langs, "target_langs": self.target_langs}
            if self.kind == "bytes":
                return self._bytes(langs)
            fits = {"sentencepiece": self._sentencepiece, "characters": self._characters}
            with training_text(train_data, self.columns) as text:
                return fits.get(self.kind, self._from_json)(text, langs)

        def _sentencepiece(self, text: TrainingText, langs: dict[str, Any]) -> Tokenizer:
            settings = self._settings("model_type", "character_coverage", "byte_fallback")

            def fit(path: Path, vocab_size: int) -> None:
                some = text.at_most(MOST_CHARACTERS)
                train_sentencepiece(some, path, vocab_size=vocab_size, **settings)

            key = [self.model_type, self.vocab_size, *settings.values()]
            return MultilingualTokenizer.from_file(self._fitted(key, text, ".model", fit), **langs)

        def _from_json(self, text: TrainingText, langs: dict[str, Any]) -> Tokenizer:
            # Imported here: the package takes 30 ms that other kinds need not wait for.
            from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer
            from textmill.text.tokenizers.train_tokenizer import JsonKind, fit_tokenizer_json

            (kind,) = (kind for kind in get_args(JsonKind) if kind == self.kind)
            settings = self._settings("character_coverage", "min_count", "lowercase")

            def fit(path: Path, vocab_size: int) -> None:
                raw = fit_tokenizer_json(text, kind, vocab_size=vocab_size, **settings)
                write_atomic(path, raw)
                _log.info("trained a %s tokenizer: %s", kind, path)

            key = [kind, kind, self.vocab_size, *settings.values()]
            return HuggingFaceTokenizer.from_file(self._fitted(key, text, ".json", fit), **langs)

        def _characters(self, text: TrainingText, langs: dict[str, Any]) -> Tokenizer:
            settings = self._settings("character_coverage", "min_count")

            def fit(path: Path, vocab_size: int) -> None:
                made = CharacterTokenizer.fit(text, vocab_size=vocab_size, **settings)
                write_atomic(path, made.config.characters.encode())
                _log.info("trained a characters tokenizer: %s", path)

            key = ["characters", self.vocab_size, *settings.values()]
            characters = self._fitted(key, text, ".txt", fit).read_bytes().decode()
            return CharacterTokenizer(CharacterTokenizer.Config(characters=characters, **langs))

        def _bytes(self, langs: dict[str, Any]) -> Tokenizer:
            made = ByteTokenizer(ByteTokenizer.Config(**langs))
            if self.vocab_size < made.vocabulary.size:
                raise UserError(
                    f"vocab_size={self.vocab_size} is too small for bytes, which take "
                    f"{made.vocabulary.size} with the special ids. Set vocab_size to "
                    f"{made.vocabulary.size} or more."
                )
            return made

        def _settings(self, *names: str) -> dict[str, Any]:
            return {name: getattr(self, name) for name in names}

        def _fitted(
            self, key: list[Any], text: TrainingText, suffix: str, fit: Callable[[Path, int], None]
        ) -> Path:
            """The file, made where it is not there: of fewer pieces where the text gives fewer."""
            digest = hashlib.sha256(json.dumps([_FITTED, *key, text.key]).encode()).hexdigest()
            name = f"{key[0]}-{self.vocab_size}-{digest[:12]}{suffix}"
            path = self.cache_dir / "tokenizers" / name
            return kept(path, lambda to: fit_at_most(partial(fit, to), self.vocab_size))
