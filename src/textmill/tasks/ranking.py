"""Ranking: how well a document answers a query."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.metrics.label_scores import Ranking
from textmill.metrics.metric import Metric
from textmill.models.pairs import ranking_hinge
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Loss, Metrics
from textmill.text.cells import Rows
from textmill.text.columns.token_ids import one_limit
from textmill.text.processors.texts import Ranked, RankingText
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tasks.register("query_document_ranking")
class QueryDocumentRanking(ColumnsTask):
    """Scores how well a document answers a query, from -1 to 1.

    A row of the training data is a query, a document that answers it and one that does not; the
    first is to score higher by a margin. In prediction a row is a query and a document.

    The module is called as ``module(query, lengths, document, lengths)``, in training and
    evaluation with the wrong documents and their lengths after them, and gives a score for each
    document, :math:`(B,1)` or :math:`(B,2)`.
    """

    class Config(ColumnsTask.Config):
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
        texts = one_limit(RankingText.alike, config.columns, tokenizer, config.max_length)
        wrong = {"negative": texts.pop("negative")}
        self.text = RankingText(texts, self.with_weights(wrong))

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        scores = scores[: len(batch["negative"])]  # which training needs
        lacking = ranking_hinge(scores[:, 0], scores[:, 1], margin=self.config.margin)
        return Loss.of_rows(lacking, self.weights(batch))

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Ranked]:
        return self.text.decode(scores.float().cpu().numpy())

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """The score of each document. *Shape:* :math:`(B,1)`."""
        return (self.scores(batch).float(),)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"ranking": Ranking()}

    @override
    def measured(self, answer: Callable[[Rows], Sequence[Ranked]], rows: Rows) -> Metrics:
        right, wrong = self.text.inputs["positive"].name, self.text.all["negative"].name
        negatives = [each.score for each in answer([{**row, right: row[wrong]} for row in rows])]

        def both(rows: Rows) -> list[Ranked]:
            pairs = zip(answer(rows), negatives, strict=True)
            return [replace(each, negative=score) for each, score in pairs]

        return super().measured(both, rows)

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Ranked], rows: Rows) -> None:
        right, wrong = [a.score for a in answers], [a.negative for a in answers]
        metrics["ranking"].update(right, wrong)
