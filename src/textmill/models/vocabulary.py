"""Protocols of the vocabulary sizes and ids that models need; any tokenizer has them."""

from typing import Protocol


class HasDim(Protocol):
    """The size of the numbers beside a text: how many a row has."""

    @property
    def dim(self) -> int: ...


class HasSize(Protocol):
    """The size of a dictionary: its kinds, with that of padding, 0."""

    @property
    def size(self) -> int: ...


class ModelVocabInfo(Protocol):
    """The size of a vocabulary, and the ids of padding and of what ends every text."""

    @property
    def size(self) -> int: ...

    @property
    def pad_idx(self) -> int: ...

    @property
    def eos_idx(self) -> int: ...


class FramedVocabInfo(ModelVocabInfo, Protocol):
    """The same of a vocabulary whose texts have a beginning, too."""

    @property
    def bos_idx(self) -> int: ...


class WordVocabInfo(ModelVocabInfo, Protocol):
    """The same of a vocabulary in which words can be missing."""

    @property
    def unk_idx(self) -> int: ...


class HasVocabInfo(Protocol):
    """Anything with a ``vocab_info``: a tokenizer."""

    @property
    def vocab_info(self) -> ModelVocabInfo: ...


class HasFramedVocabInfo(Protocol):
    """The same with a beginning: the pieces of words."""

    @property
    def vocab_info(self) -> FramedVocabInfo: ...


class HasWordVocabInfo(Protocol):
    """The same with an unknown word."""

    @property
    def vocab_info(self) -> WordVocabInfo: ...


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
