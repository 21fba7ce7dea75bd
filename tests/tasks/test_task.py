"""What every task has from its base: the loss is measured, and answers where it says how."""

import re

import pytest
import torch

from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.metrics.streaming import Mean
from textmill.tasks import Loss, Outputs
from textmill.tasks.task import Task


class Lengths(Task):
    """Answers with the length of a row; its loss is 1.5 a row."""

    class Config(BaseConfig):
        """No settings."""

    def __init__(self, config):
        self.config = config

    def batches(self, data, *, train, seed):
        raise NotImplementedError

    def training_step(self, batch, examples=()):
        return Loss(torch.tensor(1.5 * len(batch)), torch.tensor(len(batch)))

    def validation_step(self, batch, examples):
        answered = {i: len(row) for i, row in enumerate(batch) if row}
        return Outputs(self.training_step(batch), answered)

    def predict(self, rows):
        return [len(row) for row in rows]

    def answer_row(self, answer):
        return {"prediction": answer}


class UnmeasuredLengths(Lengths):
    """Names a metric, and forgets to measure."""

    class Config(Lengths.Config):
        """No settings."""

    def answer_metrics(self):
        return {"error": Mean("error")}


class MeasuredLengths(UnmeasuredLengths):
    """Says how far answers are from what their rows have."""

    class Config(Lengths.Config):
        """No settings."""

    def measure(self, metrics, answers, rows):
        for answer, row in zip(answers, rows, strict=True):
            metrics["error"].update(float(abs(answer - row["length"])), 1)


EXAMPLES = [{"length": 3}, {"length": 9}, {"length": 5}]


def values(task, *batches):
    metrics = task.metrics()
    for batch in batches:
        task.aggregate(metrics, task.validation_step(batch, EXAMPLES), EXAMPLES)
    return task.reduce(metrics)


def test_the_loss_of_a_task_that_names_no_metric_is_measured():
    assert values(Lengths.Config().build(), ["abc", "", "a"], ["a"]) == {"loss": 1.5}


def test_answers_are_measured_with_the_rows_they_answer():
    found = values(MeasuredLengths.Config().build(), ["abc", "", "a"])
    assert list(found) == ["loss", "error"]
    assert found == pytest.approx({"loss": 1.5, "error": 2.0})


def test_a_batch_without_an_answer_adds_its_loss_alone():
    found = values(MeasuredLengths.Config().build(), ["", ""], ["abc", "", "a"])
    assert found == pytest.approx({"loss": 1.5, "error": 2.0})


def test_a_metric_that_nothing_enters_is_refused_and_not_nan():
    wanted = (
        "UnmeasuredLengths names metrics of its answers (error), but has no method "
        "measure(metrics, answers, rows), which adds answers to them. Write it, or leave "
        "answer_metrics out."
    )
    with pytest.raises(UserError, match=f"^{re.escape(wanted)}$"):
        values(UnmeasuredLengths.Config().build(), ["abc"])
