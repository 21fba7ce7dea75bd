"""Classification of documents, or pairs: one label, or several, by a loss of one's choice."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.metrics.calibration import CalibrationError
from textmill.metrics.classification import Classification, MultiLabel
from textmill.metrics.label_scores import LabelScores
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import Accuracy
from textmill.models.classifier import Classifier
from textmill.models.embedding_losses import supervised_contrastive
from textmill.models.label_losses import AutoLoss, LabelLoss, averaged_scores, multi_hot
from textmill.tasks import registries
from textmill.tasks.batches.row_batches import ComparedRows
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.label_checks import never_predicted
from textmill.tasks.rows_task import UnseenLabelsConfig
from textmill.tasks.several.soft_labels import SoftLabels
from textmill.tasks.task import Batches, Loss, Metrics, Row
from textmill.text.cells import Rows, placed_errors
from textmill.text.columns.column import Column
from textmill.text.columns.inputs import BesideText, text_columns
from textmill.text.columns.labels import LabelsColumn, label_column
from textmill.text.columns.token_ids import one_limit
from textmill.text.features.labels import Labels
from textmill.text.processors.texts import Classified, LabelText
from textmill.text.tokenizers.tokenizer import Tokenizer


class LabelConfig(UnseenLabelsConfig):
    """Settings of tasks whose answer is a label, or several."""

    max_length: int = 512
    """Longest text, in tokens; over_length says what happens to longer ones."""
    loss: AutoLoss.Config | LabelLoss.Config | None = None
    """The loss; null and auto are cross_entropy, and binary_cross_entropy with
    ``labels.multiple``."""
    soft_labels: SoftLabels.Config | None = None
    """What a teacher says of the training rows, to learn from beside their own labels, or without:
    ``task.soft_labels.teacher.path=RUN``."""
    positive: str | None = None
    """A label whose precision, recall and F1 are values of their own, where a text has one."""
    rank_metrics: bool = False
    """Whether an evaluation measures how the probabilities rank texts, too: ROC AUC, average
    precision, recall at a precision."""

    def __post_init__(self) -> None:
        require(self, "task", sizes=["max_length"])


class LabelTask(ColumnsTask):
    """Base of tasks whose answer is a label of a row, or with ``labels.multiple`` several.

    The module gives scores, :math:`(B,L)`.
    """

    text: LabelText

    def __init__(
        self, config: Any, inputs: Mapping[str, Column], *, module: torch.nn.Module, labels: Labels
    ) -> None:
        super().__init__(config, module=module)
        self.text = LabelText(inputs, self.with_weights({"label": label_column(labels)}))
        if config.positive is not None and labels.multiple:
            raise UserError(
                "task.positive is for one label a row, but labels.multiple is true: the values of "
                "a label are named label/<name>/precision, /recall and /f1."
            )
        if config.positive is not None and not labels.has(config.positive):
            raise UserError(
                f"task.positive is {config.positive!r}, which is no label. {labels.listed}"
            )
        loss = config.loss or AutoLoss.Config()
        self.criterion: LabelLoss = loss.build(names=labels.names, multiple=labels.multiple)
        soft = config.soft_labels
        self.soft: SoftLabels | None = None if soft is None else soft.build(names=labels.names)

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        self.text.label.optional = train and self.soft is not None
        return super().batches(data, train=train, seed=seed)

    @override
    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        if train and self.soft is not None and self.soft.config.column is not None:
            with placed_errors(rows):  # what is wrong with one is said before the first step
                self.soft.read(rows)
        return {}

    @override
    def training_step(self, batch: ColumnBatch, examples: Rows = ()) -> Loss:
        if self.soft is None:
            return super().training_step(batch, examples)
        batch, hard_weight = batch.to(self.device), self.soft.config.hard_weight
        scores, labelled = self.scores(batch), batch["label"] >= 0
        teacher = self.criterion.scores_of(self.soft.logs(examples, self.device))
        soft = self.criterion.divergence(scores, teacher, self.soft.config.temperature)
        share = 1 - hard_weight * (1 if self.text.multiple else labelled.float())
        made = Loss.of_rows(share * soft, self.weights(batch))
        return Loss(made.total + hard_weight * self.loss(scores, batch).total, made.count)

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        targets, weights = batch["label"], self.weights(batch)
        own = [] if weights is None else [weights]
        if self.text.multiple:
            targets = multi_hot(targets, scores.shape[1]).to(scores.dtype)
        elif self.soft is not None or not self.module.training:  # some may have no label
            seen = targets >= 0
            scores, targets, *own = (part[seen] for part in (scores, targets, *own))
        return Loss.of(self.criterion(scores, targets, *own), self.criterion)

    @override
    def averaged(self, members: Sequence["LabelTask"], scores: Sequence[Tensor]) -> Tensor:
        return averaged_scores([member.criterion for member in members], scores)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Classified]:
        return self.text.decode(self.probabilities(scores).cpu().numpy())

    def probabilities(self, scores: Tensor) -> Tensor:
        """Those of all labels, at the temperature of the run. *Shape:* :math:`(B,L)`."""
        temperature = self.text.temperature
        return self.criterion.probabilities(scores if temperature == 1 else scores / temperature)

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """The probabilities of all labels. *Shape:* :math:`(B,L)`."""
        return (self.probabilities(self.scores(batch)),)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        names = self.text.label.labels.names
        several = self.text.multiple
        metrics: dict[str, Metric] = {
            "labels": MultiLabel(names)
            if several
            else Classification(names, positive=self.config.positive),
            "calibration": CalibrationError(),
        }
        if self.text.thresholds is not None and not several:
            metrics["answered"] = Accuracy("coverage")
            metrics["right"] = Accuracy("answered_precision")
        if self.config.rank_metrics:
            metrics["ranks"] = LabelScores(names)
        return metrics

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Classified], rows: Rows) -> None:
        column = self.text.label
        gold: list[Any] = [row[column.name] for row in rows]
        if isinstance(column, LabelsColumn):
            gold = [column.names(value) for value in gold]
            metrics["labels"].update(gold, [answer.labels for answer in answers])
            scores = [score for answer in answers for score in answer.scores.values()]
            both = zip(answers, gold, strict=True)
            right = [name in own for answer, own in both for name in answer.scores]
        else:
            scores = [answer.score for answer in answers]
            best = [max(answer.scores, key=answer.scores.__getitem__) for answer in answers]
            right = [one == other for one, other in zip(best, gold, strict=True)]
            metrics["labels"].update(gold, best)
        metrics["calibration"].update(scores, right)
        if "answered" in metrics:
            given = [hit for hit, answer in zip(right, answers, strict=True) if answer.label]
            metrics["answered"].update(len(given), len(answers))
            metrics["right"].update(sum(given), len(given))
        if "ranks" in metrics:
            metrics["ranks"].update(gold, [list(answer.scores.values()) for answer in answers])

    @override
    def remarks(self, metrics: Metrics) -> list[str]:
        found = metrics["labels"]
        assert isinstance(found, Classification | MultiLabel), "answer_metrics makes no other"
        known = {name: tally for name, tally in found.tallies().items() if name in found.labels}
        return never_predicted(known)


@registries.tasks.register("document_classification")
class DocumentClassification(LabelTask):
    """Gives texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text, lengths)``, with ``dense=``, ``dictionary=`` and
    ``ngrams=`` if the recipe has them, and gives scores, :math:`(B,L)`.
    """

    class Config(LabelConfig):
        column: str = "text"
        """The column of the text."""
        max_texts: int | None = None
        """Most texts of a row, if the column has lists of texts, such as the turns of a
        conversation, which ``model.sequence`` reads; of each the first ``max_length`` tokens count.
        null: a row has one text."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "task", sizes=["max_texts"])

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        **beside: Unpack[BesideText],
    ) -> None:
        how = {name: getattr(config, name) for name in ("column", "max_length", "max_texts")}
        inputs = text_columns(tokenizer, **how, **beside)
        super().__init__(config, inputs, module=module, labels=labels)


@registries.tasks.register("contrastive_classification")
class ContrastiveClassification(DocumentClassification):
    """Gives texts a label; training also compares the vectors of a batch's texts with each other.

    The training loss is ``task.loss`` plus ``task.contrast`` times the supervised contrastive loss
    (:func:`~textmill.models.embedding_losses.supervised_contrastive`) of the texts' pooled vectors,
    which pulls texts with the same label together and pushes others apart. A row is compared with
    those of its micro-batch, on all ranks. Everything else is as in ``document_classification``:
    the loss of an evaluation is ``task.loss`` alone.

    Source: Gunel et al. 2021, "Supervised Contrastive Learning for Pre-trained Language Model
    Fine-tuning".
    """

    class Config(DocumentClassification.Config):
        contrast: float = 1.0
        """How much the contrastive loss counts beside ``task.loss``; 0 leaves it out."""
        temperature: float = 0.1
        """What cosines are divided by in the contrastive loss. A lower one looks more at the
        nearest texts of other labels."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "task", positive=["temperature"], not_negative=["contrast"])

    config: Config
    module: Classifier

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        **beside: Unpack[BesideText],
    ) -> None:
        if labels.multiple:
            raise UserError(
                "task.type=contrastive_classification compares texts by the one label that each "
                "has, but labels.multiple is true. Set task.type=document_classification."
            )
        if not isinstance(module, Classifier):
            raise UserError(
                "task.type=contrastive_classification compares the vectors of a model of "
                f"model.type=classifier, but the model is a {type(module).__name__}. Set that, or "
                "task.type=document_classification."
            )
        if config.soft_labels is not None:
            raise UserError(
                "task.soft_labels is for task.type=document_classification, but it is "
                "contrastive_classification, which compares rows by their own labels. Leave one "
                "of them out."
            )
        super().__init__(config, module=module, tokenizer=tokenizer, labels=labels, **beside)
        self.compared_rows = ComparedRows()

    @override
    def training_step(self, batch: ColumnBatch, examples: Rows = ()) -> Loss:
        batch = batch.to(self.device, non_blocking=True)
        texts, beside = self.inputs(batch)
        vectors = self.module.text(*texts, dictionary=beside.pop("dictionary", None))
        own = self.loss(self.module.scored(vectors, **beside), batch)
        rows = self.weights(batch)
        rows = torch.ones_like(own.count).expand(len(vectors)) if rows is None else rows
        targets = torch.stack([batch["label"].to(rows), rows], dim=1)
        apart = self.compared_rows.loss(self._apart, vectors, targets).total
        sums = {"contrastive": apart.detach()}
        return Loss(own.total + self.config.contrast * apart, own.count, sums)

    def _apart(self, vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the contrastive loss; rows count as much as in ``task.loss``.

        Targets are the number of each row's label, and its weight. *Shape:* :math:`(B,2)`.
        """
        labels = targets[:, 0].long()
        weights = self.criterion.weights.to(labels.device)[labels] * targets[:, 1]
        each = supervised_contrastive(vectors, labels, temperature=self.config.temperature)
        return (each * weights).sum(), weights.sum()


@registries.tasks.register("pair_classification")
class PairClassification(LabelTask):
    """Gives two texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives scores,
    :math:`(B,L)`.
    """

    class Config(LabelConfig):
        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    def __init__(
        self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer, labels: Labels
    ) -> None:
        texts = one_limit(("text1", "text2"), config.columns, tokenizer, config.max_length)
        super().__init__(config, texts, module=module, labels=labels)
