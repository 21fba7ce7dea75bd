"""Classification of documents: one label, or several, by a loss of one's choice."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from weft.config.component import setting
from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.errors import UserError
from weft.metrics.classification import Classification, MultiLabel
from weft.metrics.label_scores import LabelScores
from weft.metrics.metric import Metric
from weft.models.label_losses import AutoLoss, LabelLoss, multi_hot
from weft.tasks import registries
from weft.tasks.column_task import ColumnsTask
from weft.tasks.label_checks import never_predicted
from weft.tasks.task import Loss
from weft.text.columns.labels import LabelsColumn
from weft.text.columns.numbers import Numbers
from weft.text.features.dictionaries import Dictionary
from weft.text.features.labels import Labels
from weft.text.processors.classification import ClassificationText, Classified, LabelText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["DocumentClassification", "LabelTask"]


class LabelTask(ColumnsTask):
    """Base of tasks whose answer is a label, or several: loss, metrics and answers of scores.

    A subclass says which columns there are, and makes scores of them, :math:`(B,L)`.
    """

    class Config(ColumnsTask.Config):
        """Settings of the task."""

        max_length: int = 512
        """Most tokens of a text."""
        loss: AutoLoss.Config | LabelLoss.Config | None = None
        """The loss; null and auto are cross_entropy, and binary_cross_entropy with
        ``labels.multiple``."""
        positive: str | None = None
        """A label whose precision, recall and F1 are values of their own, where a text has one."""
        rank_metrics: bool = False
        """Whether an evaluation measures how the probabilities rank texts, too: ROC AUC, average
        precision, recall at a precision."""
        unseen_labels: Literal["wrong", "error"] = setting("wrong", in_key=False)
        """What becomes of a row to evaluate with a label that training has not: it counts as
        wrong, is left out of the loss, and how many there are is said; or it is an error. In
        training rows it always is."""

        def __post_init__(self) -> None:
            """Refuses what no text has."""
            require(self, "task", sizes=["max_length"])

    config: Config
    text: LabelText

    def __init__(
        self, config: Config, *, module: torch.nn.Module, text: LabelText, labels: Labels
    ) -> None:
        super().__init__(config, module=module)
        self.text = text
        _check_positive(config.positive, labels)
        loss = config.loss or AutoLoss.Config()
        self.criterion: LabelLoss = loss.build(names=labels.names, multiple=labels.multiple)

    @property
    @override
    def counts_unseen(self) -> bool:
        return bool(self.config.unseen_labels == "wrong")

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The loss of a batch of rows with labels, of those that training has."""
        targets = batch["label"]
        if self.text.multiple:
            targets = multi_hot(targets, scores.shape[1]).to(scores.dtype)
        elif not self.module.training:
            scores, targets = scores[targets >= 0], targets[targets >= 0]
        return Loss.of(self.criterion(scores, targets), self.criterion)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Classified]:
        """Each row's label or labels with the probabilities of all."""
        return self.text.decode(self.criterion.probabilities(scores).cpu().numpy())

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """What is told of labels by their names."""
        names, positive = self.text.label.labels.names, self.config.positive
        metrics: dict[str, Metric] = {}
        if self.text.multiple:
            metrics["labels"] = MultiLabel(names)
        else:
            metrics["labels"] = Classification(names, positive=positive)
        if self.config.rank_metrics:
            metrics["ranks"] = LabelScores(names)
        return metrics

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Classified],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds labels."""
        column = self.text.label
        gold: list[Any] = [row[column.name] for row in rows]
        if isinstance(column, LabelsColumn):
            gold = [column.names(value) for value in gold]
            metrics["labels"].update(gold, [answer.labels for answer in answers])
        else:
            metrics["labels"].update(gold, [answer.label for answer in answers])
        if "ranks" in metrics:
            metrics["ranks"].update(gold, [list(answer.scores.values()) for answer in answers])

    @override
    def remarks(self, metrics: Mapping[str, Metric]) -> list[str]:
        """Names labels that are never an answer, and the setting that makes them count more."""
        found = metrics["labels"]
        assert isinstance(found, Classification | MultiLabel), "answer_metrics makes no other"
        return never_predicted(found.tallies())

    @override
    def _read_batch(self, batch: Any) -> list[dict[str, Any]]:
        """The labels of a ready batch; its texts are not read back."""
        if not isinstance(batch, ColumnBatch) or "label" not in batch:
            return super()._read_batch(batch)
        column = self.text.label
        names, found = column.labels.names, batch["label"].tolist()
        if isinstance(column, LabelsColumn):
            return [{column.name: [names[i] for i in row if i >= 0]} for row in found]
        return [{column.name: names[number]} for number in found]

    @override
    def answer_row(self, answer: Classified) -> dict[str, Any]:
        """An answer as plain data: the label with its probability, and those of all labels."""
        scores = {name: round(score, 6) for name, score in answer.scores.items()}
        return {"prediction": answer.label, "score": round(answer.score, 6), "scores": scores}


@registries.tasks.register("document_classification")
class DocumentClassification(LabelTask):
    """Gives texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text, lengths)``, with ``dense=``, ``dictionary=`` and
    ``ngrams=`` where the recipe has such, and gives scores, :math:`(B,L)`.
    """

    class Config(LabelTask.Config):
        """Settings of the task."""

        column: str = "text"
        """The column of the text."""

    config: Config

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        dense: Numbers | None = None,
        dictionary: Dictionary | None = None,
        ngrams: Tokenizer | None = None,
    ) -> None:
        text = ClassificationText(
            tokenizer,
            labels,
            column=config.column,
            max_length=config.max_length,
            dense=dense,
            dictionary=dictionary,
            ngrams=ngrams,
        )
        super().__init__(config, module=module, text=text, labels=labels)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """Unnormalized scores of the labels. *Shape:* :math:`(B,L)`."""
        beside = {role: batch[role] for role in self.text.inputs if role != "text"}
        out: Tensor = self.module(batch["text"], batch.lengths["text"], **beside)
        return out


def _check_positive(positive: str | None, labels: Labels) -> None:
    """Refuses a positive label that is none, or one among several of a text."""
    if positive is not None and labels.multiple:
        raise UserError(
            "task.positive is for one label a row, but labels.multiple is true: the values of a "
            "label are named label/<name>/precision, /recall and /f1."
        )
    if positive is not None and not labels.has(positive):
        raise UserError(f"task.positive is {positive!r}, which is no label. {labels.listed}")
