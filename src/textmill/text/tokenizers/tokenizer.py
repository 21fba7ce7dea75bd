"""What every tokenizer offers: encoders per side and language, a decoder, and saving as data."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_registered, write_description
from textmill.text.ragged import Ragged

Mode = Literal["source", "target"]
DESCRIPTION = "tokenizer.json"
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


class Tokenizer(ABC):
    """Base of all tokenizers. A subclass is registered by name in ``registries.tokenizers``."""

    kind: ClassVar[str]
    """The registered name; saved with the tokenizer and looked up when it is loaded."""
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

    @abstractmethod
    def save_files(self, folder: Path) -> dict[str, Any]:
        """Writes the tokenizer's files and returns its settings, as JSON values."""

    @classmethod
    @abstractmethod
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "Tokenizer":
        """Makes the tokenizer from what ``save_files`` wrote; ``settings`` may be a stranger's."""

    def save(self, folder: Path) -> None:
        """Writes all that ``load_tokenizer`` needs into ``folder``, as data: no pickle, no code."""
        folder.mkdir(parents=True, exist_ok=True)
        write_description(folder / DESCRIPTION, self.kind, self.save_files(folder))


def load_tokenizer(folder: Path) -> Tokenizer:
    """Loads a tokenizer saved by ``Tokenizer.save``.

    Only registered kinds are loaded: those of textmill and of installed packages.

    Raises:
        SavedTextError: The folder is not a saved tokenizer, or was changed.
    """
    owner, settings = read_registered(folder / DESCRIPTION, registries.tokenizers)
    if not (isinstance(owner, type) and issubclass(owner, Tokenizer)):
        name = registries.tokenizers.name_of(owner)
        raise SavedTextError(
            f"{folder / DESCRIPTION}: a tokenizer of type '{name}' is not loaded from files; it "
            "makes another, and that one is saved. Save the text processor again."
        )
    return owner.from_files(folder, settings)


def id_type(tokenizer: Tokenizer) -> str:
    """The type that ids are kept in: two bytes each if the vocabulary allows it."""
    return "<u2" if tokenizer.vocab_info.size <= 1 << 16 else "<i4"


def encode_column(encoder: Encoder, texts: Sequence[str], column: str) -> Ragged:
    """Encodes the texts of a column of rows.

    Raises:
        DataError: One is not text; names its row, from 0, and the column.
    """
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
    """Finds them for any tokenizer, by decoding each id after one that stands for text.

    Example:
        >>> from textmill.text.tokenizers.word_tokenizer import WordTokenizer
        >>> tokenizer = WordTokenizer.Config(words=("wake", "me"), marks=True).build()
        >>> pieces_of(tokenizer).begins.tolist()
        [False, True, False, False, True, True]
    """
    info, decoder = tokenizer.vocab_info, tokenizer.create_decoder()
    alone = decoder.batch([[number] for number in range(info.size)])
    # After an id of letters nothing is normalized away, as a space at a text's beginning may be.
    before = next((i for i, text in enumerate(alone) if text.isalnum()), info.unk_idx)
    behind = decoder.batch([[before, number] for number in range(info.size)])
    added = [text[len(alone[before]) :] for text in behind]
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
