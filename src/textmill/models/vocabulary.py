"""What models need of tokenizers and features: sizes of tables, and ids of marks."""

from typing import Protocol


class ModelVocabInfo(Protocol):
    """Size of a vocabulary and its special ids; a recipe's own needs those that its model reads."""

    @property
    def size(self) -> int: ...
    @property
    def unk_idx(self) -> int: ...
    @property
    def bos_idx(self) -> int: ...
    @property
    def eos_idx(self) -> int: ...
    @property
    def pad_idx(self) -> int: ...


class HasVocabInfo(Protocol):
    """Anything with a ``vocab_info``: a tokenizer."""

    @property
    def vocab_info(self) -> ModelVocabInfo: ...


class HasDim(Protocol):
    """The numbers beside a text: how many a row has."""

    @property
    def dim(self) -> int: ...


class HasSize(Protocol):
    """A dictionary: the number of its kinds, with that of padding, 0."""

    @property
    def size(self) -> int: ...


class IdTable(HasSize, Protocol):
    """Characters or affixes of words: the number of their ids, and the id of padding."""

    @property
    def pad_idx(self) -> int: ...


def rows_needed(vocab: ModelVocabInfo) -> int:
    """Ids up to the last that is read or scored: marks that a vocabulary lacks are neither.

    So the probabilities of a GPT-2 are its own, although its tokenizer has no padding.
    """
    names = ("pad_idx", "bos_idx", "unk_idx")  # a recipe's own vocabulary may lack some
    rows, unused = vocab.size, {getattr(vocab, name, -1) for name in names}
    while rows - 1 in unused - {vocab.eos_idx}:
        rows -= 1
    return rows
