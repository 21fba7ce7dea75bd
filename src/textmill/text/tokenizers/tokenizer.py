"""What every tokenizer offers: encoders per side and language, a decoder, and saving as data."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.runtime.files import write_file
from textmill.text import registries
from textmill.text.metadata import SavedFolder, SavedTextError, arguments_of, made_of
from textmill.text.ragged import Ragged

Mode = Literal["source", "target"]
MOST = 1 << 22
"""Pieces; the largest multilingual vocabularies have a million."""
UNKNOWN = "\u2047"
"""What the unknown id is decoded to, as by SentencePiece: two question marks in one."""


@dataclass(frozen=True)
class VocabInfo:
    """Size of a vocabulary and its special ids."""

    size: int
    """Number of ids with the language tags; the embedding has as many rows."""
    unk_idx: int
    """Stands for what the vocabulary cannot write."""
    bos_idx: int
    """Begins every target."""
    eos_idx: int
    """Ends every source and target."""
    pad_idx: int
    """Fills rows of a batch up to the longest."""


class Encoder(ABC):
    """Turns text into ids: ``encoder(text)`` one row, ``encoder.batch(texts)`` many, fast."""

    @abstractmethod
    def batch(self, texts: Sequence[str]) -> Ragged:
        """Encodes a list of texts at once; row ``i`` belongs to ``texts[i]``."""

    def __call__(self, text: str) -> NDArray[np.int32]:
        """Encodes one text. *Shape:* ``[length]``."""
        return self.batch([text])[0]


class Decoder(ABC):
    """Turns ids into text; special ids and tags leave no trace in it."""

    @abstractmethod
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Decodes many rows at once."""

    def __call__(self, ids: Sequence[int]) -> str:
        """Decodes one row."""
        return self.batch([ids])[0]


class Tokenizer(SavedFolder):
    """Base of all tokenizers. A subclass is registered by name in ``registries.tokenizers``.

    One with a Config is saved by its settings, and by the file that one of them may stand for.
    """

    registry = registries.tokenizers
    description = "tokenizer.json"
    Config: ClassVar[type[Any]]
    config: Any
    saved_file: ClassVar[tuple[str, str] | None] = None
    """The setting that names the vocabulary's file, or is what it has, and the name it is saved
    by."""
    ordered: ClassVar[bool] = True
    """Whether ids are in the order of their text."""
    closes: ClassVar[bool] = False
    """Whether a text that is cut keeps its last id: the mark that a model was trained to read."""
    before_word: ClassVar[str] = ""
    """What is put before a word that is encoded by itself, so that it is as within a text."""

    @property
    @abstractmethod
    def vocab_info(self) -> VocabInfo:
        """Size and special ids."""

    @abstractmethod
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        """An encoder for one side; ``lang`` None is the side's default language."""

    @abstractmethod
    def create_decoder(self) -> Decoder:
        """A decoder of ids of either side."""

    @abstractmethod
    def target_prefix(self, lang: str | None = None) -> list[int]:
        """The ids that begin every target in ``lang``: what generation starts from."""

    def file_content(self) -> bytes:
        """What the file of ``saved_file`` has."""
        raise NotImplementedError

    @classmethod
    def read_file(cls, path: Path) -> Any:
        """The setting that ``saved_file`` stands for; the file's path, by default."""
        return path

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        if self.saved_file is None:
            return arguments_of(self.config, folder)
        setting, name = self.saved_file
        write_file(folder / name, self.file_content())
        return arguments_of(self.config, folder, without=[setting])

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        known = {}
        if cls.saved_file is not None:
            setting, name = cls.saved_file
            known[setting] = cls.read_file(folder / name)
        config = made_of(cls.Config, folder, settings, **known)
        try:
            made: Self = config.build()
        except UserError as error:
            if cls.saved_file is None:
                raise
            place = folder / cls.saved_file[1]
            raise SavedTextError(f"{place}: {error} Save the text processor again.") from None
        return made


def load_tokenizer(folder: Path) -> Tokenizer:
    """Loads a tokenizer saved by ``Tokenizer.save``."""
    return Tokenizer.load(folder)


def id_type(tokenizer: Tokenizer) -> str:
    """The type that ids are kept in: two bytes each if the vocabulary allows it."""
    return "<u2" if tokenizer.vocab_info.size <= 1 << 16 else "<i4"


def encode_column(encoder: Encoder, texts: Sequence[str], column: str) -> Ragged:
    """Encodes the texts of a column; a DataError names the row, from 0, of one that is no text."""
    try:
        return encoder.batch(texts)
    except DataError:
        error = not_text(texts, column=column)
        if error is None:
            raise
        raise error from None


def not_text(
    texts: Iterable[str], *, column: str | None = None, first: int = 0
) -> DataError | None:
    """An error that names the first one that no tokenizer can encode; None if all are text.

    With a ``column`` they are rows of it, numbered from ``first``.
    """
    for i, text in enumerate(texts, first):
        try:
            text.encode()
        except (AttributeError, UnicodeEncodeError):
            named = f"Text {i}" if column is None else f"Row {i}, column '{column}':"
            return DataError(
                f"{named} is not text, or holds half of a surrogate pair: {text!r:.80}. "
                "Give strings decoded as UTF-8."
            )
    return None


@dataclass(frozen=True)
class PieceKinds:
    """Facts about each id of a vocabulary."""

    begins: NDArray[np.bool_]
    """Whether white space is before it in a text, or is all of it. *Shape:* ``[V]``."""
    plain: NDArray[np.bool_]
    """Whether it stands for text: no mark, no padding, not the unknown. *Shape:* ``[V]``."""
    spaces: bool = False
    """Whether a space is always an id of its own, as among characters; else words begin with it."""

    def __len__(self) -> int:
        return len(self.begins)


def pieces_of(tokenizer: Tokenizer) -> PieceKinds:
    """Finds them for any tokenizer, by decoding each id after one that stands for text."""
    info, decoder = tokenizer.vocab_info, tokenizer.create_decoder()
    alone = decoder.batch([[number] for number in range(info.size)])
    # After an id of letters nothing is normalized away, as a space at a text's beginning may be.
    before = next((i for i, text in enumerate(alone) if text.isalnum()), info.unk_idx)
    after = decoder.batch([[before, number] for number in range(info.size)])
    added = [text[len(alone[before]) :] for text in after]
    plain = np.array([bool(text) for text in added])
    plain[info.unk_idx] = False
    begins = [text[:1].isspace() for text in added]
    joined = any(begin and len(text) > 1 for begin, text in zip(begins, added, strict=True))
    return PieceKinds(np.array(begins), plain, spaces=not joined)


class TooLargeVocabularyError(UserError):
    """A text gives fewer pieces than were asked for: ``largest``, special ones included."""

    def __init__(self, vocab_size: int, largest: int) -> None:
        super().__init__(
            f"vocab_size={vocab_size} is too large for the training text, which gives at most "
            f"{largest} pieces. Set vocab_size to {largest} or less, or train on more text."
        )
        self.largest = largest


def refuse_huge(vocab_size: int) -> None:
    """Refuses more pieces than any vocabulary has: their memory is taken before a text is read."""
    if vocab_size > MOST:
        raise UserError(f"vocab_size must be at most {MOST:,}, but is {vocab_size:,}.")
