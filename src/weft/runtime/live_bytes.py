"""How many bytes of tensors a piece of work holds at most, on whatever device they are."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import override

__all__ = ["LiveBytes"]


class LiveBytes(TorchDispatchMode):
    """Counts, operation by operation, the tensors that are made while it is entered.

    Views share their storage, which counts once, until the last tensor of it is gone. What was
    there before is not counted, and neither is what the C++ code of one operation takes and gives
    back inside it. An operation takes some 10 microseconds more.

    Example:
        >>> with LiveBytes() as live:
        ...     a = torch.ones(1000)
        ...     b = a.view(10, 100)
        ...     c = (b + 1).sum()
        >>> live.peak, live.now
        (8004, 4004)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        """Bytes of the storages made so far that are still there."""
        self.history: list[int] = []
        """What ``now`` was after each operation."""
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    @classmethod
    @override
    def _should_skip_dynamo(cls) -> bool:
        """Else torch wraps the method below, whose first call then imports its compiler: 2.5 s."""
        return False

    @override
    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = {s.data_ptr() for s in _storages((*args, *(kwargs or {}).values()))}
        made = func(*args, **(kwargs or {}))
        for storage in _storages(made):
            if storage.data_ptr() not in given and storage not in self._known:
                self._add(storage)
        self.history.append(self.now)
        return made

    @property
    def peak(self) -> int:
        """The most that ``now`` has been."""
        return max(self.history, default=0)

    def _add(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._known.add(storage)
        self.now += size
        weakref.finalize(storage, self._gone, size).atexit = False

    def _gone(self, size: int) -> None:
        self.now -= size


def _storages(values: Any) -> Iterator[torch.UntypedStorage]:
    """Of all tensors in what an operation takes or gives: it nests them in lists at most."""
    if isinstance(values, Tensor):
        yield values.untyped_storage()
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _storages(value)
