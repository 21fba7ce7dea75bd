"""A tokenizer fitted on the training data itself, so that a recipe names its files once."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from typing_extensions import override

from weft.config import registries
from weft.config.component import Component, setting
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.text.multilingual import MultilingualTokenizer
from weft.text.sentencepiece import ModelType, train_sentencepiece

__all__ = ["FittedTokenizer"]


@registries.tokenizers.register("fitted")
class FittedTokenizer(Component):
    """Makes a :class:`MultilingualTokenizer` from all text of ``train_data``, which gives rows.

    The SentencePiece model is trained once and kept in ``cache_dir`` under a name made of the text
    and the settings.
    """

    class Config(BaseConfig):
        """Settings of the fitted tokenizer."""

        vocab_size: int = 5000
        """Pieces of the vocabulary, special ones included; both languages share them."""
        model_type: ModelType = "unigram"
        """How pieces are found; unigram is what sentencepiece's authors recommend."""
        character_coverage: float = 1.0
        """Share of characters that get a piece; 0.9995 for Chinese or Japanese."""
        byte_fallback: bool = False
        """Whether characters without a piece become bytes (256 pieces), not the unknown id."""
        source_langs: tuple[str, ...] = ("source",)
        """Languages of the source side."""
        target_langs: tuple[str, ...] = ("target",)
        """Languages of the target side."""
        cache_dir: Path = setting(Path(".weft"), in_key=False)
        """Folder of trained tokenizers, from the working directory; what is there is not remade."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, str]]
        ) -> MultilingualTokenizer:
            """Trains the tokenizer, or finds it trained."""
            texts = list(_texts(train_data))
            path = self.cache_dir / "tokenizers" / f"{self._digest(texts)}.model"
            if not path.exists():
                train_sentencepiece(
                    texts,
                    path,
                    vocab_size=self.vocab_size,
                    model_type=self.model_type,
                    character_coverage=self.character_coverage,
                    byte_fallback=self.byte_fallback,
                )
            return MultilingualTokenizer.from_file(
                path, source_langs=self.source_langs, target_langs=self.target_langs
            )

        def _digest(self, texts: list[str]) -> str:
            made_by = [
                self.vocab_size,
                self.model_type,
                self.character_coverage,
                self.byte_fallback,
            ]
            digest = hashlib.sha256(json.dumps(made_by).encode())
            digest.update("\n".join(texts).encode())
            return f"{self.model_type}-{self.vocab_size}-{digest.hexdigest()[:12]}"

    def __init__(self, config: Config) -> None:
        self.config = config


def _texts(rows: Iterable[Mapping[str, str]]) -> Iterable[str]:
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserError(
                "A fitted tokenizer needs train_data that yields rows of text; "
                f"found {type(row).__name__}. Give 'tokenizer' its own training text instead."
            )
        yield from row.values()
