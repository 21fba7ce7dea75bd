"""Solved linear models, beside scikit-learn's own on the same numbers."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from textmill.models.linear_solver import LabelSolver, NumberSolver, SeveralLabelsSolver, solve


def made(rows=120, size=30, seed=1):
    """Sparse numbers of rows, and a hidden score of each for four labels."""
    draw = np.random.default_rng(seed)
    numbers = draw.random((rows, size)) * (draw.random((rows, size)) < 0.3)
    hidden = numbers @ draw.normal(size=(size, 4)) + 0.3 * draw.normal(size=(rows, 4))
    return csr_matrix(numbers), hidden


@pytest.mark.parametrize("labels", [2, 3, 4])
def test_decisions_are_those_of_linearsvc_times_one_factor(labels):
    rows, hidden = made()
    targets = hidden[:, :labels].argmax(axis=1)
    model, facts = solve(rows, LabelSolver(targets, labels, {}), costs=(0.3, 1), folds=5, seed=3)
    theirs = LinearSVC(C=facts["cost"], random_state=3).fit(rows, targets)
    wanted = theirs.decision_function(rows)
    wanted = np.stack([-wanted, wanted], axis=1) if labels == 2 else wanted
    np.testing.assert_allclose(model.decisions(rows), facts["factor"] * wanted)


def test_of_several_labels_each_has_its_own_linearsvc():
    rows, hidden = made()
    targets = (hidden > 0).astype(np.int64)
    solver = SeveralLabelsSolver(targets, {2: 3.0})
    model, facts = solve(rows, solver, costs=(0.3, 1), folds=5, seed=3)
    for label in range(4):
        weight = {1: 3.0} if label == 2 else None
        theirs = LinearSVC(C=facts["cost"], random_state=3, class_weight=weight)
        wanted = facts["factor"] * theirs.fit(rows, targets[:, label]).decision_function(rows)
        np.testing.assert_allclose(model.decisions(rows)[:, label], wanted)


def test_numbers_are_those_of_ridge():
    rows, hidden = made()
    model, facts = solve(rows, NumberSolver(hidden[:, 0]), costs=(0.1, 1, 10), folds=5, seed=3)
    theirs = Ridge(alpha=1 / facts["cost"]).fit(rows, hidden[:, 0])
    np.testing.assert_allclose(model.decisions(rows)[:, 0], theirs.predict(rows), rtol=1e-4)
    assert facts["factor"] == 1


@pytest.mark.parametrize(
    "solver",
    [
        lambda hidden: LabelSolver(hidden.argmax(axis=1), 4, {}),
        lambda hidden: SeveralLabelsSolver((hidden > 0).astype(np.int64), {}),
        lambda hidden: NumberSolver(hidden[:, 0]),
    ],
    ids=["labels", "several", "numbers"],
)
def test_the_cost_is_the_best_in_folds(solver):
    rows, hidden = made(rows=60)
    seen = {}
    costs = (10.0, 0.001, 1.0)
    _, facts = solve(rows, solver(hidden), costs=costs, folds=4, seed=1, tried=seen.__setitem__)
    assert list(seen) == sorted(costs)
    assert facts["value"] == max(seen.values()) == seen[facts["cost"]]


def test_a_row_is_asked_of_a_model_that_has_not_seen_it():
    """With labels by chance no cost is better than chance in folds, however well it fits."""
    draw = np.random.default_rng(0)
    rows, targets = csr_matrix(draw.random((200, 400))), draw.integers(0, 2, 200)
    model, facts = solve(rows, LabelSolver(targets, 2, {}), costs=(100.0,), folds=5, seed=1)
    assert (model.decisions(rows).argmax(axis=1) == targets).mean() > 0.95
    assert 0.35 < facts["value"] < 0.65
    assert facts["factor"] < 0.5  # of decisions that are wrong as often as not


def test_probabilities_are_as_often_right_as_they_say():
    rows, hidden = made(rows=2000)
    targets = hidden[:, :3].argmax(axis=1)
    train, others = slice(0, 1000), slice(1000, 2000)
    solver = LabelSolver(targets[train], 3, {})
    model, _ = solve(rows[train], solver, costs=(0.1, 1, 10), folds=5, seed=1)
    scores = np.exp(model.decisions(rows[others]))
    shares = (scores / scores.sum(axis=1, keepdims=True)).max(axis=1)
    right = (scores.argmax(axis=1) == targets[others]).mean()
    assert shares.mean() == pytest.approx(right, abs=0.04)


def test_a_label_that_counts_more_is_answered_more_often_and_one_of_0_never():
    rows, hidden = made()
    targets = hidden[:, :3].argmax(axis=1)

    def answers(**weights):
        by_number = {int(name[1:]): weight for name, weight in weights.items()}
        solver = LabelSolver(targets, 3, by_number)
        model, _ = solve(rows, solver, costs=(0.3,), folds=5, seed=1)
        return np.bincount(model.decisions(rows).argmax(axis=1), minlength=3)

    plain = answers()
    assert answers(_1=8.0)[1] > plain[1]
    assert answers(_1=0.0)[1] == 0 < plain[1]


FEW = {
    "no label but one": ([0, 0, 0], 2, [0, 0, 0]),
    "one row": ([1], 3, [1]),
    "each label once": ([0, 1, 2], 3, [0, 1, 2]),
    "a label once": ([0, 0, 1, 1, 2, 0], 3, [0, 0, 1, 1, 2, 0]),
    "a label without a row": ([0, 3, 0, 3, 0, 3], 5, [0, 3, 0, 3, 0, 3]),
}


@pytest.mark.parametrize("name", FEW)
def test_few_rows_and_rare_labels_are_solved(name):
    targets, size, wanted = FEW[name]
    rows = csr_matrix(np.eye(4)[np.array(targets)])  # a number of its own for each label
    solver = LabelSolver(np.array(targets), size, {})
    model, _ = solve(rows, solver, costs=(1.0, 10.0), folds=5, seed=1)
    assert model.decisions(rows).argmax(axis=1).tolist() == wanted
    hot = np.eye(size, dtype=np.int64)[targets]
    model, _ = solve(rows, SeveralLabelsSolver(hot, {}), costs=(10.0,), folds=5, seed=1)
    assert (model.decisions(rows) > 0).astype(int).tolist() == hot.tolist()


def test_costs_above_one_that_is_clearly_worse_are_not_tried():
    class Known(LabelSolver):
        def value(self, decisions):
            return next(values)

    rows, targets = csr_matrix(np.eye(400)), np.arange(400) % 2
    for values_of, tried in (([0.5, 0.9, 0.89, 0.95, 0.7, 0.8], 5), ([0.9, 0.88, 0.95], 2)):
        values, seen = iter(values_of), dict[float, float]()
        costs = [0.01 * 2**n for n in range(len(values_of))]
        solver = Known(targets, 2, {})
        _, facts = solve(rows, solver, costs=costs, folds=2, seed=1, tried=seen.__setitem__)
        assert len(seen) == tried  # 400 rows: the standard error of 0.9 is 0.015
        assert facts["value"] == max(values_of[:tried])
