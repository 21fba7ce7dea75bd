"""The verb that joins sequences of ids and cuts them anew: pack. No buffer is ever saved."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.data.pipeline.node import Cursor, Follower, Node, State
from weft.errors import DataError

__all__ = ["Pack"]

Ids = NDArray[np.int64]
NONE: Ids = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Pack(Node[Ids]):
    """Blocks of ``length`` ids, cut from all sequences joined; the last may be shorter."""

    source: Node[Any]
    length: int
    drop_remainder: bool = False

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[Ids]:
        return _PackCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        drop = ", drop_remainder" if self.drop_remainder else ""
        return f"{self.source.signature()}.pack({self.length}{drop})"


class _PackCursor(Follower[Ids]):
    """State: the source's before the sequence that was cut last, and how much of it was given."""

    def __init__(self, node: Pack, epoch: int, state: State | None) -> None:
        self._node = node
        self.source = node.source.open(epoch, None if state is None else state["source"])
        self._number = 0 if state is None else state["number"]  # of the next sequence
        self._before: State = self.source.state()
        self._ids, self._used, self._place = NONE, 0, ""
        if state is not None and state["used"]:
            self._read()
            self._used = state["used"]

    @override
    def __next__(self) -> Ids:
        parts: list[Ids] = []
        missing = self._node.length
        while missing:
            if self._used == len(self._ids):
                try:
                    self._read()
                except StopIteration:
                    break
            part = self._ids[self._used : self._used + missing]
            if len(part) and not parts:
                self._place = self.source.place()
            self._used += len(part)
            missing -= len(part)
            parts.append(part)
        block = np.concatenate([NONE, *parts])  # a copy: what is cut from is another block's too
        if not len(block) or (missing and self._node.drop_remainder):
            raise StopIteration
        return block

    def _read(self) -> None:
        """Takes the next sequence."""
        self._before = self.source.state()
        item = next(self.source)
        self._number += 1
        try:
            found = np.asarray(item)
        except (ValueError, TypeError):  # lists of several lengths
            found = np.array(None)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            place = self.source.place()
            raise DataError(
                f"pack: wanted sequences of ids, but item {self._number}"
                f"{f' ({place})' if place else ''} is {item!r:.80}. Encode with map before."
            )
        self._ids, self._used = found.astype(np.int64), 0

    @override
    def state(self) -> State:
        if self._used == len(self._ids):
            return {"source": self.source.state(), "number": self._number, "used": 0}
        return {"source": self._before, "number": self._number - 1, "used": self._used}

    @override
    def place(self) -> str:
        return f"from {self._place}" if self._place else ""
