"""The base of tasks whose rows have typed columns: a subclass is a page.

It says which columns there are (a text processor), and the loss, metrics and answers of scores.
Batches, evaluation, prediction and what is refused come from here.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from textmill.data.column_batch import ColumnBatch, collate_columns
from textmill.errors import DataError, UserError
from textmill.exported.forward import Forward, RowForward
from textmill.tasks.rows_task import IN_PARTS, RowsTask
from textmill.tasks.task import Loss, Outputs, Row
from textmill.text.cells import Rows
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.processors.text_processor import Encoded, TextProcessor


class ColumnsTask(RowsTask):
    """A task over rows of typed columns.

    A subclass makes ``self.text`` and has :meth:`loss` and :meth:`answers`, and where answers are
    measured ``answer_metrics`` and ``measure``; and :meth:`scores` where its module is called in
    another way.
    """

    @override
    def use_text(self, text: TextProcessor) -> None:
        settings = self.text.present_settings
        super().use_text(text)
        for name, value in settings.items():
            setattr(self.text, name, value)
        self.check_lengths()

    # -- from a batch to scores, a loss and answers

    def scores(self, batch: ColumnBatch) -> Any:
        """What the module makes of a batch, which is on the module's device.

        The module is called with :meth:`inputs`: ``module(text, lengths, dense=...)``.
        """
        texts, beside = self.inputs(batch)
        return self.module(*texts, **beside)

    def inputs(self, batch: ColumnBatch) -> tuple[list[Tensor], dict[str, Tensor]]:
        """What the module is called with: texts by position, what stands beside them by name.

        Of each text these are the ids and the lengths, in the order of the roles.
        """
        texts, beside = list[Tensor](), dict[str, Tensor]()
        for role, column in self.text.all.items():
            if isinstance(column, IdsColumn) and not column.shares:
                if role in self.text.inputs or role in batch:
                    texts += [batch[role], batch.lengths[role]]
            elif role in self.text.inputs:
                beside[role] = batch[role]
        return texts, beside

    def weights(self, batch: ColumnBatch, role: str = "weight") -> Tensor | None:
        """The weight of each row; None if all count alike. *Shape:* :math:`(B)`."""
        return batch[role] if role in self.text.targets else None

    @abstractmethod
    def loss(self, scores: Any, batch: ColumnBatch) -> Loss:
        """The loss of a batch's scores: a sum over its targets, with their count."""

    @abstractmethod
    def answers(self, scores: Any, batch: ColumnBatch) -> list[Any]:
        """The typed answer to each row of a batch."""

    def averaged(self, members: Sequence[Any], scores: Sequence[Any]) -> Any:
        """Scores whose answers are the mean of those of an ensemble's members.

        Args:
            members: Tasks of this one's kind with the same labels.
            scores: What each of them makes of a batch.
        """
        raise NotImplementedError

    # -- what an export computes

    @property
    def exported_forward(self) -> Forward:
        """How an export answers from :meth:`exported_outputs`, without torch."""
        return RowForward()

    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """What an exported graph of the task gives of a batch; without it there is no export."""
        raise UserError(
            f"A {type(self).__name__} cannot be exported: it has no method "
            "exported_outputs(batch), which says what its text processor decodes."
        )

    @override
    def collate(self, encoded: Encoded, rows: NDArray[np.int64]) -> ColumnBatch:
        return collate_columns(encoded, self.text.all, rows)

    @override
    def answers_to(self, batch: ColumnBatch, rows: Rows) -> list[Any]:
        answers = self.answers(self.scores(batch.to(self.device)), batch)
        return [self.text.completed(*pair) for pair in zip(answers, rows, strict=True)]

    @override
    def read_batch(self, batch: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{} for _ in range(self.batch_size(batch))]
        texts: Sequence[Any] = ()
        for role, column in self.text.all.items():
            if not (isinstance(batch, ColumnBatch) and role in batch):
                continue
            encoded: Any = batch[role].cpu().numpy()
            if role in batch.lengths:
                ends = batch.lengths[role].tolist()
                encoded = [row[:end] for row, end in zip(encoded, ends, strict=True)]
            cells = column.cells(encoded, texts)
            texts = texts or cells
            if len(cells):
                for row, cell in zip(rows, cells, strict=True):
                    row[column.name] = cell
        return rows

    @override
    def training_step(self, batch: ColumnBatch, examples: Rows = ()) -> Loss:
        batch = batch.to(self.device, non_blocking=True)
        return self.loss(self.scores(batch), batch)

    @override
    def validation_step(self, batch: ColumnBatch, examples: Sequence[Mapping[str, Any]]) -> Outputs:
        batch = batch.to(self.device)
        scores = self.scores(batch)
        answers = zip(self.answers(scores, batch), examples, strict=True)
        completed = [self.text.completed(answer, row) for answer, row in answers]
        return Outputs(self.loss(scores, batch).detach(), dict(enumerate(completed)))

    @override
    def check(self, row: Row) -> None:
        over = self.text.encode([row], with_targets=False).over_length
        if len(over) and self.config.over_length == "error":
            raise DataError(
                "The row has more tokens than the model takes: "
                f"{self.text.limits_in_words}. {IN_PARTS}"
            )

    @property
    @override
    def predict_checks(self) -> bool:
        own = type(self)  # what a subclass refuses, or answers, is its own affair
        return own.check is ColumnsTask.check and own.predict is RowsTask.predict
