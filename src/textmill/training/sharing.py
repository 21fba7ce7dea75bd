"""What the ranks of a run share: batches, and parts that each has its own share of."""

import logging
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

from textmill.checkpoint.parts import Stateful
from textmill.data.batching import Filler
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Batches, DetailedBatches

LOG = logging.getLogger("textmill")


@runtime_checkable
class Shared(Stateful, Protocol):
    """A part of which each rank has a share; all of it is saved, by rank 0."""

    def joined(self, states: Sequence[Any]) -> Any:
        """The state of the whole, of those of the ranks."""

    def share(self, state: Any, rank: int, world_size: int) -> Any:
        """What one rank goes on with of a state of the whole."""


class SharedBatches:
    """Whole batches, of which a rank has every ``size``-th; of the others it gets None.

    So are batches shared that a recipe makes itself: what a row is in them is not known; and those
    of an evaluation whose loss compares rows. With ``fill`` it gets the others, too, as a
    :class:`~textmill.data.batching.Filler`.
    """

    def __init__(self, batches: Batches, rank: int, world_size: int, *, fill: bool = False) -> None:
        self.batches, self.rank, self.world_size, self.fill = batches, rank, world_size, fill
        self._number = 0

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration is part of, from 0."""
        return self.batches.epoch

    @property
    def details(self) -> Mapping[str, str]:
        """What an evaluation on the batches says of rows that do not count in a value."""
        return self.batches.details if isinstance(self.batches, DetailedBatches) else {}

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            mine = self._number % self.world_size == self.rank
            self._number += 1
            yield batch if mine else Filler(batch) if self.fill else None
        self._number = 0

    def examples(self, batch: Any) -> Sequence[Mapping[str, Any]]:
        """The rows of a batch."""
        return self.batches.examples(batch)

    def state_dict(self) -> dict[str, Any]:
        """The place, which is that of all ranks."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a place."""
        self._number = int(state.get("position", 0))
        self.batches.load_state_dict(state)


class SizedSharedBatches(SharedBatches):
    """The same of batches that know how many they are."""

    def __len__(self) -> int:
        """Batches of an epoch, over all ranks."""
        assert isinstance(self.batches, Sized)
        return len(self.batches)


def shared_batches(batches: Batches, ranks: Ranks, *, fill: bool = False) -> Batches:
    """The share of this rank, in the order that one rank alone would have: by rows where known.

    A batch of which the rank has no row is None; with ``fill`` a part of it that does not count.
    """
    if ranks.size == 1:
        return batches
    place = ranks.env.rank, ranks.size
    share = getattr(batches, "share", None)
    if share is not None:
        made: Batches = share(*place, fill=True) if fill else share(*place)
        return made
    return whole_batches(batches, ranks, fill=fill)


def whole_batches(batches: Batches, ranks: Ranks, *, fill: bool = False) -> Batches:
    """The share of this rank, in whole batches; the others are None, or fillers with ``fill``."""
    if ranks.size == 1:
        return batches
    kind = SizedSharedBatches if isinstance(batches, Sized) else SharedBatches
    return kind(batches, ranks.env.rank, ranks.size, fill=fill)


def tell_idle(train: Batches, accumulate: int, ranks: Ranks) -> None:
    """Warns where whole batches are shared and a step has fewer than there are ranks."""
    if isinstance(train, SharedBatches) and train.fill:
        LOG.warning(
            "train_data gives ready batches, which ranks share whole, and each rank computes with "
            "all of them, since weights are divided among ranks or the recipe has wrapped its "
            "module: only memory is saved. Give rows."
        )
        return
    if isinstance(train, SharedBatches) and accumulate < ranks.size:
        LOG.warning(
            "train_data gives ready batches, which ranks share whole: with "
            f"trainer.accumulate={accumulate} only {accumulate} of {ranks.size} ranks work in a "
            f"step. Give rows, or set trainer.accumulate={ranks.size}."
        )


class _Snapshot:
    """A state that stands for its part while it is saved."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def state_dict(self) -> Any:
        return self._state

    def load_state_dict(self, state: Any) -> None:
        raise NotImplementedError


class _Share:
    """A part that takes its share of a saved state."""

    def __init__(self, part: Shared, ranks: Ranks) -> None:
        self._part, self._ranks = part, ranks

    def state_dict(self) -> Any:
        return self._part.state_dict()

    def load_state_dict(self, state: Any) -> None:
        share = self._part.share(state, self._ranks.env.rank, self._ranks.size)
        self._part.load_state_dict(share)


def joined(ranks: Ranks, parts: Mapping[str, Stateful]) -> dict[str, Stateful]:
    """The parts as rank 0 saves them: of those that are shared, the whole."""
    if ranks.size == 1:
        return dict(parts)
    return {
        name: _Snapshot(part.joined(ranks.gather(part.state_dict())))
        if isinstance(part, Shared)
        else part
        for name, part in parts.items()
    }


def shares_of(ranks: Ranks, parts: Mapping[str, Stateful]) -> dict[str, Stateful]:
    """The parts as each rank loads them: of those that are shared, its share."""
    return {
        name: _Share(part, ranks) if ranks.size > 1 and isinstance(part, Shared) else part
        for name, part in parts.items()
    }
