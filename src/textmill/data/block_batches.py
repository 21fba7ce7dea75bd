"""A text as one sequence of tokens, read in blocks: batches of a language model.

Every token is a target once in an epoch, whatever the batching; what it is predicted from is the
token before it and what the block or the carried state holds.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textmill.data.batching import Filler
from textmill.data.mixture import Mixture
from textmill.errors import DataError, UserError
from textmill.text.ragged import Ragged, offsets_of

Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BlockBatch:
    """Parts of a text, one a row: what is read, and the token to be found at each place."""

    inputs: Tensor
    """Token ids that are read. *Shape:* :math:`(B,T)`."""
    targets: Tensor
    """The id to be found at each of ``inputs``: in a language model the one after it.
    *Shape:* :math:`(B,T)`."""
    counted: Tensor | None
    """True at the targets that count; None: all do. *Shape:* :math:`(B,T)`."""
    begins: bool
    """Whether this is the first batch of an epoch: nothing is carried into it."""
    rows: NDArray[np.int64]
    """Numbers of the rows of text that the counted targets are in, rising; on the host."""
    row_lengths: NDArray[np.int64]
    """Targets of each of ``rows``, those in other batches too."""
    parts: Tensor | None = None
    """Which tokens of a block are of one row, and stand beside each other in it, or of one segment:
    they have one number, from 0. None: nobody asks for it. *Shape:* :math:`(B,T)`."""
    follows: Tensor | None = None
    """1.0 where a block's second segment follows the first in the text, 0.0 where it is of another
    place. None: a block is one segment. *Shape:* :math:`(B)`."""
    draws: Tensor | None = None
    """A random number below 1 for each counted target: which token a model draws for it. None:
    nobody asks for it. *Shape:* :math:`(N)`."""
    row_of: NDArray[np.int64]
    """Index into ``rows`` of each counted target, in the order of reading the batch."""

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def count(self) -> int:
        return len(self.row_of)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "BlockBatch":
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=non_blocking)
            for name, value in values
            if isinstance(value, Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """How a text becomes batches of blocks."""

    length: int
    """Tokens of a block."""
    batch_size: int
    """Streams, or blocks of a batch; no more than there are tokens."""
    streams: bool = False
    """Whether the text is cut into ``batch_size`` parts that are read side by side, so that a
    model carries its state from batch to batch; else each block stands alone."""
    stride: int | None = None
    """How far a block begins after the one before it: it then reads ``length - stride`` tokens that
    were counted before. None: ``length``. Not for streams."""
    shuffle: bool = False
    """Whether the text is cut at another place in each epoch, as if its end were followed by its
    beginning, and blocks that stand alone come in random order."""
    seed: int = 0
    """The run's seed."""
    says_parts: bool = False
    """Whether batches say which tokens are of one row."""

    def __post_init__(self) -> None:
        for name in ("length", "batch_size", "stride"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UserError(f"{name} must be 1 or more, but is {value}.")
        if self.stride is not None and self.stride > self.length:
            raise UserError(
                f"stride must be at most the block's length {self.length}, but is {self.stride}."
            )


def random_of(*numbers: int) -> np.random.Generator:
    """Random numbers that are a function of some numbers: the run's seed, the epoch, others."""
    seed, *others = numbers
    entropy = [seed % 2**64, *others]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


@dataclass(frozen=True)
class EpochText:
    """The text that an epoch reads: parts of the ids of all rows, one behind the other."""

    begins: Places
    """Where each part begins in the ids."""
    starts: Places
    """Where it begins in the epoch, and where the last one ends."""

    @classmethod
    def of(cls, ids: Ragged, rows: Sequence[tuple[int, int]]) -> "EpochText":
        """That of some rows: of each part the first, and the one after the last."""
        bounds = ids.offsets[np.array(rows, dtype=np.int64)]
        return cls(bounds[:, 0], offsets_of(bounds[:, 1] - bounds[:, 0]))

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def places(self, at: Places) -> Places:
        """Where in the ids tokens of the epoch are, by their places in it."""
        part: Places = np.searchsorted(self.starts, at, side="right") - 1
        found: Places = self.begins[part] + at - self.starts[part]
        return found


class TextBlocks:
    """Batches of a text; one iteration gives what is left of one epoch.

    Args:
        ids: The tokens of each row of text.
        rows: The rows, as examples show them.
        before: Id that the first token follows: the end of a row before it.
        mixture: Which rows an epoch has, of several sources, each read in its order; None: all.
        details: What an evaluation says of its values.
    """

    def __init__(
        self,
        ids: Ragged,
        rows: Sequence[Mapping[str, Any]],
        blocking: Blocking,
        *,
        before: int,
        mixture: Mixture | None = None,
        details: Mapping[str, str] | None = None,
    ) -> None:
        self.ids, self.rows, self.details = ids, rows, dict(details or {})
        self.blocking, self.epoch, self.position = blocking, 0, 0
        self.mixture, self._before = mixture, before
        self._rank, self._world_size, self._fill = 0, 1, False
        self._cut()

    def _cut(self) -> None:
        """Cuts the text of the present epoch; of all rows it is one for all epochs."""
        blocking, mixture, self._cut_epoch = self.blocking, self.mixture, self.epoch
        parts = [(0, len(self.ids))] if mixture is None else mixture.parts(self.epoch)
        self._text = EpochText.of(self.ids, parts)
        if not self._text.size:
            raise DataError("There is no text to make blocks of.")
        size = self._text.size
        self._width, self._length = min(blocking.batch_size, size), min(blocking.length, size)
        stride = min(blocking.stride or self._length, self._length)
        cuts = self._stream_cuts(size) if blocking.streams else self._block_cuts(size, stride)
        self._begin, self._first, self._end = cuts

    def _stream_cuts(self, size: int) -> tuple[Places, Places, Places]:
        """Where each block begins, and which targets count: streams of one length, give or take."""
        cuts = np.arange(self._width + 1) * size // self._width
        longest = int(np.diff(cuts).max())
        steps = np.arange(0, longest, self._length)[:, None]
        begin = (cuts[:-1] + steps).ravel()
        end = np.minimum(begin + self._length, np.tile(cuts[1:], len(steps)))
        return begin, begin, end

    def _block_cuts(self, size: int, stride: int) -> tuple[Places, Places, Places]:
        """The same of blocks that stand alone: after the first each counts its last ``stride``."""
        more = -(-max(size - self._length, 0) // stride)
        begin = np.arange(1 + more) * stride
        end = np.minimum(begin + self._length, size)
        return begin, np.concatenate([[0], end[:-1]]), end

    def __len__(self) -> int:
        if self.mixture is not None and self._cut_epoch != self.epoch:
            self._cut()
        return -(-len(self._begin) // self._width)

    def share(self, rank: int, world_size: int, *, fill: bool = False) -> "TextBlocks":
        """The same batches, of which one rank has every ``world_size``-th block or stream.

        Where nothing of it counts, a batch is None, or with ``fill`` a :class:`Filler`.
        """
        other = copy.copy(self)
        other._rank, other._world_size, other._fill = rank, world_size, fill
        return other

    def __iter__(self) -> Iterator[Any]:
        epoch, count, (order, turn) = self.epoch, len(self), self._drawn()
        while self.epoch == epoch and self.position < count:
            chosen = order[self.position * self._width : (self.position + 1) * self._width]
            batch = self._gathered(chosen, turn, begins=self.position == 0)
            self.position += 1
            yield batch
        if self.epoch == epoch:
            self.epoch, self.position = epoch + 1, 0

    def _drawn(self) -> tuple[Places, int]:
        """The order of the blocks in this epoch, and how far the text is turned."""
        order = np.arange(len(self._begin))
        if not self.blocking.shuffle:
            return order, 0
        random = random_of(self.blocking.seed, self.epoch)
        turn = int(random.integers(self._text.size))
        return (order if self.blocking.streams else random.permutation(order)), turn

    def _gathered(self, chosen: Places, turn: int, *, begins: bool) -> BlockBatch | Filler | None:
        width = int((self._end - self._begin)[chosen].max())
        block = self._block_of(chosen, width)
        at = self._begin[block] + np.arange(width)
        counted = (at >= self._first[block]) & (at < self._end[block])
        at = (at + turn) % self._text.size
        counted = self._counted(self._text.places(at), counted)
        share = slice(self._rank, None, self._world_size)
        if self._world_size > 1 and not counted[share].any():
            if not self._fill:
                return None
            number = int(counted.any(axis=1).argmax())
            one = slice(number, number + 1)  # it begins, so that no state of other streams goes in
            return Filler(self._batch(at[one], counted[one], begins=True))
        return self._batch(at[share], counted[share], begins=begins)

    def _batch(self, at: Places, counted: NDArray[np.bool_], *, begins: bool) -> BlockBatch:
        """The batch of some places of the epoch, of which some count."""
        values, places = self.ids.values, self._text.places(at)
        places_counted = places[counted]
        found = np.searchsorted(self.ids.offsets, places_counted, side="right") - 1
        rows, row_of = np.unique(found, return_inverse=True)
        return BlockBatch(
            inputs=torch.from_numpy(self._read(at, places).astype(np.int64)),
            targets=torch.from_numpy(values[places].astype(np.int64)),
            counted=None if counted.all() else torch.from_numpy(counted),
            begins=begins,
            rows=rows,
            row_lengths=self._row_lengths()[rows],
            row_of=row_of,
            **self._beside(at, places, counted),
        )

    def _block_of(self, chosen: Places, width: int) -> Places:
        """The block that each token of the chosen ones is of, ``[B, width]`` or ``[B, 1]``."""
        del width
        return chosen[:, None]

    def _beside(self, at: Places, places: Places, counted: NDArray[np.bool_]) -> dict[str, Tensor]:
        """What a batch has beside its tokens, if it is asked for."""
        del at, counted
        return {"parts": self._parts(places)} if self.blocking.says_parts else {}

    def _parts(self, places: Places) -> Tensor:
        """The number of the part of a row that each token is in, from 0 in each block."""
        row = np.searchsorted(self.ids.offsets, places, side="right")
        other = (np.diff(row) != 0) | (np.diff(places) != 1)
        return torch.from_numpy(np.pad(np.cumsum(other, axis=1), ((0, 0), (1, 0))))

    def _read(self, at: Places, places: Places) -> Places:
        """The ids that are read where those at ``places`` are to be found, ``at`` in the epoch."""
        before = self._text.places(np.maximum(at - 1, 0))
        return np.where(at, self.ids.values[before], self._before)

    def _counted(self, places: Places, counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of ``places`` count, of those that are the block's own."""
        del places
        return counted

    def _row_lengths(self) -> Places:
        return self.ids.lengths

    def examples(self, batch: BlockBatch) -> list[Mapping[str, Any]]:
        """The rows that a batch has targets of, with their numbers, from 0."""
        return [{"row": i, **self.rows[i]} for i in batch.rows.tolist()]

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a saved place."""
        before, (epoch, position) = self.epoch, (int(state["epoch"]), int(state["position"]))
        self.epoch = max(epoch, 0)
        if epoch < 0 or not 0 <= position <= len(self):
            count, self.epoch = len(self), before
            raise DataError(
                f"The saved place {dict(state)} does not exist: an epoch has {count} batches. "
                "The text or its blocks have changed since it was saved."
            )
        self.position = position
