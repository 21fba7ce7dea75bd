"""Linear models that scikit-learn solves, with the cost that answers best in folds of the rows."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
FACTORS = (0.05, 50.0)
"""Between which the factor from decisions to log odds is looked for."""
USUAL_FACTOR = 3.0
"""The factor where there are too few rows to measure it: what six sets with 500 and 2,000 rows and
two to sixty labels have in the mean."""


class Solution(NamedTuple):
    """A linear model."""

    weights: Numbers
    """*Shape:* ``[F, L]``."""
    bias: Numbers
    """*Shape:* ``[L]``."""

    def decisions(self, rows: Any) -> Numbers:
        """Scores of rows. *Shape:* ``[N, F]`` (sparse) to ``[N, L]``."""
        found: Numbers = rows @ self.weights + self.bias
        return found


class Solver(ABC):
    """The targets of all rows, and what fits a linear model to some of them."""

    model: str
    """The name of scikit-learn's model."""
    measure: str
    """The name of what :meth:`value` gives."""

    def __init__(self, targets: NDArray[Any]) -> None:
        self.targets = targets

    @abstractmethod
    def fit(self, rows: Any, targets: NDArray[Any], *, cost: float, seed: int) -> Solution:
        """Fits some rows, :math:`(N,F)` sparse and of float64, with their targets."""

    @abstractmethod
    def value(self, decisions: Numbers) -> float:
        """How good the decisions of all rows are: the higher, the better."""

    def error(self, value: float) -> float:
        """About the standard error of a share of right answers, the value of all rows."""
        return math.sqrt(max(value * (1 - value), 0) / len(self.targets))

    def factor(self, decisions: Numbers | None) -> float:
        """The factor from decisions to log odds, fitted on those of the folds if there are any."""
        return 1.0

    def folds(self, count: int, order: Indices) -> Indices | None:
        """The fold of each row, rows taking turns in this order; None if there are too few."""
        return _dealt(order, count) if len(order) >= 2 else None


class LabelSolver(Solver):
    """``LinearSVC`` for one label a row: each label against the rest, by the squared hinge.

    Targets are the numbers of labels, :math:`(N)`, of which there are ``size``; ``weights`` say how
    much rows of a label count, by its number, 1 where it is not there.
    """

    model = "LinearSVC"
    measure = "accuracy"

    def __init__(self, targets: Indices, size: int, weights: Mapping[int, float]) -> None:
        super().__init__(targets)
        self.size, self.weights = size, dict(weights)
        by_label = np.array([self.weights.get(label, 1.0) for label in range(size)])
        self.counts: Numbers = by_label[targets]

    @override
    def fit(
        self,
        rows: Any,
        targets: NDArray[Any],
        *,
        cost: float,
        seed: int,
        each: Numbers | None = None,
    ) -> Solution:
        """Fits some rows, which count by ``each``, :math:`(N)`, beside their labels' weights."""
        counted = ~np.isin(targets, [label for label, w in self.weights.items() if w == 0])
        if not counted.all():
            rows, targets = rows[counted], targets[counted]
            each = None if each is None else each[counted]
        labels = np.unique(targets)
        # A label without a row has a decision of -1, the target that the hinge has for the rest.
        weights, bias = np.zeros((rows.shape[1], self.size)), np.full(self.size, -1.0)
        if len(labels) == 1:
            bias[labels] = 1.0
            return Solution(weights, bias)
        by_label = {n: self.weights[n] for n in labels.tolist() if n in self.weights}
        weights_of = by_label or None
        model = _linear_svc(rows, targets, cost=cost, seed=seed, each=each, class_weight=weights_of)
        signs = np.array([-1.0, 1.0]) if len(labels) == 2 else np.ones(len(labels))
        weights[:, labels], bias[labels] = model.coef_.T * signs, model.intercept_ * signs
        return Solution(weights, bias)

    @override
    def value(self, decisions: Numbers) -> float:
        right = decisions.argmax(axis=1) == self.targets
        return float(self.counts @ right / self.counts.sum())

    @override
    def factor(self, decisions: Numbers | None) -> float:
        if decisions is None:
            return USUAL_FACTOR
        # As if each label had been right once more (Platt 1999): where folds are without an error
        # no answer is certain.
        others = self.size / (len(decisions) + self.size)
        own = decisions[np.arange(len(decisions)), self.targets]
        wanted = (1 - others) * own + others * decisions.mean(axis=1)

        def cross_entropy(factor: float) -> float:
            lacking = (decisions - wanted[:, None]) * factor
            most = lacking.max(axis=1)
            sums = np.log(np.exp(lacking - most[:, None]).sum(axis=1)) + most
            return float(self.counts @ sums)

        return _lowest(cross_entropy)

    @override
    def folds(self, count: int, order: Indices) -> Indices | None:
        # A label of one row is in no fold's model when that row is asked.
        if (np.bincount(self.targets[self.counts > 0]) > 1).sum() < 2:
            return None
        return _dealt(order[np.argsort(self.targets[order], kind="stable")], count)


class SeveralLabelsSolver(Solver):
    """``LinearSVC`` of each label, for any number of labels a row.

    Targets are 1 at the labels of a row, :math:`(N,L)`; ``weights`` say how much the rows that have
    a label count in its model, by its number.
    """

    model = "LinearSVC"
    measure = "micro_f1"

    def __init__(self, targets: Indices, weights: Mapping[int, float]) -> None:
        super().__init__(targets)
        self.weights = weights

    @override
    def fit(self, rows: Any, targets: NDArray[Any], *, cost: float, seed: int) -> Solution:
        labels = range(targets.shape[1])
        weights, bias = np.zeros((rows.shape[1], len(labels))), np.full(len(labels), -1.0)
        for label in labels:
            own, weight = targets[:, label], self.weights.get(label, 1.0)
            if own.all():
                bias[label] = 1.0
            elif own.any() and weight:
                by_target = {1: weight}
                model = _linear_svc(rows, own, cost=cost, seed=seed, class_weight=by_target)
                weights[:, label], bias[label] = model.coef_[0], model.intercept_[0]
        return Solution(weights, bias)

    @override
    def value(self, decisions: Numbers) -> float:
        found, gold = decisions > 0, self.targets > 0
        return float(2 * (found & gold).sum() / max(1, found.sum() + gold.sum()))

    @override
    def factor(self, decisions: Numbers | None) -> float:
        if decisions is None:
            return USUAL_FACTOR
        wanted = (self.targets * len(decisions) + 1) / (len(decisions) + 2)  # Platt's, too

        def cross_entropy(factor: float) -> float:
            scores = decisions * factor
            return float((np.logaddexp(0, scores) - wanted * scores).sum())

        return _lowest(cross_entropy)


class NumberSolver(Solver):
    """``Ridge`` for a number a row, :math:`(N)`, with an ``alpha`` of one over the cost."""

    model = "Ridge"
    measure = "r2"

    @override
    def fit(self, rows: Any, targets: NDArray[Any], *, cost: float, seed: int) -> Solution:
        from sklearn.linear_model import Ridge

        model = Ridge(alpha=1 / cost, random_state=seed).fit(rows, targets)
        return Solution(model.coef_.reshape(-1, 1), np.reshape(model.intercept_, 1))

    @override
    def value(self, decisions: Numbers) -> float:
        error = float(np.square(decisions[:, 0] - self.targets).mean())
        variance = float(self.targets.var())
        return 1 - error / variance if variance else -error

    @override
    def error(self, value: float) -> float:
        return math.inf  # a ridge takes no time


def solve(
    rows: Any,
    solver: Solver,
    *,
    costs: Sequence[float],
    folds: int,
    seed: int,
    tried: Callable[[float, float], object] = lambda cost, value: None,
) -> tuple[Solution, dict[str, float]]:
    """Fits all rows, :math:`(N,F)` sparse, with the cost that is best in ``folds`` of them.

    Rows of float32 take less memory: those that are fitted become float64, which scikit-learn has.

    Each fold is answered by a model of the others; costs rise until one is worse than the best by
    a standard error. Of equals it is the lowest cost, and where there are too few rows the one next
    to 1. ``tried`` is called with each cost and its value.

    Returns:
        The model, whose scores are log odds where there are labels; and ``cost``, ``factor`` (from
        scikit-learn's decisions to these scores), and where there were folds ``value`` in them.
    """
    targets = solver.targets
    order = np.random.default_rng(seed).permutation(len(targets))
    parts = solver.folds(min(folds, len(targets)), order)
    cost = min(costs, key=lambda each: abs(math.log(each)))
    facts = dict[str, float]()
    best: Numbers | None = None
    if parts is not None:
        for each in sorted(costs):
            decisions = _in_folds(rows, solver, parts, cost=each, seed=seed)
            value = solver.value(decisions)
            tried(each, value)
            if best is None or value > facts["value"]:
                cost, best, facts = each, decisions, {"value": value}
            elif value < facts["value"] - solver.error(facts["value"]):
                break  # higher costs take the longest, and fit the rows of the folds still more
    found = solver.fit(_double(rows), targets, cost=cost, seed=seed)
    factor = solver.factor(best)
    scaled = Solution(found.weights * factor, found.bias * factor)
    return scaled, {"cost": cost, "factor": factor, **facts}


def _in_folds(rows: Any, solver: Solver, parts: Indices, *, cost: float, seed: int) -> Numbers:
    found: list[Numbers] = []
    places: list[Indices] = []
    for part in range(int(parts.max()) + 1):
        inside, others = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
        targets = solver.targets[others]
        model = solver.fit(_double(rows[others]), targets, cost=cost, seed=seed)
        found.append(model.decisions(rows[inside]))
        places.append(inside)
    decisions = np.concatenate(found)
    return decisions[np.argsort(np.concatenate(places))]


def _double(rows: Any) -> Any:
    return rows.astype(np.float64, copy=False)  # the same places


def _dealt(order: Indices, count: int) -> Indices:
    parts = np.empty(len(order), dtype=np.int64)
    parts[order] = np.arange(len(order)) % count
    return parts


def _linear_svc(
    rows: Any, targets: NDArray[Any], *, cost: float, seed: int, each: Any = None, **more: Any
) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        # After a thousand passes over the rows what is missing changes no answer.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(C=cost, random_state=seed, **more).fit(rows, targets, sample_weight=each)


def _lowest(loss: Callable[[float], float]) -> float:
    from scipy.optimize import minimize_scalar

    bounds = tuple(map(math.log, FACTORS))
    return math.exp(
        minimize_scalar(lambda log: loss(math.exp(log)), bounds=bounds, method="bounded").x
    )
