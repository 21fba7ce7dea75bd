"""A trainer that solves a linear model of n-grams in one step, by scikit-learn."""

import logging
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.component import setting
from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import MissingExtraError, UserError
from textmill.exported.formats import AnyFormat, ExportSettings
from textmill.metrics.reporters import Reporter
from textmill.metrics.tables import format_value
from textmill.models.label_losses import BinaryCrossEntropy, CrossEntropyLoss, LabelLoss, multi_hot
from textmill.models.linear_solver import (
    LabelSolver,
    NumberSolver,
    SeveralLabelsSolver,
    Solver,
    solve,
)
from textmill.models.ngrams import NgramScores
from textmill.runtime.devices import Env, Experiment
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Task
from textmill.text.columns.labels import LabelColumn, LabelsColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.features.labels import Labels
from textmill.text.processors.column_processor import WEIGHTS
from textmill.training.loop import Trainer
from textmill.training.observers import Callback
from textmill.training.progress import Progress, StopAsked
from textmill.training.schedules import Constant
from textmill.training.selection import Selection

LOG = logging.getLogger("textmill")


class LinearTrainer(Trainer):
    """Fits the weights of n-grams exactly, instead of by steps: scikit-learn's LinearSVC or Ridge.

    ``LinearSVC`` (Fan et al. 2008) where there are labels, each against the rest; ``Ridge`` where
    there is a number. The run is one step, of all rows. Of ``costs`` the one is taken that answers
    best in folds of ``train_data``; ``valid_data`` only measures. Decisions are scaled to log odds
    by the answers in these folds, so that the probabilities of answers are fit to be read.
    """

    class Config(BaseConfig):
        costs: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
        """Values of C to try, from the lowest to the first that is clearly worse than the best: the
        cost of an error relative to the size of the weights (1/alpha of Ridge). A higher one fits
        the training rows more closely."""
        folds: int = 5
        """Parts of ``train_data`` for cross-validation: a model of the others answers each."""
        selection: Selection.Config = Selection.Config()
        """The value of the evaluation that stands for the run when runs are compared."""
        export: tuple[AnyFormat | ExportSettings, ...] = setting((), in_key=False)
        """Formats in which the model is exported at the end, as ``["onnx"]``, to
        ``export/<format>`` of the run."""
        seed: int = 1
        """Seed of the division into folds and of the solver."""

        def __post_init__(self) -> None:
            require(self, "trainer", positive=["costs"])
            if not self.costs:
                raise UserError("trainer.costs is empty: give one value at least, as [1.0].")
            if self.folds < 2:
                raise UserError(f"trainer.folds must be at least 2, but is {self.folds}.")

    def __init__(  # those of Trainer, without what moves weights by steps
        self,
        config: Config,
        *,
        task: Task,
        train_data: Iterable[Any],
        reporters: Sequence[Reporter],
        callbacks: Sequence[Callback],
        env: Env,
        xp: Experiment,
        valid_data: Iterable[Any] | None = None,
        test_data: Iterable[Any] | None = None,
    ) -> None:
        if find_spec("sklearn") is None:
            what = "Solving a linear model"
            raise MissingExtraError("scikit-learn", extra="train", what=what)
        self.solving = config
        self.columns, self.ngrams, self.solver_of = _solved(task)
        if env.world_size > 1:
            raise UserError(
                f"A linear model is solved in one process, and there are {env.world_size}. "
                "Leave --nproc out: it takes seconds."
            )
        one_step = Trainer.Config(
            max_steps=1, keep=1, precision="fp32", selection=config.selection, seed=config.seed
        )
        super().__init__(
            one_step,
            task=task,
            optimizer=cast(torch.optim.Optimizer, _NoOptimizer()),
            lr_scheduler=Constant.Config().build(),
            train_data=train_data,
            reporters=reporters,
            callbacks=callbacks,
            env=env,
            xp=xp,
            valid_data=valid_data,
            test_data=test_data,
        )

    @override
    def step(self, before: Progress) -> Progress:
        """Solves the model of all rows, and reports how; a signal is heard between two costs."""
        groups = self.data.first.groups
        place = groups.state_dict()
        try:
            rows, batches = self._read(before.epochs)
            solver, wanted = self.solver_of(batches), self.solving
            model, facts = solve(
                rows,
                solver,
                costs=wanted.costs,
                folds=wanted.folds,
                seed=wanted.seed,
                tried=self._tried(solver),
            )
        except StopAsked:
            groups.load_state_dict(place)  # the same command reads the rows again
            raise
        weights, bias = (torch.from_numpy(part).float() for part in model)
        self.ngrams.assign(weights, bias)
        scores = torch.from_numpy(model.decisions(rows)).float()
        values = {"loss": self._loss(scores, batches), "cost": facts["cost"]}
        if "value" in facts:
            values[f"folds/{solver.measure}"] = facts["value"]
        now = Progress(before.steps + 1, before.epochs + 1, rows.shape[0], self.clock.seconds)
        self.audience.report("train", now, values, {})
        return now

    def _read(self, epochs: int) -> tuple[Any, list[ColumnBatch]]:
        """The numbers of all rows, sparse, and the batches of their targets."""
        from scipy.sparse import coo_matrix, csr_matrix

        task, targets = self.columns, list[ColumnBatch]()
        # Each number once: of a list of parts all would be there twice when they are joined.
        numbers, places, ends = array("f"), array("i"), array("q", [0])
        read = -1
        while read <= epochs:
            group = next(self.data.first.groups)
            read = self.data.epochs
            for batch in group:
                texts, beside = task.inputs(batch)
                features = self.ngrams.features(*texts, **beside)
                row_of, place_of, values = (part.cpu().numpy() for part in features)
                shape = (len(batch), self.ngrams.width)
                part = coo_matrix((values, (row_of, place_of)), shape=shape).tocsr()
                ends.frombytes((part.indptr[1:].astype(np.int64) + len(numbers)).tobytes())
                numbers.frombytes(part.data.tobytes())
                places.frombytes(part.indices.astype(np.int32).tobytes())
                wanted = {role: batch[role].cpu() for role in task.text.targets}
                targets.append(replace(batch, columns=wanted, lengths={}, counts={}))
            self.stops.poll()
        arrays = (
            np.frombuffer(numbers, np.float32),
            np.frombuffer(places, np.int32),
            np.frombuffer(ends, np.int64),
        )
        return csr_matrix(arrays, shape=(len(ends) - 1, self.ngrams.width)), targets

    def _tried(self, solver: Solver) -> Callable[[float, float], None]:
        def say(cost: float, value: float) -> None:
            measured = format_value(solver.measure, value)
            of = f"{solver.measure} {measured} in {self.solving.folds} folds of train_data"
            LOG.info("%s, cost %g: %s.", solver.model, cost, of)
            self.stops.poll()

        return say

    def _loss(self, scores: Tensor, batches: Sequence[ColumnBatch]) -> float:
        parts = zip(scores.split([len(batch) for batch in batches]), batches, strict=True)
        losses = [self.columns.loss(part, batch) for part, batch in parts]
        return float(sum(each.total for each in losses) / sum(each.count for each in losses))


class _NoOptimizer:
    """Stands where the loop's own step has an optimizer: torch's take 80 MB when one is made."""

    param_groups: ClassVar[list[dict[str, Any]]] = []
    state: ClassVar[dict[Any, Any]] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        return

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        return


SolverOf = Callable[[Sequence[ColumnBatch]], Solver]
"""What makes a solver of the targets of all rows."""


def _solved(task: Task) -> tuple[ColumnsTask, NgramScores, SolverOf]:
    """The task, its model and the solver for its targets; refuses any other task."""
    if not (isinstance(task, ColumnsTask) and isinstance(task.module, NgramScores)):
        raise UserError(
            "This trainer solves linear models of n-grams, and the model is a "
            f"{type(task.module).__name__}. Set model.type to ngram_classifier or another of "
            "n-grams, or take an experiment that trains by steps, such as classification/docnn."
        )
    if {*WEIGHTS} & {*task.text.targets}:
        raise UserError(
            "task.weight is for training by steps, and this trainer solves for all rows at once. "
            "Leave it out, or take an experiment that trains by steps, such as "
            "classification/docnn."
        )
    if getattr(task, "soft", None) is not None:
        raise UserError(
            "task.soft_labels is for training by steps, as classification/docnn is, and this "
            "trainer solves for labels. Leave it out, or train on what the teacher predicts."
        )
    (role, column), *others = task.text.targets.items()
    model = task.module
    if isinstance(column, NumberColumn) and not others:
        return task, model, lambda b: NumberSolver(_joined(b, role).astype(np.float64))
    if not isinstance(column, LabelColumn | LabelsColumn) or others:
        names = ", ".join(task.text.target_columns)
        raise UserError(
            f"This trainer solves for one column of labels or numbers, but {type(task).__name__} "
            f"has the targets {names}."
        )
    weights = _weights(getattr(task, "criterion", None), column.labels)
    size = len(column.labels)
    if isinstance(column, LabelColumn):
        return task, model, lambda b: LabelSolver(_joined(b, role), size, weights)

    def of_several(batches: Sequence[ColumnBatch]) -> SeveralLabelsSolver:
        hot = [multi_hot(batch[role], size).numpy() for batch in batches]
        return SeveralLabelsSolver(np.concatenate(hot), weights)

    return task, model, of_several


def _joined(batches: Sequence[ColumnBatch], role: str) -> Any:
    return np.concatenate([batch[role].numpy() for batch in batches])


def _weights(criterion: object, labels: Labels) -> dict[int, float]:
    if not isinstance(criterion, LabelLoss):
        return {}
    known = BinaryCrossEntropy if labels.multiple else CrossEntropyLoss
    if not isinstance(criterion, known) or getattr(criterion.config, "label_smoothing", False):
        raise UserError(
            "task.loss is for training by steps: LinearSVC minimizes the squared hinge. Of its "
            "settings task.loss.weights alone can be set; leave the others out."
        )
    given: Mapping[str, float] = criterion.config.weights
    return {n: given[name] for n, name in enumerate(labels) if name in given}
