"""What a run's evaluations selected, as its checkpoints know it, for a damaged ``best.json``."""

from pathlib import Path

from weft.checkpoint.manifest import Manifest
from weft.checkpoint.parts import plain_parts

__all__ = ["PART", "selected_step"]

PART = "selection"
"""The part whose state may have ``best``, the step of the best evaluation up to then."""
LIMIT = 10**18
"""The name of a checkpoint has 18 digits at most."""


def selected_step(path: Path) -> int | None:
    """The step that was the best when a checkpoint was saved; None where it does not say.

    Args:
        path: A checkpoint folder; only its manifest and ``state.json`` are read, and verified.

    Raises:
        CheckpointError: One of the two is damaged, or larger than a state is.
    """
    state = plain_parts(path, Manifest.read(path)).get(PART)
    best = state.get("best") if isinstance(state, dict) else None
    return best if type(best) is int and 0 <= best < LIMIT else None
