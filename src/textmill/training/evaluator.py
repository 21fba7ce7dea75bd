"""Evaluations in the middle of a run: they leave no trace in what the training goes on with."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from textmill.runtime.seeds import HostRandom, fold, seed_all
from textmill.tasks.evaluation import Evaluation, evaluate
from textmill.tasks.task import Batches, Task
from textmill.training.blocks import eager
from textmill.training.stopping import Stops
from textmill.training.trainer_config import TrainerConfig


class Evaluator:
    """Evaluates a run's module, which has the weights that are ``served`` meanwhile.

    Signals are looked for before each batch: one that comes leads out of the evaluation.
    """

    def __init__(
        self,
        config: TrainerConfig,
        *,
        task: Task,
        served: Callable[[], AbstractContextManager[None]],
        stops: Stops,
    ) -> None:
        self.config, self.task, self.served, self.stops = config, task, served, stops

    def evaluate(self, batches: Batches, *, step: int) -> Evaluation:
        """Evaluates after a number of steps; everything is as it was when this ends.

        Raises:
            StopAsked: A signal asked the run to stop.
        """
        place = isolated_rng(batches, seed=self.config.seed, step=step)
        with place, self.served(), eager(use=self.config.compile):
            return evaluate(self.task, batches, poll=self.stops.poll, ranks=self.stops.ranks)


@contextmanager
def isolated_rng(batches: Batches, *, seed: int, step: int) -> Iterator[None]:
    """As :func:`evaluation_rng`, and puts the batches' place back, too.

    So every evaluation has the same batches in the same order.
    """
    place = batches.state_dict()
    with evaluation_rng(seed=seed, step=step):
        try:
            yield
        finally:
            batches.load_state_dict(place)


@contextmanager
def evaluation_rng(*, seed: int, step: int) -> Iterator[None]:
    """Seeds all generators for one evaluation, and puts theirs back afterwards.

    So the training data's own draws from ``random`` and numpy are those of a run that is never
    evaluated. Answers by chance differ from one evaluation, and its step, to the next.
    """
    host = HostRandom()
    before, own = host.state_dict(), fold(seed, "evaluate")
    seed_all(own, step)
    random.seed(fold(own, "random", step))
    np.random.seed(fold(own, "numpy", step) % 2**32)  # noqa: NPY002  # the global one is meant
    try:
        yield
    finally:
        host.load_state_dict(before)
