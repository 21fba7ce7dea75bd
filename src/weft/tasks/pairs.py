"""Tasks on pairs of texts: a label, a number, or a document's rank for a query."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.metrics.label_scores import Ranking
from weft.metrics.metric import Metric
from weft.models.pairs import ranking_hinge
from weft.tasks import classification as labels_of
from weft.tasks import registries
from weft.tasks import regression as numbers_of
from weft.tasks.column_task import ColumnsTask
from weft.tasks.task import Loss
from weft.text.columns.column import Column
from weft.text.columns.labels import label_column
from weft.text.columns.numbers import NumberColumn
from weft.text.columns.token_ids import TextColumn
from weft.text.features.labels import Labels
from weft.text.processors.classification import LabelText
from weft.text.processors.pairs import PairLabelText, PairNumberText, Ranked, RankingText
from weft.text.processors.regression import NumberText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["PairClassification", "PairRegression", "QueryDocumentRanking"]


@registries.tasks.register("pair_classification")
class PairClassification(ColumnsTask):
    """Gives two texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives scores,
    :math:`(B,L)`.
    """

    class Config(labels_of.LabelConfig):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    text: LabelText

    def __init__(
        self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer, labels: Labels
    ) -> None:
        super().__init__(config, module=module)
        texts = _texts(PairLabelText.alike, config.columns, tokenizer, config.max_length)
        self.text = PairLabelText(texts, {"label": label_column(labels)})
        self.criterion = labels_of.label_criterion(config, labels)

    loss = labels_of.label_loss
    answers = labels_of.label_answers
    answer_metrics = labels_of.label_metrics
    measure = labels_of.measure_labels
    remarks = labels_of.label_remarks
    read_batch = labels_of.read_labels


@registries.tasks.register("pair_regression")
class PairRegression(ColumnsTask):
    """Gives two texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives one number a row,
    :math:`(B,1)`.
    """

    class Config(numbers_of.NumberConfig):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    text: NumberText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        texts = _texts(PairNumberText.alike, config.columns, tokenizer, config.max_length)
        number = NumberColumn(config.number, span=config.span)
        self.text = PairNumberText(texts, {"number": number})

    loss = numbers_of.number_loss
    answers = numbers_of.number_answers
    answer_metrics = numbers_of.number_metrics
    measure = numbers_of.measure_numbers
    read_batch = numbers_of.read_numbers


def _texts(
    roles: Sequence[str], columns: Sequence[str], tokenizer: Tokenizer, limit: int
) -> dict[str, Column]:
    named = zip(roles, columns, strict=True)
    return {role: TextColumn(name, tokenizer, limit=limit) for role, name in named}


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
            require(self, "task", sizes=["max_length"], positive=["margin"])

    text: RankingText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        texts = _texts(RankingText.alike, config.columns, tokenizer, config.max_length)
        wrong = {"negative": texts.pop("negative")}
        self.text = RankingText(texts, wrong)

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
        return {"ranking": Ranking()}

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Ranked],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        right, wrong = [a.score for a in answers], [a.negative for a in answers]
        metrics["ranking"].update(right, wrong)
