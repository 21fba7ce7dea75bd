"""Groups of batches: what one optimizer step takes. A group never crosses an epoch."""

from collections.abc import Iterator, Mapping, Sized
from typing import Any, NamedTuple

import torch

from textmill.data.batching import Filler
from textmill.errors import DataError
from textmill.tasks.batches.transfer import Transfer
from textmill.tasks.task import Batches
from textmill.training.progress import Progress

_END = object()


class Group(NamedTuple):
    """The batches of one optimizer step, and the epochs completed once it is done."""

    batches: list[Any]
    """Those that this rank has rows of, and fillers."""
    epochs: int

    @property
    def own(self) -> list[Any]:
        """The batches that this rank has rows of."""
        return [batch for batch in self.batches if not isinstance(batch, Filler)]


class Groups:
    """An endless, resumable iterator over groups of up to ``size`` batches.

    A batch that is None is one of which this rank has no row; it counts as any other.

    It reads one batch ahead, to know an epoch's end when it comes; its state is that of the data
    before the batch ahead, so nothing read ahead is lost or repeated.
    """

    def __init__(self, data: Batches, *, size: int, device: str | torch.device = "cpu") -> None:
        self.data, self.size = data, size
        self.transfer = Transfer(device)
        self.epochs, self.taken = 0, 0
        self._iterator: Iterator[Any] | None = None
        self._ahead: Any = None
        self._state = data.state_dict()

    def __next__(self) -> Group:
        if self._iterator is None:
            self._begin()
        batches = [self._take()]
        while self._iterator is not None and len(batches) < self.size:
            batches.append(self._take())
        self.taken = 0 if self._iterator is None else self.taken + len(batches)
        return Group([batch for batch in batches if batch is not None], self.epochs)

    @property
    def position(self) -> float:
        """Epochs completed, with the part of the one at hand where its length is known."""
        if not isinstance(self.data, Sized):
            return float(self.epochs)
        # The length of an epoch of very many rows is an estimate, which the last batches may pass.
        return self.epochs + min(1.0, self.taken / max(1, len(self.data)))

    def _take(self) -> Any:
        """The batch ahead; the one after it is read, and on its way to the device."""
        taken = self.transfer.receive(self._ahead)
        self._advance()
        return taken

    def _begin(self) -> None:
        """Goes on with the epoch; data resumed just at an epoch's end may need a second try."""
        epochs = self.epochs
        for _ in range(2):
            self._iterator = iter(self.data)
            self._advance()
            if self._iterator is not None:
                self.epochs = epochs
                return
        raise DataError("train_data gave no batch in a whole epoch; there is nothing to train on.")

    def _advance(self) -> None:
        """Reads the next batch ahead; at the epoch's end there is none: the iterator is dropped."""
        assert self._iterator is not None
        self._state = self.data.state_dict()
        self._ahead = next(self._iterator, _END)
        if self._ahead is _END:
            self._iterator = None
            self.epochs += 1
            self._state = self.data.state_dict()
        self._ahead = self.transfer.send(self._ahead)

    def state_dict(self) -> dict[str, Any]:
        """Where the next group starts."""
        return {"epochs": self.epochs, "taken": self.taken, "data": self._state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the next group starts."""
        place = Progress.saved(steps=state["taken"], epochs=state["epochs"])  # refuses what is none
        self.epochs, self.taken, self._state = place.epochs, place.steps, state["data"]
        self.data.load_state_dict(state["data"])
        self._iterator = None
