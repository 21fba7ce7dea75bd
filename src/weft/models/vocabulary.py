"""What models need to know of a vocabulary; any tokenizer has it."""

from typing import Protocol

__all__ = ["HasVocabInfo", "VocabInfo"]


class VocabInfo(Protocol):
    """What a model needs to know of a vocabulary."""

    @property
    def size(self) -> int:
        """Number of token ids."""
        ...

    @property
    def pad_idx(self) -> int:
        """Id of the padding token."""
        ...


class HasVocabInfo(Protocol):
    """Anything with a ``vocab_info``: a tokenizer."""

    @property
    def vocab_info(self) -> VocabInfo:
        """Facts about its vocabulary."""
        ...
