"""Tokenizers without a model: one id for each character, or for each byte of the text's UTF-8.

Ids are pad 0, unk 1, bos 2, eos 3, then the characters or the 256 bytes, then language tags. Both
encode by one look-up in an array, without a Python step per text.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config import Component
from textmill.errors import UserError
from textmill.text import registries
from textmill.text.metadata import refuse_twice
from textmill.text.ragged import Ragged, offsets_of
from textmill.text.tokenizers.base_tokenizer import LanguageConfig, Marks, Pieces, TaggedTokenizer
from textmill.text.tokenizers.tokenizer import UNKNOWN


def covering(texts: Iterable[str], coverage: float, min_count: int = 1) -> list[str]:
    """The most frequent characters that make up that share of the texts, most frequent first.

    Of equally frequent ones the lower code point is first, so the order is always the same.
    """

    def joined() -> Iterator[str]:  # by a million characters: each alone would take its own sort
        parts, size = list[str](), 0
        for text in texts:
            parts.append(text)
            size += len(text)
            if size >= 1 << 20:
                yield "".join(parts)
                parts, size = [], 0
        yield "".join(parts)

    counts = np.zeros(0x110000, dtype=np.int64)
    for text in joined():
        points = _code_points(text)
        found, times = np.unique(points, return_counts=True)
        counts[found] += times
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= max(min_count, 1)]
    before = np.cumsum(counts[order]) - counts[order]
    return [chr(i) for i in order[before < coverage * counts.sum()]]


MARKS = Marks(pad=0, unk=1, bos=2, eos=3)
FIRST = 4
"""The first id after the marks."""


@registries.tokenizers.register("characters")
class CharacterTokenizer(Component, TaggedTokenizer):
    """One id for each character of an alphabet; others are unknown. Texts come back exactly.

    Example:
        >>> tokenizer = CharacterTokenizer.Config(characters="abc ").build()
        >>> ids = tokenizer.create_encoder()("a cab?")
        >>> ids.tolist(), tokenizer.create_decoder()(ids)
        ([4, 7, 6, 4, 5, 1, 3], 'a cab\u2047')
    """

    kind: ClassVar[str] = "characters"

    class Config(LanguageConfig):
        characters: str
        """Each character once, in the order of their ids."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.frame(_CharacterPieces(config.characters), config)

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int | None = None,
        character_coverage: float = 1.0,
        min_count: int = 1,
    ) -> "CharacterTokenizer":
        """The alphabet of texts, most frequent characters first.

        There are ``vocab_size`` ids at most, the four marks included, for a share of the texts'
        characters, ``character_coverage``.
        """
        found = covering(texts, character_coverage, min_count)
        if vocab_size is not None:
            found = found[: max(vocab_size - FIRST, 0)]
        if not found:
            raise UserError(
                "A tokenizer of characters needs one character at least: the training text is "
                f"empty, or vocab_size={vocab_size} or min_count={min_count} leave none."
            )
        return cls(cls.Config(characters="".join(found)))


@registries.tokenizers.register("bytes")
class ByteTokenizer(Component, TaggedTokenizer):
    """One id for each byte of a text's UTF-8: nothing is unknown, texts come back exactly.

    Source: ByT5, https://arxiv.org/abs/2105.13626 (with other ids for the marks).

    Example:
        >>> tokenizer = ByteTokenizer.Config().build()
        >>> ids = tokenizer.create_encoder()("été")
        >>> ids.tolist(), tokenizer.create_decoder()(ids)
        ([199, 173, 120, 199, 173, 3], 'été')
    """

    kind: ClassVar[str] = "bytes"

    class Config(LanguageConfig):
        """There is nothing to fit."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.frame(_BytePieces(), config)


class _CharacterPieces(Pieces):
    marks = MARKS

    def __init__(self, characters: str) -> None:
        try:
            points = _code_points(characters)
        except UnicodeEncodeError:
            raise UserError("'characters' holds half of a surrogate pair.") from None
        if not characters:
            raise UserError("'characters' must hold one character at least.")
        refuse_twice(characters, "The 'characters'")
        self._characters = characters
        self.size = FIRST + len(characters)
        # One place more than the highest code point: all that lie beyond are looked up there.
        self._ids = np.full(int(points.max()) + 2, MARKS.unk, dtype=np.int32)
        self._ids[points] = np.arange(FIRST, self.size)
        self._text = ["", UNKNOWN, "", "", *characters]

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        points = _code_points("".join(texts))
        ids = self._ids.take(points, mode="clip")
        return Ragged(ids, offsets_of([*map(len, texts)]))

    @override
    def encode_one(self, text: str) -> NDArray[np.int32]:
        return self._ids.take(_code_points(text), mode="clip")

    @override
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        text = self._text
        return ["".join([text[i] for i in row]) for row in rows]

    @override
    def to_bytes(self) -> bytes:
        return b"characters" + self._characters.encode()


_BYTES = [b"", UNKNOWN.encode(), b"", b"", *(bytes((i,)) for i in range(256))]
"""What each id is decoded to."""


class _BytePieces(Pieces):
    marks = MARKS
    size = FIRST + 256

    @override
    def encode(self, texts: Sequence[str]) -> Ragged:
        encoded = [text.encode() for text in texts]
        ids = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int32) + FIRST
        return Ragged(ids, offsets_of([*map(len, encoded)]))

    @override
    def encode_one(self, text: str) -> NDArray[np.int32]:
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int32) + FIRST

    @override
    def decode(self, rows: Sequence[list[int]]) -> list[str]:
        # No text has bytes that are not UTF-8, but a model can write them.
        return [b"".join([_BYTES[i] for i in row]).decode("utf-8", "replace") for row in rows]

    @override
    def to_bytes(self) -> bytes:
        return b"bytes"


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
