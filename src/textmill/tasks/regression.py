"""Regression of documents, or pairs: one number a row, by the squared error."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.metrics.metric import Metric
from textmill.metrics.regression import Regression
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Loss, Metrics
from textmill.text.cells import Rows
from textmill.text.columns.column import Column
from textmill.text.columns.inputs import BesideText, text_columns
from textmill.text.columns.numbers import NumberCheck, NumberColumn, number_in
from textmill.text.columns.token_ids import one_limit
from textmill.text.processors.texts import Estimated, NumberText
from textmill.text.tokenizers.tokenizer import Tokenizer


class NumberConfig(ColumnsTask.Config):
    """Settings of tasks whose answer is a number."""

    number: str = "score"
    """The column of the number."""
    span: tuple[float, float] | None = None
    """The least and the greatest number there may be: the module learns them as 0 and 1; null:
    it learns numbers as they are."""
    max_length: int = 512
    """Longest text, in tokens; over_length says what happens to longer ones."""

    def __post_init__(self) -> None:
        require(self, "task", sizes=["max_length"])

    @override
    def row_check(self, labels: Any = None) -> NumberCheck:
        return NumberCheck(self.number, self.span)


class NumberTask(ColumnsTask):
    """Base of tasks whose answer is a number; the module gives one a row, :math:`(B,1)`."""

    text: NumberText

    def __init__(
        self, config: Any, inputs: Mapping[str, Column], *, module: torch.nn.Module
    ) -> None:
        super().__init__(config, module=module)
        number = NumberColumn(config.number, span=config.span)
        self.text = NumberText(inputs, self.with_weights({"number": number}))

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The squared error of a batch of rows with numbers, where ``span`` is 0 to 1."""
        errors = F.mse_loss(scores.squeeze(1).float(), batch["number"], reduction="none")
        return Loss.of_rows(errors, self.weights(batch))

    @override
    def averaged(self, members: Sequence[Any], scores: Sequence[Tensor]) -> Tensor:
        return torch.stack([*scores]).mean(dim=0)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Estimated]:
        return self.text.decode(scores.squeeze(1).float().cpu().numpy())

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """The number of each row, as the module learns it. *Shape:* :math:`(B)`."""
        return (self.scores(batch).squeeze(1).float(),)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"numbers": Regression()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Estimated], rows: Rows) -> None:
        name = self.text.number.name
        gold = [number_in(row[name], name, at) for at, row in enumerate(rows)]
        metrics["numbers"].update(gold, [answer.number for answer in answers])


@registries.tasks.register("document_regression")
class DocumentRegression(NumberTask):
    """Gives texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text, lengths)``, with ``dense=``, ``dictionary=`` and
    ``ngrams=`` if the recipe has them, and gives one number a row, :math:`(B,1)`.
    """

    class Config(NumberConfig):
        column: str = "text"
        """The column of the text."""

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        **beside: Unpack[BesideText],
    ) -> None:
        inputs = text_columns(
            tokenizer, column=config.column, max_length=config.max_length, **beside
        )
        super().__init__(config, inputs, module=module)


@registries.tasks.register("pair_regression")
class PairRegression(NumberTask):
    """Gives two texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives one number a row,
    :math:`(B,1)`.
    """

    class Config(NumberConfig):
        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        texts = one_limit(("text1", "text2"), config.columns, tokenizer, config.max_length)
        super().__init__(config, texts, module=module)
