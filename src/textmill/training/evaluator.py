"""Evaluations in the middle of a run: they leave no trace in what the training goes on with."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from textmill.runtime.seeds import HostRandom, fold, seed_all
from textmill.tasks.evaluation import Evaluation, evaluate
from textmill.tasks.several.multitask import joined
from textmill.tasks.task import Batches
from textmill.training.blocks import eager
from textmill.training.progress import Stops
from textmill.training.sources import OpenSource
from textmill.training.trainer_config import TrainerConfig


class Evaluator:
    """Evaluates what a run trains, which has the weights that are ``served`` meanwhile.

    Signals are looked for before each batch: one that comes leads out of the evaluation.
    """

    def __init__(
        self,
        config: TrainerConfig,
        *,
        served: Callable[[], AbstractContextManager[None]],
        stops: Stops,
    ) -> None:
        self.config, self.served, self.stops = config, served, stops

    def evaluate(self, held_out: Iterable[tuple[OpenSource, Batches]], *, step: int) -> Evaluation:
        """Evaluates after a number of steps; everything is as it was when this ends.

        Several sources are :func:`~textmill.tasks.several.multitask.joined`.
        """
        found, metrics = dict[str, Evaluation](), dict[str, str]()
        for source, batches in held_out:
            place = batches.state_dict()
            if source.train is not None:
                metrics[source.name] = source.metric
            with evaluation_rng(seed=self.config.seed, step=step):
                try:
                    with self.served(), eager(use=self.config.compile):
                        stops = self.stops
                        made = evaluate(source.task, batches, poll=stops.poll, ranks=stops.ranks)
                        found[source.name] = made
                finally:  # every evaluation has the same batches in the same order
                    batches.load_state_dict(place)
        return found[""] if "" in found else joined(found, metrics)


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
