"""Soft labels: what a teacher says of every label of a row, from its run or from a column."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import DataError, UserError
from textmill.tasks.several.trained_task import TrainedTask
from textmill.tasks.task import Task
from textmill.text.cells import Rows, list_in
from textmill.text.features.labels import listed
from textmill.text.processors.texts import Classified

ROUNDED = 1e-6
"""How much a log probability may be above 0."""


class SoftLabels(Component):
    r"""The log probabilities that a teacher gives the labels of rows, to be learnt by a student.

    With the hard weight :math:`w` and the temperature :math:`T` the loss of a row is

    .. math::
        \ell = (1 - w) \, T^2 \, \mathrm{KL}(p_T \| q_T) + w \, \ell_\text{hard}

    where :math:`p_T` are the teacher's probabilities at the temperature and :math:`q_T` the
    student's. A row without a label has the first part alone, in full.

    Source: Hinton, Vinyals and Dean 2015, "Distilling the Knowledge in a Neural Network".
    """

    class Config(BaseConfig):
        teacher: TrainedTask.Config | None = None
        """A finished run that answers the rows of each batch while the student trains."""
        column: str | None = None
        """Instead of a teacher, the column of its log probabilities: an object with a number for
        each label, as ``textmill predict --scores`` writes it, or a list of them in the order of
        the labels."""
        temperature: float = 2.0
        """What scores are divided by before they become probabilities: above 1 the labels that the
        teacher holds for unlikely count more."""
        hard_weight: float = 0.5
        """Share of the loss of the rows' own labels, from 0 to below 1."""

        def __post_init__(self) -> None:
            require(self, "task.soft_labels", positive=["temperature"], shares=["hard_weight"])
            if (self.teacher is None) == (self.column is None):
                raise UserError(
                    "task.soft_labels wants a teacher or a column, one of them: "
                    "task.soft_labels.teacher.path=RUN, or task.soft_labels.column=scores."
                )

    def __init__(self, config: Config, *, names: Sequence[str]) -> None:
        self.config, self.names = config, tuple(names)
        self._teacher: Task | None = None

    def logs(self, rows: Rows, device: torch.device) -> Tensor:
        """The log probabilities of all labels, in their order. *Shape:* :math:`(B,L)`."""
        found = self._asked(rows, device) if self.config.column is None else self.read(rows)
        return torch.tensor(found, dtype=torch.float32, device=device)

    def read(self, rows: Rows) -> list[list[float]]:
        """What the column says; a DataError names the row of a cell that says something else."""
        return [self._in_cell(row, int(row.get("row", at))) for at, row in enumerate(rows)]

    def _in_cell(self, row: Mapping[str, Any], number: int) -> list[float]:
        column = str(self.config.column)
        cell = list_in(row.get(column))
        where = f"Row {number}, column '{column}':"
        if isinstance(cell, Mapping):
            if {*cell} != {*self.names}:
                raise DataError(
                    f"{where} the soft labels are of {', '.join(map(repr, cell))}. "
                    f"{listed(self.names, 'labels')}"
                )
            cell = [cell[name] for name in self.names]
        if not isinstance(cell, list) or len(cell) != len(self.names):
            raise DataError(
                f"{where} wanted the log probabilities of {len(self.names)} labels, an object or a "
                f"list, found {row.get(column)!r:.80}."
            )
        try:
            numbers = [float(each) for each in cell]
        except (TypeError, ValueError):
            numbers = [math.nan]
        if not all(-math.inf < each <= ROUNDED for each in numbers):
            raise DataError(
                f"{where} wanted log probabilities, which are finite and 0 or less, found "
                f"{row.get(column)!r:.80}. textmill predict RUN FILE --scores writes them."
            )
        return numbers

    def _asked(self, rows: Rows, device: torch.device) -> list[list[float]]:
        if self._teacher is None:
            self._teacher = self._built(rows, device)
        answers: list[Classified] = self._teacher.predict(rows)
        return [[answer.log_scores[name] for name in self.names] for answer in answers]

    def _built(self, rows: Rows, device: torch.device) -> Task:
        """The teacher; one whose answers or rows are others is refused."""
        config = self.config.teacher
        assert config is not None, "asked only where there is no column"
        teacher = config.build(device=str(device))
        if teacher.answer_class is not Classified:
            raise UserError(
                f"The teacher {config.path} is a {type(teacher).__name__}, whose answers are no "
                "labels of texts. Name the run of a classifier."
            )
        names = teacher.text.targets["label"].labels.names  # type: ignore[attr-defined]
        if {*names} != {*self.names}:
            raise UserError(
                f"The teacher {config.path} knows other labels than this run. "
                f"{listed(self.names, 'labels of this run')} {listed(names, 'of the teacher')} "
                "Train on the same labels, or declare them by labels.names."
            )
        has = [name for name in rows[0] if name != "row"]
        if missing := [name for name in teacher.text.input_columns if name not in has]:
            raise UserError(
                f"The teacher {config.path} reads the column '{missing[0]}', which the rows of "
                f"train_data do not have: {', '.join(has)}. Name it in train_data.columns."
            )
        return teacher
