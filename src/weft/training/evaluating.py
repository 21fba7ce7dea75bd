"""What surrounds an evaluation: it leaves no trace in what the training goes on with."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from weft.runtime.seeds import HostRandom, fold, seed_all
from weft.tasks.task import Batches

__all__ = ["StopAsked", "apart"]


class StopAsked(Exception):  # noqa: N818  # no error: it leads out of an evaluation
    """A signal came during an evaluation, which is left at once."""


@contextmanager
def apart(batches: Batches, *, seed: int, step: int) -> Iterator[None]:
    """Seeds all generators for one evaluation, and puts the batches' place and theirs back.

    So every evaluation has the same batches in the same order, and the training data's own draws
    from ``random`` and numpy are those of a run that is never evaluated.

    Args:
        batches: What is evaluated on.
        seed: The run's seed.
        step: Where the run is; answers by chance differ from one evaluation to the next.
    """
    place, host = batches.state_dict(), HostRandom()
    before, own = host.state_dict(), fold(seed, "evaluate")
    seed_all(own, step)
    random.seed(fold(own, "random", step))
    np.random.seed(fold(own, "numpy", step) % 2**32)  # noqa: NPY002  # the global one is meant
    try:
        yield
    finally:
        batches.load_state_dict(place)
        host.load_state_dict(before)
