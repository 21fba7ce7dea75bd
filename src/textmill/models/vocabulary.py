"""Protocols of the vocabulary sizes and ids that models need; any tokenizer has them."""

from typing import Protocol


class HasDim(Protocol):
    """The size of the numbers beside a text, as a model needs it."""

    @property
    def dim(self) -> int:
        """How many a row has."""
        ...


class HasSize(Protocol):
    """The size of a dictionary, as a model needs it."""

    @property
    def size(self) -> int:
        """Number of its kinds, with that of padding, 0."""


class ModelVocabInfo(Protocol):
    """The size and special ids of a vocabulary, as a model needs them."""

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
        """Id of unknown words."""


class HasWordVocabInfo(Protocol):
    """Anything with a ``vocab_info`` that has an unknown word: a tokenizer."""

    @property
    def vocab_info(self) -> WordVocabInfo:
        """Facts about its vocabulary."""


def rows_needed(vocab: ModelVocabInfo) -> int:
    """Ids up to the last that is read or scored: marks that a vocabulary lacks are neither.

    So the probabilities of a GPT-2 are its own, although its tokenizer has no padding.

    Example:
        >>> from types import SimpleNamespace
        >>> marks = {"bos_idx": 8, "eos_idx": 7, "pad_idx": 9, "unk_idx": 10}
        >>> rows_needed(SimpleNamespace(size=11, **marks))
        8
    """
    names = ("pad_idx", "bos_idx", "unk_idx")
    rows, unused = vocab.size, {getattr(vocab, name, -1) for name in names}
    while rows - 1 in unused - {vocab.eos_idx}:
        rows -= 1
    return rows
