"""Training and reading SentencePiece models; special ids are pad 0, unk 1, bos 2, eos 3.

Source: Kudo and Richardson, 2018, https://arxiv.org/abs/1808.06226.
"""

import io
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import sentencepiece

from textmill.errors import UserError
from textmill.runtime.files import make_folder, write_atomic
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import TooLargeVocabularyError, not_text, refuse_huge

ModelType = Literal["unigram", "bpe"]
DEFAULT_VOCAB_SIZE = 5_000
LARGEST_MODEL = 1 << 29
"""Bytes; a model of 256,000 pieces has about 5 million."""
LONGEST_SENTENCE = 4_000
"""Bytes of one training sentence; SentencePiece leaves out those over 4,192 without a word."""
CHUNK = 65_536
"""Texts encoded at once: the Python integers of a whole corpus would not fit into memory."""

_log = logging.getLogger(__name__)


def train_sentencepiece(
    texts: Iterable[str],
    path: Path,
    *,
    vocab_size: int = DEFAULT_VOCAB_SIZE,
    model_type: ModelType = "unigram",
    character_coverage: float = 1.0,
    byte_fallback: bool = False,
    pieces: Sequence[str] = (),
) -> None:
    """Trains a model on texts and writes it to ``path``, whole or not at all.

    The same texts and settings give the same bytes.

    Args:
        texts: Each line of a text is one sentence, long ones are cut between words.
        path: The model file to write; its folder is made.
        vocab_size: Number of pieces, the four special ones included.
        model_type: How pieces are found.
        character_coverage: Share of the text's characters that get a piece; 0.9995 for Chinese or
            Japanese, where the rest would take up the vocabulary.
        byte_fallback: Writes characters without a piece as their UTF-8 bytes, so that nothing is
            unknown; takes 256 pieces.
        pieces: Strings that are always one piece.

    Raises:
        UserError: The text is empty, or no vocabulary of this size can be made; names the nearest
            possible size.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = Path(folder.name, "spm.model")
        >>> train_sentencepiece(["the cat sat", "the cat ran"] * 9, path, vocab_size=15)
        >>> load_sentencepiece(path).vocab_size()
        15
        >>> folder.cleanup()
    """
    model = sentencepiece_model(
        texts,
        vocab_size=vocab_size,
        model_type=model_type,
        character_coverage=character_coverage,
        byte_fallback=byte_fallback,
        pieces=pieces,
    )
    make_folder(path.parent)
    write_atomic(path, model)
    _log.info("trained a %s tokenizer of %d pieces: %s", model_type, vocab_size, path)


def sentencepiece_model(
    texts: Iterable[str],
    *,
    vocab_size: int,
    byte_fallback: bool = False,
    pieces: Sequence[str] = (),
    **settings: Any,
) -> bytes:
    """The bytes of the model that :func:`train_sentencepiece` writes, with the same arguments.

    Raises:
        UserError: As there; an error of the texts is theirs.
    """
    refuse_huge(vocab_size)
    least = 5 + len(pieces) + 256 * byte_fallback
    if vocab_size < least:
        raise UserError(
            f"vocab_size={vocab_size} is too small: special pieces take 4, user-defined pieces "
            f"{len(pieces)}, bytes {256 * byte_fallback}. Set vocab_size to {least} or more."
        )
    model, broken = io.BytesIO(), list[Exception]()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(texts, broken),
            model_writer=model,
            vocab_size=vocab_size,
            byte_fallback=byte_fallback,
            user_defined_symbols=[*pieces],
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            minloglevel=2,  # errors only: the trainer's own log has hundreds of lines
            **settings,
        )
    except Exception as error:
        if broken:  # SentencePiece would hide what the texts raised in an error of its own
            raise broken[0] from None
        if not isinstance(error, RuntimeError):
            raise
        raise _explained(str(error), vocab_size) from None
    return model.getvalue()


def load_sentencepiece(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Reads a model file.

    Raises:
        SavedTextError: The file is missing, or no SentencePiece model.
    """
    return parse_sentencepiece(read_bytes(path, largest=LARGEST_MODEL), path)


def parse_sentencepiece(raw: bytes, path: Path) -> sentencepiece.SentencePieceProcessor:
    """A model of its bytes; ``path`` is where they are from.

    Raises:
        SavedTextError: They are no SentencePiece model.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = bool(raw) and processor.LoadFromSerializedProto(raw)
    except (RuntimeError, OSError):
        loaded = False
    if not loaded or not processor.vocab_size():
        raise SavedTextError(
            f"{path} is not a SentencePiece model ({len(raw):,} bytes). Train or copy it again."
        )
    return processor


def encode_pieces(processor: sentencepiece.SentencePieceProcessor, texts: Sequence[str]) -> Ragged:
    """Encodes texts in chunks, each in C++ by one thread.

    Two were 4 % faster (209,000 sentences a second with one), and take CPU time from training.
    """
    try:
        parts = [
            Ragged.from_lists(
                processor.encode([*texts[i : i + CHUNK]], out_type=int, num_threads=1)
            )
            for i in range(0, len(texts), CHUNK)
        ]
    except (RuntimeError, TypeError, UnicodeEncodeError):
        if error := not_text(texts):
            raise error from None
        raise
    return Ragged.concatenate(parts)


def _sentences(texts: Iterable[str], broken: list[Exception]) -> Iterator[str]:
    """Lines of at most LONGEST_SENTENCE bytes; an error of ``texts`` is kept in ``broken``."""
    try:
        for text in texts:
            for line in text.splitlines():
                if len(line) * 4 <= LONGEST_SENTENCE or len(line.encode()) <= LONGEST_SENTENCE:
                    yield line
                else:
                    yield from _cut(line)
    except Exception as error:
        broken.append(error)
        raise


def _cut(line: str) -> Iterator[str]:
    """Pieces of a long line, cut between words; a single longer word is cut inside."""
    at_most = LONGEST_SENTENCE // 4  # characters; UTF-8 takes 4 bytes or fewer for one
    start = 0
    while start < len(line):
        end = start + at_most
        space = line.rfind(" ", start + 1, end + 1) if end < len(line) else -1
        end = space if space > start else end
        yield line[start:end]
        start = end


def _explained(message: str, vocab_size: int) -> UserError:
    """The trainer's message in words of the user's settings."""
    if found := re.search(r"too high \(\d+\).*<= (\d+)", message):
        return TooLargeVocabularyError(vocab_size, int(found[1]))
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return UserError(
            f"vocab_size={vocab_size} is too small: the text's characters and the special pieces "
            f"take {found[1]}. "
            f"Set vocab_size to more than {found[1]}, or character_coverage below 1.0 (0.9995)."
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return UserError("The tokenizer's training text is empty: no line of it holds a character.")
    return UserError(f"SentencePiece could not train a model of {vocab_size} pieces: {message}")
