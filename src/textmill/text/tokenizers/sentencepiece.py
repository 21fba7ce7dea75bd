"""SentencePiece: models trained and read; special ids are pad 0, unk 1, bos 2, eos 3.

Source: Kudo and Richardson, 2018, https://arxiv.org/abs/1808.06226.
"""

import io
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import sentencepiece
from typing_extensions import override

from textmill.config import Component
from textmill.errors import UserError
from textmill.runtime.files import make_folder, write_atomic
from textmill.text import registries
from textmill.text.metadata import SavedTextError, read_bytes
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.base_tokenizer import LanguageConfig, Marks, Pieces, TaggedTokenizer
from textmill.text.tokenizers.tokenizer import TooLargeVocabularyError, refuse_huge

ModelType = Literal["unigram", "bpe"]
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
    vocab_size: int = 5_000,
    model_type: ModelType = "unigram",
    character_coverage: float = 1.0,
    byte_fallback: bool = False,
    pieces: Sequence[str] = (),
) -> None:
    """Trains a model on texts and writes it to ``path``, whole or not at all.

    The same texts and settings, which are those of ``FittedTokenizer``, give the same bytes. Each
    line of a text is one sentence; long ones are cut between words.

    The ``vocab_size`` counts the four special pieces; ``pieces`` are strings that are always one.

    Raises:
        UserError: The text is empty, or no vocabulary of this size can be made; names the nearest
            possible size.
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
            model_type=model_type,
            character_coverage=character_coverage,
        )
    except Exception as error:
        if broken:  # SentencePiece would hide what the texts raised in an error of its own
            raise broken[0] from None
        if not isinstance(error, RuntimeError):
            raise
        raise _explained(str(error), vocab_size) from None
    make_folder(path.parent)
    write_atomic(path, model.getvalue())
    _log.info("trained a %s tokenizer of %d pieces: %s", model_type, vocab_size, path)


def parse_sentencepiece(raw: bytes, path: Path) -> sentencepiece.SentencePieceProcessor:
    """A model of its bytes; ``path`` says in errors where they are from."""
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


@registries.tokenizers.register("multilingual")
class MultilingualTokenizer(Component, TaggedTokenizer):
    """SentencePiece pieces, then special ids the model lacks, then language tags."""

    kind: ClassVar[str] = "multilingual"
    saved_file = "model", "sentencepiece.model"

    class Config(LanguageConfig):
        model: Path
        """SentencePiece model file."""

    def __init__(self, config: Config) -> None:
        self.config = config.filled()
        raw = read_bytes(config.model, largest=LARGEST_MODEL)
        self.pieces = parse_sentencepiece(raw, config.model)
        self.frame(_SentencePieces(self.pieces), self.config)


class _SentencePieces(Pieces):
    def __init__(self, pieces: sentencepiece.SentencePieceProcessor) -> None:
        self._pieces, self.size = pieces, pieces.vocab_size()
        ids = (pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id())
        self.marks = Marks(*(i if i >= 0 else None for i in ids))
        self._silent = {i for i in range(self.size) if pieces.IsControl(i)}

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        # In C++ by one thread: two were 4 % faster, and take CPU time from training.
        encode = self._pieces.encode
        parts = [[*texts[i : i + CHUNK]] for i in range(0, len(texts), CHUNK)]
        return Ragged.concatenate(
            [Ragged.from_lists(encode(part, out_type=int, num_threads=1)) for part in parts]
        )

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
