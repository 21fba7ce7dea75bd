"""Tasks on pairs of texts: a label, a number, or a document's rank for a query."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.metrics.metric import Metric
from weft.metrics.ranking import Ranking
from weft.models.pairs import ranking_hinge
from weft.tasks import registries
from weft.tasks.classification import LabelTask
from weft.tasks.column_task import ColumnsTask
from weft.tasks.regression import NumberTask
from weft.tasks.task import Loss
from weft.text.columns.numbers import NumberColumn
from weft.text.features.labels import Labels
from weft.text.processors.pairs import PairLabelText, PairNumberText, Ranked, RankingText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["PairClassification", "PairRegression", "QueryDocumentRanking"]


@registries.tasks.register("pair_classification")
class PairClassification(LabelTask):
    """Gives two texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives scores,
    :math:`(B,L)`.
    """

    class Config(LabelTask.Config):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    config: Config

    def __init__(
        self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer, labels: Labels
    ) -> None:
        columns, limit = config.columns, config.max_length
        text = PairLabelText(tokenizer, labels, columns=columns, max_length=limit)
        super().__init__(config, module=module, text=text, labels=labels)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """Unnormalized scores of the labels. *Shape:* :math:`(B,L)`."""
        return _scores(self.module, batch)


@registries.tasks.register("pair_regression")
class PairRegression(NumberTask):
    """Gives two texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives one number a row,
    :math:`(B,1)`.
    """

    class Config(NumberTask.Config):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    config: Config
    text: PairNumberText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        number = NumberColumn(config.number, span=config.span)
        columns, limit = config.columns, config.max_length
        self.text = PairNumberText(tokenizer, number, columns=columns, max_length=limit)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """The number of each row, as the module learns it. *Shape:* :math:`(B)`."""
        return _scores(self.module, batch).squeeze(1).float()


def _scores(module: torch.nn.Module, batch: ColumnBatch) -> Tensor:
    lengths = batch.lengths
    out: Tensor = module(batch["text1"], lengths["text1"], batch["text2"], lengths["text2"])
    return out


@registries.tasks.register("query_document_ranking")
class QueryDocumentRanking(ColumnsTask):
    """Scores how well a document answers a query, from -1 to 1.

    A row of the training data is a query, a document that answers it and one that does not; the
    first is to score higher by a margin. In prediction a row is a query and a document.

    The module is called as ``module(query, lengths, document, lengths)``, in training and
    evaluation with the wrong documents and their lengths behind, and gives a score for each
    document, :math:`(B,1)` or :math:`(B,2)`.
    """

    class Config(ColumnsTask.Config):
        """Settings of the task."""

        columns: tuple[str, str, str] = ("query", "positive", "negative")
        """The columns of the query, of the right document (in prediction, of the one that is asked
        about), and of the wrong one."""
        max_length: int = 512
        """Most tokens of each text."""
        margin: float = 1.0
        """By how much a right document is to score higher than a wrong one."""

        def __post_init__(self) -> None:
            """Refuses what no text has, and a margin that asks for nothing."""
            require(self, "task", sizes=["max_length"], positive=["margin"])

    config: Config
    text: RankingText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        self.text = RankingText(tokenizer, columns=config.columns, max_length=config.max_length)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """Scores of the right documents, and of the wrong ones where there are such.

        *Shape:* :math:`(B,1)` or :math:`(B,2)`.
        """
        roles = ("query", "positive", *(("negative",) if "negative" in batch else ()))
        inputs = [part for role in roles for part in (batch[role], batch.lengths[role])]
        out: Tensor = self.module(*inputs)
        return out

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The hinge between right and wrong documents.

        Raises:
            DataError: The batch has no wrong documents.
        """
        count = torch.tensor(len(batch["negative"]), device=scores.device)
        lacking = ranking_hinge(scores[:, 0], scores[:, 1], margin=self.config.margin)
        return Loss(lacking.sum(), count)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Ranked]:
        """Each row's score."""
        return self.text.decode(scores.float().cpu().numpy())

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """How often, and by how much, right documents score higher."""
        return {"ranking": Ranking()}

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Ranked],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds scores."""
        right, wrong = [a.score for a in answers], [a.negative for a in answers]
        metrics["ranking"].update(right, wrong)

    @override
    def answer_row(self, answer: Ranked) -> dict[str, Any]:
        """An answer as plain data: the score, and in an evaluation that of the wrong document."""
        row = {"prediction": round(answer.score, 6)}
        if answer.negative is not None:
            row["negative_score"] = round(answer.negative, 6)
        return row
