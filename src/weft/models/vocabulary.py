"""What models need to know of a vocabulary; any tokenizer has it."""

from typing import Protocol

__all__ = [
    "FramedVocabInfo",
    "HasDim",
    "HasFramedVocabInfo",
    "HasSize",
    "HasVocabInfo",
    "HasWordVocabInfo",
    "ModelVocabInfo",
    "WordVocabInfo",
]


class HasDim(Protocol):
    """What a model needs to know of numbers beside a text."""

    @property
    def dim(self) -> int:
        """How many a row has."""
        ...


class HasSize(Protocol):
    """What a model needs to know of a dictionary."""

    @property
    def size(self) -> int:
        """Number of its kinds, with that of padding, 0."""


class ModelVocabInfo(Protocol):
    """What a model needs to know of a vocabulary."""

    @property
    def size(self) -> int:
        """Number of token ids."""

    @property
    def pad_idx(self) -> int:
        """Id of the padding token."""

    @property
    def eos_idx(self) -> int:
        """Id that ends every text."""


class FramedVocabInfo(ModelVocabInfo, Protocol):
    """The same of a vocabulary whose texts have a beginning, too."""

    @property
    def bos_idx(self) -> int:
        """Id that begins a text."""
        ...


class HasFramedVocabInfo(Protocol):
    """Anything with a ``vocab_info`` that has a beginning: the pieces of words."""

    @property
    def vocab_info(self) -> FramedVocabInfo:
        """Facts about its vocabulary."""
        ...


class HasVocabInfo(Protocol):
    """Anything with a ``vocab_info``: a tokenizer."""

    @property
    def vocab_info(self) -> ModelVocabInfo:
        """Facts about its vocabulary."""


class WordVocabInfo(ModelVocabInfo, Protocol):
    """The same of a vocabulary in which words can be missing."""

    @property
    def unk_idx(self) -> int:
        """Id of the words that it has not."""


class HasWordVocabInfo(Protocol):
    """Anything with a ``vocab_info`` that has an unknown word: a tokenizer."""

    @property
    def vocab_info(self) -> WordVocabInfo:
        """Facts about its vocabulary."""
