"""A `PipelineNode` says how a chain of verbs is opened, a `Cursor` is where one epoch of it stands.

A verb is a class of cursors. A node never changes: it can be opened any number of times. A cursor's
`state` is plain JSON and holds positions only, no items: what was buffered is read again on resume.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import override

__all__ = ["Cursor", "Follower", "PipelineNode", "State"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
State = dict[str, Any]  # JSON; nested by verb


class Cursor(ABC, Iterator[T_co]):
    """One epoch of a verb under way."""

    @abstractmethod
    def state(self) -> State:
        """Where it stands after the last item given, as JSON that later items do not change."""

    def place(self) -> str:
        """Where the last item given comes from (``file:line``), or an empty string."""
        return ""

    def close(self) -> None:
        """Lets go of threads; called when the epoch is left or over. Closing twice is harmless."""


@dataclass(frozen=True)
class PipelineNode(Generic[T_co]):
    """One verb and, through its source, the whole chain before it.

    Attributes:
        signature: The chain of verbs and what decides their positions, without functions and paths.
        cursor: Starts an epoch, or goes on from a state that a cursor of the same epoch gave.
    """

    signature: str
    cursor: Callable[[int, State | None], Cursor[T_co]]

    def open(self, epoch: int, state: State | None = None) -> Cursor[T_co]:
        """The cursor of an epoch."""
        return self.cursor(epoch, state)


class Follower(Cursor[T_co]):
    """A cursor over one source."""

    def __init__(self, source: PipelineNode[Any], epoch: int, state: State | None) -> None:
        self.source = source.open(epoch, None if state is None else state["source"])

    @override
    def place(self) -> str:
        return self.source.place()

    @override
    def close(self) -> None:
        self.source.close()
