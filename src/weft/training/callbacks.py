"""Callbacks observe a run and may ask it to stop; they cannot reorder the loop."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from weft.config.foreign_names import refuse_foreign_hooks
from weft.training.progress import Progress

__all__ = ["Callback"]


class Callback:
    """Base of the callbacks: override what you want to see.

    ``start``, ``step`` and ``evaluated`` ask the run to stop by returning True: it is evaluated,
    saved and ended. A resumed run remembers that it was asked, unless it is given another length.
    ``saved`` and ``end`` only observe; what they return is no request.

    Nobody holds the trainer: a callback sees counters and values, not the loop.

    Example:
        >>> class StopBelow(Callback):
        ...     def evaluated(self, progress, values):
        ...         return values["loss"] < 0.1
        >>> StopBelow().evaluated(Progress(), {"loss": 0.05})
        True
    """

    @override
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_foreign_hooks(cls)

    def start(self, progress: Progress) -> bool | None:
        """The loop starts, freshly or resumed."""

    def step(self, progress: Progress) -> bool | None:
        """An optimizer step was taken."""

    def evaluated(self, progress: Progress, values: Mapping[str, float]) -> bool | None:
        """``valid_data`` was evaluated."""

    def saved(self, progress: Progress, checkpoint: Path) -> object:
        """A checkpoint is safely on the disk."""

    def end(self, progress: Progress) -> object:
        """The loop has ended."""
