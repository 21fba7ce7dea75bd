"""SentencePiece for one or many languages, with a tag per language where a side has several."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import sentencepiece
from typing_extensions import override

from textmill.config import Component
from textmill.text import registries
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import (
    LanguageConfig,
    LanguageSettings,
    Marks,
    Pieces,
    TaggedTokenizer,
    in_order,
)
from textmill.text.tokenizers.sentencepiece import encode_pieces, load_sentencepiece


@registries.tokenizers.register("multilingual")
class MultilingualTokenizer(Component, TaggedTokenizer):
    """SentencePiece pieces, then special ids the model lacks, then language tags.

    Example:
        >>> import tempfile
        >>> from textmill.text import train_sentencepiece
        >>> folder = tempfile.TemporaryDirectory()
        >>> model = Path(folder.name, "eng-fra.model")
        >>> train_sentencepiece(["the cat sat", "le chat dort"] * 9, model, vocab_size=18)
        >>> langs = {"source_langs": {"eng"}, "target_langs": {"fra"}}
        >>> tokenizer = MultilingualTokenizer.from_file(model, **langs)
        >>> ids = tokenizer.create_encoder(mode="target")("le chat")
        >>> [int(ids[0]), int(ids[-1])]
        [2, 3]
        >>> tokenizer.create_decoder()(ids)
        'le chat'
        >>> folder.cleanup()
    """

    kind: ClassVar[str] = "multilingual"
    saved_file = "model", "sentencepiece.model"

    class Config(LanguageConfig):
        """A tokenizer loaded from a file."""

        model: Path
        """SentencePiece model file."""

    def __init__(self, config: Config) -> None:
        self.config = config.filled()
        self.pieces = load_sentencepiece(config.model)
        self.frame(_SentencePieces(self.pieces), self.config)

    @classmethod
    def from_file(
        cls, path: Path | str, **languages: Unpack[LanguageSettings]
    ) -> "MultilingualTokenizer":
        """Loads a trained model file; of languages in a set the order is sorted.

        Raises:
            SavedTextError: The file is missing or no model.
            UserError: A default language is not among its side's languages.
        """
        return cls(cls.Config(model=Path(path), **in_order(languages)))


class _SentencePieces(Pieces):
    def __init__(self, pieces: sentencepiece.SentencePieceProcessor) -> None:
        self._pieces, self.size = pieces, pieces.vocab_size()
        ids = (pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id())
        self.marks = Marks(*(i if i >= 0 else None for i in ids))
        self._silent = {i for i in range(self.size) if pieces.IsControl(i)}

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        return encode_pieces(self._pieces, texts)

    @override
    def encode_one(self, text: str) -> list[int]:
        return list(self._pieces.encode(text, out_type=int))

    @override
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        silent = self._silent
        return list(self._pieces.decode([[i for i in row if i not in silent] for row in rows]))

    @override
    def to_bytes(self) -> bytes:
        return bytes(self._pieces.serialized_model_proto())
