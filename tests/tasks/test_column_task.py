"""What holds for every task over typed columns, whatever its columns, model and settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import torch

from tests.tasks import test_classification as classification
from tests.tasks import test_contrastive as contrastive
from tests.tasks import test_embedding as embedding
from tests.tasks import test_extractive_summarization as extracts
from tests.tasks import test_intent_slots as joint
from tests.tasks import test_pairs as pairs
from tests.tasks import test_parsing_by_stack as parsing
from tests.tasks import test_question_answering as question
from tests.tasks import test_ranking as ranking
from tests.tasks import test_regression as regression
from tests.tasks import test_tagging as tagging
from tests.tasks import test_tree_tagging as trees
from tests.tasks.rows import Row, Rows
from textmill.errors import CheckpointError, UserError
from textmill.inference import Predictor
from textmill.recipes import registries
from textmill.runs.ensemble import ensemble_of
from textmill.tasks import evaluate
from textmill.tasks.column_task import ColumnsTask
from textmill.text import load_text_processor
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.processors.texts import Embedded


@dataclass(frozen=True)
class Case:
    make: Callable[[], ColumnsTask]
    rows: Sequence[Row]
    targets: int
    """How many the loss of all rows sums over."""
    read_back: bool = True
    """Whether ready batches have all that is measured of their rows."""
    alone: bool = True
    """Whether a row's loss is its own: not where it is compared with others of its batch."""

    def data(self, **batching):
        return Rows(self.rows, **batching)

    def asked(self, task):
        return [{name: row[name] for name in task.text.input_columns} for row in self.rows]


def cases(module, rows, targets):
    """Those of a file of tests, by what is said there of each."""
    name = module.__name__.removeprefix("tests.tasks.test_")
    for variant, settings in module.VARIANTS.items():
        own = settings.get("rows", rows)
        yield f"{name}: {variant}", Case(partial(module.make, **settings), own, targets)


CASES = dict(
    [
        *cases(classification, classification.ROWS, 5),
        *cases(contrastive, contrastive.ROWS, 6),
        *cases(regression, regression.ROWS, 4),
        *cases(pairs, pairs.ROWS, 5),
        *cases(ranking, ranking.ROWS, 4),
        *cases(embedding, embedding.ROWS, 5),
        *cases(tagging, tagging.ROWS, 10),  # words: padding is none
        *cases(joint, joint.TAGS, 5),
        *cases(trees, trees.ROWS, 12),
        *cases(parsing, parsing.ROWS, 28),
        *cases(extracts, extracts.ROWS, 3),  # a text without a sentence has no loss
        *cases(question, question.ALL, 6),
    ]
)
CASES["intent_slots: spans"] = replace(
    CASES["intent_slots: spans"], read_back=False
)  # one is within a word
for name in extracts.VARIANTS:  # a summary is not in its batch
    CASES[f"extractive_summarization: {name}"] = replace(
        CASES[f"extractive_summarization: {name}"], read_back=False
    )


def ensemble(make):
    """Of two tasks that have other weights."""
    return ensemble_of([make(), make()])


for name in (
    "classification: several labels",
    "regression: plain",
    "tagging: crf",
    "intent_slots: crf",
):
    CASES[f"ensemble: {name}"] = replace(CASES[name], make=partial(ensemble, CASES[name].make))
COMPARED = [f"contrastive: {name}" for name in contrastive.VARIANTS]
COMPARED += [f"embedding: {name}" for name in ("negatives", "wrong texts", "cosent")]
for name in COMPARED:
    CASES[name] = replace(CASES[name], alone=False)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def task(case):
    return case.make()


def close(one: Any, two: Any) -> bool:
    """Whether answers are the same but for rounding."""
    if isinstance(one, dict):
        return set(one) == set(two) and all(close(value, two[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(two) and all(map(close, one, two))
    return one == (pytest.approx(two, abs=2e-5) if isinstance(one, float) else two)


def test_every_task_over_columns_is_here():
    shipped = {registries.tasks.get(name) for name in registries.tasks.names()}
    shipped = {task for task in shipped if issubclass(task, ColumnsTask)}
    assert {type(case.make()) for case in CASES.values()} >= {
        task for task in shipped if task.__module__.startswith("textmill.")
    }


def test_a_text_keeps_one_token_at_least(task):
    task = getattr(task, "members", (task,))[0]
    with pytest.raises(UserError, match=r"task\.max_length must be at least 1, but is 0"):
        replace(task.config, max_length=0)


def test_two_halves_are_the_whole(case, task):
    (whole,) = task.batches(case.data(batch_size=9), train=True, seed=1)
    parts = list(task.batches(case.data(batch_size=2), train=True, seed=1))
    losses = [task.training_step(batch) for batch in parts]
    loss = task.training_step(whole)
    assert len(parts) > 1
    assert loss.count == sum(part.count for part in losses) == case.targets
    if case.alone:
        assert torch.allclose(loss.total, sum(part.total for part in losses), rtol=1e-5)


def test_evaluation_is_that_of_one_batch_whatever_the_batching(case, task):
    whole = evaluate(task, task.batches(case.data(batch_size=9), train=False, seed=1))
    assert [row["row"] for row in whole.rows] == list(range(len(case.rows)))
    assert set(whole.directions) == set(whole.values)
    for batching in ({"batch_size": 1}, {"batch_size": None, "max_tokens": 40}):
        parts = evaluate(task, task.batches(case.data(**batching), train=False, seed=1))
        others = {} if case.alone else {"loss": whole.values["loss"]}
        found = {**parts.values, **others}
        assert found == pytest.approx(whole.values, rel=1e-4, nan_ok=True)
        assert close(parts.rows, whole.rows)


def test_the_predictor_answers_as_the_evaluation_did(case, task):
    rows = evaluate(task, task.batches(case.data(batch_size=3), train=False, seed=1)).rows
    for answer, row in zip(Predictor(task)(case.asked(task)), rows, strict=True):
        found = task.answer_row(answer)
        if task.answer_class is Embedded:  # an evaluation tells how near vectors are
            found.pop("prediction")
        assert close(found, {name: row[name] for name in found})


def test_the_saved_text_path_is_the_same(case, task, tmp_path):
    task.text.save(tmp_path)
    loaded = load_text_processor(tmp_path)
    assert (loaded.columns, loaded.input_columns) == (task.text.columns, task.text.input_columns)
    one, two = (path.encode(case.rows, with_targets=True) for path in (task.text, loaded))
    assert list(one) == list(two)
    assert all(one[name] == two[name] for name in one)
    assert set(loaded.ingredients) == set(task.text.ingredients)
    before = task.predict(case.asked(task))
    task.use_text(loaded)
    assert task.predict(case.asked(task)) == before


def test_a_text_path_of_another_task_is_refused(task):
    with pytest.raises(CheckpointError, match=f"works with a {type(task.text).__name__}"):
        task.use_text(object())


def test_ready_batches_are_trained_on_and_evaluated_as_their_rows_are(case, task):
    ready = list(task.batches(case.data(batch_size=3), train=True, seed=1))
    given = task.batches(ready, train=True, seed=1)
    assert [len(batch) for batch in given] == [len(batch) for batch in ready]
    texts = {c.name for c in task.text.inputs.values() if isinstance(c, IdsColumn) and not c.shares}
    assert all(texts <= set(row) for batch in ready for row in given.examples(batch))
    rows = evaluate(task, task.batches(case.data(batch_size=3), train=False, seed=1)).values
    found = evaluate(task, task.batches(ready, train=False, seed=1)).values
    assert found["loss"] == pytest.approx(rows["loss"], rel=1e-5)
    if case.read_back:
        assert found == pytest.approx(rows, rel=1e-5, nan_ok=True)
