"""Evaluations in the middle of a run: they leave no trace in what the training goes on with."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from textmill.runtime.seeds import HostRandom, fold, seed_all
from textmill.tasks.evaluation import Evaluation, evaluate
from textmill.tasks.task import Batches, Task
from textmill.training.blocks import eager
from textmill.training.progress import Stops
from textmill.training.trainer_config import TrainerConfig

HeldOut = tuple[str, Task, Batches]
"""The name of a source, its task, and what it is measured on."""


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

    def evaluate(self, held_out: Iterable[HeldOut], *, step: int) -> Evaluation:
        """Evaluates after a number of steps; everything is as it was when this ends.

        Of several sources the values are those of all, by ``source/value``, and each row says of
        which source it is.
        """
        made = []
        for name, task, batches in held_out:
            place = batches.state_dict()
            with evaluation_rng(seed=self.config.seed, step=step):
                try:
                    with self.served(), eager(use=self.config.compile):
                        stops = self.stops
                        found = evaluate(task, batches, poll=stops.poll, ranks=stops.ranks)
                finally:  # every evaluation has the same batches in the same order
                    batches.load_state_dict(place)
            made.append(_named(found, name) if name else found)
        first, *others = made
        for other in others:
            mappings = ("values", "directions", "details", "errors")
            joined = {of: {**getattr(first, of), **getattr(other, of)} for of in mappings}
            rows, remarks = [*first.rows, *other.rows], (*first.remarks, *other.remarks)
            first = replace(first, rows=rows, remarks=remarks, **joined)
        return first


def _named(found: Evaluation, source: str) -> Evaluation:
    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        return {f"{source}/{name}": value for name, value in values.items()}

    return Evaluation(
        values=named(found.values),
        directions=named(found.directions),
        details=named(found.details),
        rows=[{"source": source, **row} for row in found.rows],
        remarks=tuple(f"{source}: {remark}" for remark in found.remarks),
        errors=named(found.errors),
    )


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
