"""Batches that the recipe made itself, drawn again as they were after a crash."""

import itertools
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from typing_extensions import override

from textmill.runtime.seeds import HostRandom, fold

LOG = logging.getLogger("textmill")
Drawn = TypeVar("Drawn")

_NOTHING = object()


@runtime_checkable
class Resumable(Protocol):
    """An iterable that knows its place."""

    def __iter__(self) -> Iterator[Any]: ...

    def state_dict(self) -> Mapping[str, Any]:
        """The place."""

    def load_state_dict(self, state: Any, /) -> None:
        """Goes to a place."""


class HostPlace(Mapping[str, Any]):
    """The state of the global generators as it is now, turned into plain data only when read.

    A place is taken before every batch and saved before few of them.
    """

    def __init__(self) -> None:
        self._raw = _raw_host()

    @cached_property
    def _plain(self) -> dict[str, Any]:
        now = _raw_host()
        _set_host(self._raw)
        try:
            return HostRandom().state_dict()
        finally:
            _set_host(now)

    @override
    def __getitem__(self, name: str) -> Any:
        return self._plain[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    @override
    def __len__(self) -> int:
        return len(self._plain)


def _raw_host() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002  # the global one


def _set_host(raw: tuple[Any, Any]) -> None:
    random.setstate(raw[0])
    np.random.set_state(raw[1])  # noqa: NPY002  # the global one


class ReadyBatches:
    """A recipe's own iterable of batches; each iteration of it is one epoch.

    An iterable with ``state_dict`` and ``load_state_dict`` is resumed exactly; any other is
    replayed: after a crash its batches are drawn again and thrown away up to the place. Of a list
    or a tuple the place is a number. ``read`` reads a batch back as rows of text.

    Such code often shuffles and augments with global generators. Torch's is seeded for each batch
    by (seed, epoch, number of the batch), and is put back after it. Those of ``random`` and numpy
    are seeded at an epoch's start; their states before the next batch are part of the place, so a
    batch that was read ahead when a run was killed is drawn again as it was.
    """

    def __init__(
        self, batches: Iterable[Any], read: Callable[[Any], list[dict[str, Any]]], *, seed: int = 0
    ) -> None:
        self.source, self._read, self._seed = batches, read, seed
        # Giving the next of these runs no code that could draw; a place takes 40 microseconds.
        self._at_hand = type(batches) in (list, tuple)
        self.epoch, self.position = 0, 0
        self._skip = 0
        self._random = HostRandom()
        self._at_place: Mapping[str, Any] | None = None

    @property
    def replayed(self) -> bool:
        """Whether resuming draws the batches of the broken epoch again."""
        return not (self._at_hand or isinstance(self.source, Resumable))

    def __len__(self) -> int:
        if (length := known_length(self.source)) is None:
            raise TypeError(f"a {type(self.source).__name__} does not know how many batches it has")
        return length

    def __iter__(self) -> Iterator[Any]:
        for batch in self._rest():
            self.position += 1
            yield batch
        self.epoch, self.position = self.epoch + 1, 0

    def _rest(self) -> Iterator[Any]:
        at_place, self._at_place = self._at_place, None
        if self._at_hand:
            skip, self._skip = self._skip, 0
            yield from itertools.islice(self.source, skip, None)
            return
        if at_place is None:
            yield from self._drawn(self.epoch)
            return
        now = HostPlace()
        iterator = self._drawn(self.epoch, self.position - self._skip)
        for _ in itertools.islice(iterator, self._skip):
            pass
        self._random.load_state_dict(at_place)
        ahead = list(itertools.islice(iterator, 1))
        self._random.load_state_dict(now)
        yield from ahead
        yield from iterator

    def _drawn(self, epoch: int, first: int = 0) -> Iterator[Any]:
        """What the source gives in an epoch, from batch number ``first`` on."""
        seed = fold(self._seed, "data", epoch)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002  # the global one
        iterator = _torch_seeded(seed, lambda: iter(self.source))
        for number in itertools.count(first):
            batch = _torch_seeded(fold(seed, number), lambda: next(iterator, _NOTHING))
            if batch is _NOTHING:
                return
            yield batch

    def examples(self, batch: Any) -> list[dict[str, Any]]:
        return self._read(batch)

    def state_dict(self) -> dict[str, Any]:
        """Epoch, position, the global generators', and the iterable's own state if it has one."""
        state: dict[str, Any] = {"epoch": self.epoch, "position": self.position}
        if self.position and not self._at_hand:
            state["random"] = {"place": HostPlace()}
        if isinstance(self.source, Resumable):
            state["source"] = self.source.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``; replays whole epochs of an iterable without a state."""
        self.epoch, self.position, self._skip = state["epoch"], state["position"], 0
        self._at_place = state.get("random", {}).get("place")
        if isinstance(self.source, Resumable):
            self.source.load_state_dict(state["source"])
            return
        if self._at_hand:
            self._skip = self.position
            return
        if self.epoch or self.position:
            LOG.info(
                "Drawing %d whole epochs and %d batches again: the %s does not know its place.",
                self.epoch,
                self.position,
                type(self.source).__name__,
            )
        now = HostPlace()
        for epoch in range(self.epoch):  # it may count its epochs, or go on from the last order
            for _batch in self._drawn(epoch):
                pass
        self._random.load_state_dict(now)
        self._skip = self.position


def _torch_seeded(seed: int, draw: Callable[[], Drawn]) -> Drawn:
    """What ``draw`` gives with torch's global generator seeded, which is then put back (5 us)."""
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)
    try:
        return draw()
    finally:
        torch.default_generator.set_state(before)


def known_length(batches: Any) -> int | None:
    """Batches of an epoch; None where they are not known."""
    try:
        return len(batches)
    except (TypeError, NotImplementedError):  # a DataLoader has __len__, whatever it loads from
        return None
