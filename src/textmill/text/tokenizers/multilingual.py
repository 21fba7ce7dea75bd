"""SentencePiece for one or many languages, with a tag per language where a side has several."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

import sentencepiece
from typing_extensions import override

from textmill.config import Component
from textmill.config.component import setting
from textmill.errors import UserError
from textmill.text import registries
from textmill.text.metadata import SavedTextError
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import (
    LanguageConfig,
    LanguageSettings,
    Marks,
    Pieces,
    TaggedTokenizer,
    in_order,
)
from textmill.text.tokenizers.file_cache import kept
from textmill.text.tokenizers.sentencepiece import (
    DEFAULT_VOCAB_SIZE,
    ModelType,
    encode_pieces,
    load_sentencepiece,
    train_sentencepiece,
)

_TRAINED_BY = ("model_type", "character_coverage", "byte_fallback", "pieces")


@registries.tokenizers.register("multilingual")
class MultilingualTokenizer(Component, TaggedTokenizer):
    """SentencePiece pieces, then special ids the model lacks, then language tags.

    Example:
        >>> import tempfile
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
        """A tokenizer that is loaded from ``model``, or trained on ``train_on`` the first time."""

        train_on: Path | None = None
        """Text or TSV file (UTF-8, no header) to train on where the model file does not exist."""
        columns: tuple[int, ...] = (0, 1)
        """Columns of ``train_on`` to train on, from 0; a line with fewer gives those it has."""
        model: Path | None = None
        """SentencePiece model file. None: one in ``cache_dir``, named after the training."""
        vocab_size: int | None = None
        """Number of pieces, without tags. None: 5,000 if trained, else what the model has."""
        model_type: ModelType = "unigram"
        """How pieces are found; unigram is what sentencepiece's authors recommend."""
        character_coverage: float = 1.0
        """Share of characters that get a piece; 0.9995 for Chinese or Japanese."""
        byte_fallback: bool = False
        """Whether characters without a piece are written as bytes (256 pieces), not as unknown."""
        pieces: tuple[str, ...] = ()
        """Strings that are always one piece."""
        cache_dir: Path = setting(Path(".textmill"), in_key=False)
        """Folder of trained tokenizers; one found there is not trained again."""

    def __init__(self, config: Config) -> None:
        path = config.model
        if path is None:
            path = kept(_cached_model(config), lambda path: _train(config, path))
        elif not path.exists():
            _train(config, path)
        self.pieces = load_sentencepiece(path)
        size = self.pieces.vocab_size()
        if config.vocab_size not in (None, size):
            raise UserError(
                f"vocab_size={config.vocab_size}, but the model {path} has {size} pieces. "
                "Leave vocab_size out, or name another model file."
            )
        self.config = dataclasses.replace(config.filled(), vocab_size=size)
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


def _cached_model(config: MultilingualTokenizer.Config) -> Path:
    """Where the model trained with these settings on this content is kept."""
    if config.train_on is None:
        raise UserError(
            "The tokenizer needs 'model' (a SentencePiece model file) or 'train_on' (a text or "
            "TSV file)."
        )
    size = config.vocab_size or DEFAULT_VOCAB_SIZE
    trained_with = [config.columns, size, *(getattr(config, name) for name in _TRAINED_BY)]
    digest = hashlib.sha256(json.dumps(trained_with).encode())
    try:
        with config.train_on.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    except OSError as error:
        raise _unreadable(config.train_on, error) from None
    name = f"{config.train_on.stem}-{config.model_type}-{size}-{digest.hexdigest()[:12]}.model"
    return config.cache_dir / "tokenizers" / name


def _train(config: MultilingualTokenizer.Config, path: Path) -> None:
    if config.train_on is None:
        raise SavedTextError(
            f"The tokenizer's model file {path} does not exist, and there is no 'train_on' to "
            "train it on. Set train_on to a text or TSV file, or correct the path."
        )
    if not config.columns or min(config.columns) < 0:
        raise UserError(f"columns must be numbers from 0, at least one, but is {config.columns!r}.")
    try:
        train_sentencepiece(
            _texts(config.train_on, config.columns),
            path,
            vocab_size=config.vocab_size or DEFAULT_VOCAB_SIZE,
            **{name: getattr(config, name) for name in _TRAINED_BY},
        )
    except OSError as error:
        raise _unreadable(config.train_on, error) from None


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"The tokenizer's training text {path} cannot be read: {error.strerror}.")


def _texts(path: Path, columns: tuple[int, ...]) -> Iterator[str]:
    """The columns' texts; lines that are not UTF-8 are left to the data's bad rows."""
    with path.open("rb") as file:
        for number, raw in enumerate(file):
            line = raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw
            try:
                cells = line.decode().rstrip("\r\n").split("\t")
            except UnicodeDecodeError:
                continue
            yield from (cells[i] for i in columns if i < len(cells))
