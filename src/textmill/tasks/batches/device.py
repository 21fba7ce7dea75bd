"""Batches and a CUDA device: copied one ahead, and their places found without a wait."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from textmill.data.block_batches import BlockBatch
from textmill.data.column_batch import ColumnBatch
from textmill.data.seq2seq_batch import Seq2SeqBatch


def real_places(real: Tensor, count: int) -> Tensor:
    """What :func:`at_places` takes for a mask, :math:`(B,T)`, of which ``count`` places are true.

    On a CPU that is the mask; elsewhere the numbers of its places in the order of reading,
    :math:`(N)`, since an index by a mask would wait until the device has found their number, in the
    forward pass and once more in the backward pass.
    """
    if real.device.type == "cpu":
        return real
    return real.flatten().to(torch.uint8).argsort(descending=True, stable=True)[:count]


def at_places(x: Tensor, places: Tensor) -> Tensor:
    """What stands at the places. *Shape:* :math:`(B,T,*)` to :math:`(N,*)`."""
    return x[places] if places.dtype == torch.bool else x.flatten(0, 1).index_select(0, places)


class Transfer:
    """Copies batches from pinned memory on a stream of its own; the host waits for none of it.

    On any device but CUDA nothing is copied ahead. Batches of the recipe's own are given back as
    they are: the task that takes them moves them.
    """

    def __init__(self, device: str | torch.device) -> None:
        self.device = torch.device(device)
        self.used = self.device.type == "cuda"
        self._stream: Any = torch.cuda.Stream(self.device) if self.used else None

    def send(self, batch: Any) -> Any:
        """Begins to copy a batch; gives what :meth:`receive` takes."""
        if not (self.used and isinstance(batch, BlockBatch | ColumnBatch | Seq2SeqBatch)):
            return batch
        # What is copied later is kept until then: the allocator of pinned memory sees to it.
        pinned = _changed(batch, lambda tensor: tensor.pin_memory())
        with torch.cuda.stream(self._stream):
            moved = pinned.to(self.device, non_blocking=True)
            return _Moved(moved, self._stream.record_event())

    def receive(self, sent: Any) -> Any:
        """The batch, for what is computed from now on: the device waits for it, the host does not.

        Its memory is that of the other stream, which must not use it again before this one has.
        """
        if not isinstance(sent, _Moved):
            return sent
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(sent.copied)
        for tensor in _tensors(sent.batch):
            tensor.record_stream(stream)
        return sent.batch


@dataclasses.dataclass(frozen=True)
class _Moved:
    """A batch that is being copied, and what tells that it was."""

    batch: Any
    copied: Any


def _changed(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    def of(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: of(item) for name, item in value.items()}
        return change(value) if isinstance(value, Tensor) else value

    found = {field.name: of(getattr(batch, field.name)) for field in dataclasses.fields(batch)}
    return dataclasses.replace(batch, **found)


def _tensors(batch: Any) -> Iterator[Tensor]:
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        parts = value.values() if isinstance(value, Mapping) else (value,)
        yield from (part for part in parts if isinstance(part, Tensor))
