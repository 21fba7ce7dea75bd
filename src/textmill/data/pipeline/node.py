"""A `PipelineNode` is a chain of verbs, a `Cursor` where one epoch of it stands.

A verb is a class of cursors. A node never changes: it can be opened any number of times. A cursor's
`state` is plain JSON and holds positions only, no items: what was buffered is read again on resume.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import override

from textmill.errors import DataError

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


@dataclass(eq=False)
class Follower(Cursor[T]):
    """A cursor over one source.

    Attributes:
        node: What it follows.
        epoch: Which epoch of it.
        saved: A state of this cursor to go on from; None: the epoch's beginning.
    """

    node: PipelineNode[Any]
    epoch: int
    saved: State | None

    def __post_init__(self) -> None:
        saved = self.saved
        self.source = self.node.open(self.epoch, None if saved is None else saved["source"])

    @override
    def place(self) -> str:
        return self.source.place()

    @override
    def close(self) -> None:
        self.source.close()


class DataPipeline(Generic[T]):
    """An iterable of which one iteration is one epoch, and the next iteration the next epoch.

    An iteration that was left in the middle is gone on with by the next one. The state is plain
    JSON of positions; a pipeline of the same build that loads it gives exactly the items that the
    first would have given, in this epoch and all that follow.

    Attributes:
        epoch: The epoch under way, from 0.

    Example:
        >>> from textmill.data.pipeline import from_sequence
        >>> chain = from_sequence("abcdef").shuffle(4, seed=1)
        >>> first, second = chain.and_return(), chain.and_return()
        >>> given = [item for _, item in zip(range(4), first)]
        >>> second.load_state_dict(first.state_dict())
        >>> sorted(given + list(second)), list(first) == list(chain.and_return())[4:]
        (['a', 'b', 'c', 'd', 'e', 'f'], True)
        >>> list(first) == list(second), first.epoch
        (True, 2)
    """

    def __init__(self, node: PipelineNode[T]) -> None:
        self.node = node
        self.epoch = 0
        self._cursor: Cursor[T] | None = None

    def __iter__(self) -> Iterator[T]:
        if self._cursor is None:
            self._cursor = self.node.open(self.epoch)
        cursor = self._cursor
        while cursor is self._cursor:  # another iteration may end the epoch, or a state be loaded
            try:
                item = next(cursor)
            except StopIteration:
                self._leave()
                self.epoch += 1
                return
            yield item

    def reset(self) -> None:
        """Goes back to the start of epoch 0."""
        self._leave()
        self.epoch = 0

    def state_dict(self) -> State:
        """Position after the last item given, as JSON: the chain's signature, epoch and cursor."""
        cursor = None if self._cursor is None else self._cursor.state()
        return {"pipeline": self.node.signature, "epoch": self.epoch, "cursor": cursor}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the pipeline stood that gave ``state``.

        Raises:
            DataError: The state is of another chain of verbs, or a file has another size now.
        """
        mine = self.node.signature
        if state["pipeline"] != mine:
            raise DataError(
                f"The state is of another pipeline: wanted one of {mine}, "
                f"found one of {state['pipeline']}."
            )
        self._leave()
        self.epoch = state["epoch"]
        if state["cursor"] is not None:
            self._cursor = self.node.open(self.epoch, state["cursor"])

    def _leave(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
        self._cursor = None
