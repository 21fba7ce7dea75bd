"""Which tokens of a text are masked, and what is read in their place.

Everything is drawn for the whole text at once, from the run's seed and the epoch alone: masks are
new in each epoch, and the same after a resume and whatever the batches are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from textmill.config.component import typed_construction
from textmill.data.block_batches import Blocking, Places, TextBlocks, random_of
from textmill.data.mixture import Mixture
from textmill.errors import DataError, UserError
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import PieceKinds

DRAW, SEGMENT_DRAW, TOKEN_DRAW = 0x4D41534B, 0x5345474D, 0x544F4B45
"""Set the draws of masks, of segments and of tokens apart from those of the order of blocks."""


@typed_construction
@dataclass(frozen=True, kw_only=True)
class Masking:
    """How many tokens are masked, and what replaces them.

    Source: Devlin et al. 2019 ("BERT"), section 3.1; drawn anew in each epoch as by Liu et al. 2019
    ("RoBERTa"), section 4.1.
    """

    share: float = 0.15
    """Share of the tokens (with ``whole_words``, of the words) that are to be found."""
    masked: float = 0.8
    """Share of these that a mask stands for."""
    random: float = 0.1
    """Share of these that a token drawn at random stands for; the rest stands as it is."""
    whole_words: bool = True
    """Whether all tokens of a word are to be found together. Words are what white space divides."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"masking.share must be above 0 and below 1, but is {self.share}.")
        for name in ("masked", "random"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise UserError(f"masking.{name} must be from 0 to 1, but is {value}.")
        if self.masked + self.random > 1:
            raise UserError(
                f"masking.masked and masking.random are shares of the same tokens, at most 1 "
                f"together, but are {self.masked} and {self.random}."
            )


class Masked(NamedTuple):
    """A text with masks: the ids that are read, and where they are to be found, ``[N]`` each."""

    read: NDArray[np.int32]
    chosen: NDArray[np.bool_]


def words_of(ids: Ragged, pieces: PieceKinds) -> NDArray[np.int64]:
    """The number of the word that each token belongs to, rising from 0.

    A row begins a word, and so does a token that is no part of one (a mark, the unknown one) and
    the token after it.
    """
    first = pieces.begins[ids.values] | ~pieces.plain[ids.values]
    first[1:] |= ~pieces.plain[ids.values[:-1]]
    offsets = ids.offsets[:-1]
    first[offsets[offsets < len(first)]] = True
    return np.cumsum(first) - 1


def mask_text(
    ids: Ragged,
    masking: Masking,
    pieces: PieceKinds,
    words: NDArray[np.int64],
    *,
    seed: int,
    epoch: int,
) -> Masked:
    """Chooses the tokens that are to be found, and what is read in place of each.

    Of the N words with a token of text ``round(share * N)`` are chosen, at least one. What stands
    in place of a token is drawn for each alone: the mask's id, which is ``len(pieces)``, one beyond
    the vocabulary; any token of text; or the token itself.
    """
    values, plain = ids.values, pieces.plain[ids.values]
    able = np.unique(words[plain])
    if not len(able):
        raise DataError(
            "The text has no token that can be masked: all are unknown to the tokenizer, or marks. "
            "Fit the tokenizer on this text, or one like it."
        )
    random = random_of(seed, epoch, DRAW)
    count = max(1, round(masking.share * len(able)))
    is_chosen = np.zeros(int(words[-1]) + 1, np.bool_)
    is_chosen[random.permutation(able)[:count]] = True
    chosen = is_chosen[words] & plain
    places = np.flatnonzero(chosen)
    kinds, known = random.random(len(places)), np.flatnonzero(pieces.plain)
    read = values.copy()
    read[places[kinds < masking.masked]] = len(pieces)
    other = places[(kinds >= masking.masked) & (kinds < masking.masked + masking.random)]
    read[other] = known[random.integers(len(known), size=len(other))]
    return Masked(read, chosen)


EVALUATION_SEED = 0
"""Of the masks of a text that is not trained on: one, so that all runs find the same tokens."""


class MaskedBlocks(TextBlocks):
    """Batches of a text with masks; one iteration gives what is left of one epoch.

    Of a :class:`~textmill.data.block_batches.BlockBatch` the ``inputs`` have the mask's id, one
    beyond the vocabulary, and other replacements; the ``targets`` are the tokens themselves, and
    those that are to be found are ``counted``.

    Args:
        segments: Whether a block is two segments, its halves. The second ones of half of the blocks
            change places with each other, so that each token is still read once in an epoch.
        draws: Whether batches have random numbers for the tokens that a model draws.
    """

    def __init__(
        self,
        ids: Ragged,
        rows: Sequence[Mapping[str, Any]],
        blocking: Blocking,
        *,
        masking: Masking,
        pieces: PieceKinds,
        train: bool,
        mixture: Mixture | None = None,
        segments: bool = False,
        draws: bool = False,
    ) -> None:
        super().__init__(ids, rows, blocking, before=len(pieces), mixture=mixture)
        self.masking, self.pieces, self.train = masking, pieces, train
        self.segments, self.draws = segments, draws
        if segments and self._length < 2:
            raise DataError(
                "A block of one token cannot be two segments. Raise task.block, give more text, or "
                "leave model.next_sentence out."
            )
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
        if self.draws:
            random = random_of(seed, epoch, TOKEN_DRAW)
            self._draws = random.random(len(self.ids.values), np.float32)
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
        if self.segments:
            blocks, seed = len(self._begin), self.blocking.seed if self.train else EVALUATION_SEED
            moved = random_of(seed, epoch, SEGMENT_DRAW).permutation(blocks)[: blocks // 2]
            self._second = np.arange(blocks)
            self._second[moved] = np.roll(moved, 1)
        return super()._drawn()

    @override
    def _block_of(self, chosen: Places, width: int) -> Places:
        first, second = chosen[:, None], np.arange(width) >= self._length // 2
        return np.where(second, self._second[first], first) if self.segments else first

    @override
    def _beside(self, at: Places, places: Places, counted: NDArray[np.bool_]) -> dict[str, Tensor]:
        found = super()._beside(at, places, counted)
        if self.segments:
            half = self._length // 2
            follows = at[:, half] == (at[:, half - 1] + 1) % self._text.size
            found["follows"] = torch.from_numpy(follows.astype(np.float32))
            found["parts"] = (torch.arange(at.shape[1]) >= half).long().expand(len(at), -1)
        if self.draws:
            found["draws"] = torch.from_numpy(self._draws[places[counted]])
        return found

    @override
    def _read(self, at: Places, places: Places) -> Places:
        del at
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
