"""What the ids of a vocabulary are: text or marks, beginnings of words or their going on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.text.tokenizer import Tokenizer

__all__ = ["Pieces", "pieces_of"]


@dataclass(frozen=True)
class Pieces:
    """Facts about each id of a vocabulary."""

    begins: NDArray[np.bool_]
    """Whether white space is before it in a text, or is all of it. *Shape:* ``[V]``."""
    plain: NDArray[np.bool_]
    """Whether it stands for text: no mark, no padding, not the unknown. *Shape:* ``[V]``."""
    spaces: bool = False
    """Whether a space is always an id of its own, as among characters; else words begin with it."""

    def __len__(self) -> int:
        return len(self.begins)


def pieces_of(tokenizer: Tokenizer) -> Pieces:
    """Finds them by decoding each id behind one that stands for text: so of any tokenizer.

    Example:
        >>> from weft.text.words import WordTokenizer
        >>> tokenizer = WordTokenizer.Config(words=("wake", "me"), marks=True).build()
        >>> pieces_of(tokenizer).plain.tolist()
        [False, False, False, False, True, True]
        >>> pieces_of(tokenizer).begins.tolist()
        [False, True, False, False, True, True]
    """
    info, decoder = tokenizer.vocab_info, tokenizer.create_decoder()
    alone = decoder.batch([[number] for number in range(info.size)])
    # Behind an id of letters nothing is normalized away, as a space at a text's beginning may be.
    before = next((i for i, text in enumerate(alone) if text.isalnum()), info.unk_idx)
    behind = decoder.batch([[before, number] for number in range(info.size)])
    added = [text[len(alone[before]) :] for text in behind]
    plain = np.array([bool(text) for text in added])
    plain[info.unk_idx] = False
    begins = [text[:1].isspace() for text in added]
    joined = any(begin and len(text) > 1 for begin, text in zip(begins, added, strict=True))
    return Pieces(np.array(begins), plain, spaces=not joined)
