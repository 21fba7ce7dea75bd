"""Regression of documents: one number a text, by the squared error."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.metrics.metric import Metric
from weft.metrics.regression import Regression
from weft.tasks import registries
from weft.tasks.column_task import ColumnsTask
from weft.tasks.task import Loss
from weft.text.columns.numbers import NumberColumn, Numbers
from weft.text.features.dictionaries import Dictionary
from weft.text.processors.regression import Estimated, NumberText, RegressionText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["DocumentRegression", "NumberTask"]


class NumberTask(ColumnsTask):
    """Base of tasks whose answer is a number: loss, metrics and answers of scores.

    A subclass says which columns there are, and makes one score a row of them, :math:`(B)`.
    """

    class Config(ColumnsTask.Config):
        """Settings of the task."""

        number: str = "score"
        """The column of the number."""
        span: tuple[float, float] | None = None
        """The least and the greatest number there may be: the module learns them as 0 and 1; null:
        it learns numbers as they are."""
        max_length: int = 512
        """Most tokens of a text."""

        def __post_init__(self) -> None:
            """Refuses what no text has."""
            require(self, "task", sizes=["max_length"])

    config: Config
    text: NumberText

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The squared error of a batch of rows with numbers, where ``span`` is 0 to 1."""
        total = F.mse_loss(scores, batch["number"], reduction="sum")
        return Loss(total, torch.tensor(len(batch), device=scores.device))

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Estimated]:
        """Each row's number."""
        return self.text.decode(scores.cpu().numpy())

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """Errors and correlations of the numbers."""
        return {"numbers": Regression()}

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Estimated],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds numbers."""
        gold = [float(row[self.text.number.name]) for row in rows]
        metrics["numbers"].update(gold, [answer.number for answer in answers])

    @override
    def _read_batch(self, batch: Any) -> list[dict[str, Any]]:
        """The numbers of a ready batch; its texts are not read back."""
        if not isinstance(batch, ColumnBatch) or "number" not in batch:
            return super()._read_batch(batch)
        column = self.text.number
        return [{column.name: column.restored(n)} for n in batch["number"].tolist()]

    @override
    def answer_row(self, answer: Estimated) -> dict[str, Any]:
        """An answer as plain data: the number, in a prediction's place."""
        return {"prediction": round(answer.number, 6)}


@registries.tasks.register("document_regression")
class DocumentRegression(NumberTask):
    """Gives texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text, lengths)``, with ``dense=``, ``dictionary=`` and
    ``ngrams=`` where the recipe has such, and gives one number a row, :math:`(B,1)`.
    """

    class Config(NumberTask.Config):
        """Settings of the task."""

        column: str = "text"
        """The column of the text."""

    config: Config
    text: RegressionText

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        dense: Numbers | None = None,
        dictionary: Dictionary | None = None,
        ngrams: Tokenizer | None = None,
    ) -> None:
        super().__init__(config, module=module)
        self.text = RegressionText(
            tokenizer,
            NumberColumn(config.number, span=config.span),
            column=config.column,
            max_length=config.max_length,
            dense=dense,
            dictionary=dictionary,
            ngrams=ngrams,
        )

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """The number of each row, as the module learns it. *Shape:* :math:`(B)`."""
        beside = {role: batch[role] for role in self.text.inputs if role != "text"}
        out: Tensor = self.module(batch["text"], batch.lengths["text"], **beside)
        return out.squeeze(1).float()
