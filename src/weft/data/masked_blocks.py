"""A text in blocks of which some tokens are masked: batches of a masked language model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.data.blocks import Blocking, Places, TextBlocks
from weft.data.masking import Masking, mask_text, words_of
from weft.text.ragged import Ragged
from weft.text.tokenizer import Pieces

__all__ = ["MaskedBlocks"]

EVALUATION_SEED = 0
"""Of the masks of a text that is not trained on: one, so that all runs find the same tokens."""


class MaskedBlocks(TextBlocks):
    """Batches of a text with masks; one iteration gives what is left of one epoch.

    Of a :class:`~weft.data.blocks.BlockBatch` the ``inputs`` have the mask's id, one beyond the
    vocabulary, and other replacements; the ``targets`` are the tokens themselves, and those that
    are to be found are ``counted``.

    Args:
        ids: The tokens of each row of text.
        rows: The rows, for people.
        blocking: How it is cut; blocks stand alone.
        masking: How many tokens are to be found, and what stands in their place.
        pieces: What the ids are.
        train: Whether masks are new in each epoch; else they are always the same.

    Raises:
        DataError: There is no token, or none that could be masked.

    Example:
        >>> everything = np.ones(9, np.bool_)
        >>> how = {
        ...     "masking": Masking(share=0.5, masked=1, random=0),
        ...     "pieces": Pieces(begins=everything, plain=everything),
        ... }
        >>> text, blocking = Ragged.from_lists([[5, 6], [7, 8]]), Blocking(length=4, batch_size=1)
        >>> blocks = MaskedBlocks(text, [{}] * 2, blocking, train=False, **how)
        >>> [(b.inputs.tolist(), b.targets.tolist()) for b in blocks]
        [([[9, 6, 9, 8]], [[5, 6, 7, 8]])]
    """

    def __init__(
        self,
        ids: Ragged,
        rows: Sequence[Mapping[str, Any]],
        blocking: Blocking,
        *,
        masking: Masking,
        pieces: Pieces,
        train: bool,
    ) -> None:
        super().__init__(ids, rows, blocking, before=len(pieces))
        self.masking, self.pieces, self.train = masking, pieces, train
        each = np.arange(len(ids.values))
        self._words = words_of(ids, pieces) if masking.whole_words else each
        self._forced: int | None = None
        self._mask(epoch=0)
        self.details = {} if train else {"masked_accuracy": self._said()}

    def _said(self) -> str:
        """How much of the text an evaluation is of."""
        masked, rows = int(self._masks.chosen.sum()), self._row_lengths()
        said = f"{masked:,} of {len(self._masks.chosen):,} tokens are to be found, always the same."
        if none := int((rows == 0).sum()):
            said += f" {none:,} of {len(rows):,} rows have none of them, and no prediction."
        return said

    def _mask(self, *, epoch: int) -> None:
        seed = self.blocking.seed if self.train else EVALUATION_SEED
        masks = mask_text(self.ids, self.masking, self.pieces, self._words, seed=seed, epoch=epoch)
        self._masks, self._masked_epoch = masks, epoch
        before = np.concatenate([[0], np.cumsum(masks.chosen)])
        self._lengths: Places = np.diff(before[self.ids.offsets])

    @override
    def _block_cuts(self, size: int, stride: int) -> tuple[Places, Places, Places]:
        """All blocks are of one length: what a token has on both sides is the same in any batch."""
        begin, first, end = super()._block_cuts(size, stride)
        return np.minimum(begin, size - self._length), first, end

    @override
    def _drawn(self) -> tuple[Places, int]:
        epoch = self.epoch if self.train else 0
        if epoch != self._masked_epoch:
            self._mask(epoch=epoch)
        return super()._drawn()

    @override
    def _read(self, places: Places) -> Places:
        read = self._masks.read[places].astype(np.int64)
        if self._forced is not None and self.pieces.plain[self.ids.values[self._forced]]:
            read[places == self._forced] = len(self.pieces)
        return read

    @override
    def _counted(self, places: Places, counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found, self._forced = self._masks.chosen[places] & counted, None
        if self.train and not found.any():
            self._forced = self._substitute(places[counted])
            found = counted & (places == self._forced)
        return found

    def _substitute(self, places: Places) -> int:
        """The target of a batch without one, which no step could be made of: its first plain token.

        Where all are unknown or marks it is the first of these, read as it stands. It is the
        batch's own: masks stay a function of the epoch, and a resume gives the same batches.
        """
        plain = places[self.pieces.plain[self.ids.values[places]]]
        return int(plain[0] if len(plain) else places[0])

    @override
    def _row_lengths(self) -> Places:
        if self._forced is None:
            return self._lengths
        lengths = self._lengths.copy()
        lengths[np.searchsorted(self.ids.offsets, self._forced, side="right") - 1] += 1
        return lengths
