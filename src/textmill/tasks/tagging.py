"""Word tagging and named entities: a label for each word, and the spans that labels mark."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.exported.forward import Forward
from textmill.metrics.classification import Classification
from textmill.metrics.metric import Metric, MetricError
from textmill.metrics.spans import Spans, read_spans
from textmill.metrics.streaming import Accuracy
from textmill.models.label_losses import AutoLoss, LabelLoss
from textmill.models.tag_schemes import tag_scheme
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask, UnseenLabelsConfig
from textmill.tasks.task import Loss, Metrics, Row
from textmill.tasks.word_tags import (
    random_field,
    tag_chances,
    tag_forward,
    tag_outputs,
    word_criterion,
    word_loss,
    words_of,
)
from textmill.text.cells import Rows
from textmill.text.columns.inputs import WordFeatures, word_columns
from textmill.text.columns.labels import TagsColumn
from textmill.text.features.dictionaries import Dictionary
from textmill.text.features.labels import Labels
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.features.tag_spans import Scheme
from textmill.text.features.word_pieces import WordPieces
from textmill.text.processors.tagging import Tagged, TaggingText, TagsCheck
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tasks.register("word_tagging")
class WordTagging(ColumnsTask):
    """Gives each word of a text a label: parts of speech, names, fields.

    The module gives scores, :math:`(B,T,L)`. Where it has a conditional random field as its
    attribute ``crf``, loss and answers are of whole sequences.
    """

    class Config(UnseenLabelsConfig):
        """Settings of the task."""

        column: str = "words"
        """The column of the words: text, split at white space, or a list."""
        max_length: int = 512
        """Most words of a text."""
        over_length: Literal["truncate", "skip", "error"] = "error"
        """What becomes of a text with more words than that: it is an error; or left out of training
        and evaluation, and counted; or cut, and then the words after the limit get no label and
        count in no metric."""
        scheme: Literal["auto", "bio", "bilou", "io", "none"] = "auto"
        """How labels mark spans. auto: bio or bilou, where all labels are such, else none; io:
        neighbouring words with one label are a span, but for the label O. The answers of a random
        field keep to bio and bilou."""
        loss: AutoLoss.Config | LabelLoss.Config | None = None
        """The loss of a word, for a model without a random field; null and auto are
        cross_entropy."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length"])

        @override
        def row_check(self, labels: Any = None) -> TagsCheck | None:
            return labels and TagsCheck(self.column, labels.column, labels.separator)

    text: TaggingText

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        characters: Characters | None = None,
        affixes: Affixes | None = None,
        pieces: WordPieces | None = None,
        dictionary: Dictionary | None = None,
    ) -> None:
        super().__init__(config, module=module)
        beside = WordFeatures(
            characters=characters, affixes=affixes, pieces=pieces, dictionary=dictionary
        )
        words = word_columns(
            tokenizer, column=config.column, max_length=config.max_length, beside=beside
        )
        self.text = TaggingText(words, {"tags": TagsColumn(labels)})
        self.scheme = self.text.scheme = _scheme(config.scheme, labels)
        self.crf = random_field(module)
        if self.crf is not None:
            self.crf.keep_to(None if self.scheme == "io" else self.scheme)
        self.criterion = word_criterion(config.loss, labels, self.crf)

    @override
    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        note = self._forbidden(rows) if train else ""
        return {"forbidden": note} if note else {}

    def _forbidden(self, rows: Sequence[Row]) -> str:
        """What rows have that no answer of the random field can; empty where there is nothing."""
        if self.crf is None or self.crf.allowed.all():
            return ""
        column, size = self.text.tags, self.crf.num_labels
        # Each row between the numbers of start and end; nothing forbids the step to the next row.
        tags = column.encode([row[column.name] for row in rows]).wrapped([size], [size + 1])
        before, after = tags.values[:-1], tags.values[1:]
        wrong = np.flatnonzero(~self.crf.allowed.cpu().numpy()[before, after])
        if not len(wrong):
            return ""
        first = int(np.searchsorted(tags.offsets, wrong[0], side="right")) - 1
        names = [*column.labels.names, "the beginning", "the end"]
        return (
            f"{len(wrong)} steps from a label of '{column.name}' to the next break the labels' "
            f"scheme, the first from {names[before[wrong[0]]]} to {names[after[wrong[0]]]} in row "
            f"{first}. They are trained on, but no answer can have one. If they are right, as in "
            "IOB1, set model.constrained=false."
        )

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The loss of a batch: a sum over its words, without padding.

        Words with a label that training has not seen are left out; with a random field, whole
        sentences.
        """
        return word_loss(scores, batch, self.crf, self.criterion, training=self.module.training)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Tagged]:
        """Each row's labels, with the probability that each word's is right."""
        return self.text.decode(tag_chances(scores, batch, self.crf, self.criterion.probabilities))

    @property
    @override
    def exported_forward(self) -> Forward:
        return tag_forward(self.crf)

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """Numbers and probabilities of labels, or scores for the random field."""
        return tag_outputs(self.scores(batch), self.crf, self.criterion.probabilities)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """Shares of words and of sentences that are right; spans or labels by their names."""
        names = self.text.tags.labels.names
        if (scheme := self.scheme) in ("bio", "bilou"):
            kinds = dict.fromkeys(s.kind for name in names for s in read_spans([name], scheme))
            return {"spans": Spans(scheme, kinds=[*kinds])}
        labels = Classification(names)
        if self.scheme:
            return {"labels": labels, "spans": Spans(self.scheme)}
        tokens, sentences = Accuracy("token_accuracy"), Accuracy("whole_sentence")
        return {"labels": labels, "tokens": tokens, "sentences": sentences}

    @property
    @override
    def selected(self) -> str:
        """The F1 of spans where labels mark such, else the share of words."""
        return "span_f1" if self.scheme else "token_accuracy"

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Tagged], rows: Rows) -> None:
        given = [list(answer.tags) for answer in answers]
        column = self.text.tags
        gold = [column.names(row[column.name]) for row in rows]
        gold = [right[: len(tags)] for right, tags in zip(gold, given, strict=True)]
        if "spans" in metrics:
            marked = [[self._marked(tag) for tag in tags] for tags in gold]
            metrics["spans"].update(marked, given)
        if "labels" in metrics:
            metrics["labels"].update(_flat(gold), _flat(given))
        if "tokens" in metrics:
            pairs = list(zip(_flat(gold), _flat(given), strict=True))
            metrics["tokens"].update(sum(a == b for a, b in pairs), len(pairs))
            equal = sum(a == b for a, b in zip(gold, given, strict=True))
            metrics["sentences"].update(equal, len(gold))

    def _marked(self, tag: str) -> str:
        """A right tag as one of the scheme: an unseen one of no scheme is a span never found."""
        assert self.scheme, "asked only where labels mark spans"
        if self.text.tags.labels.has(tag):
            return tag
        try:
            read_spans([tag], self.scheme)
        except MetricError:
            return f"B-{tag} (no tag of {self.scheme})"
        return tag

    @override
    def read_batch(self, batch: ColumnBatch) -> list[dict[str, Any]]:
        lengths, names = batch.lengths["words"].tolist(), self.text.tags.labels.names
        rows: list[dict[str, Any]] = [
            {self.config.column: text} for text in words_of(self.text, batch)
        ]
        if "tags" in batch:
            for row, n, tags in zip(rows, lengths, batch["tags"].tolist(), strict=True):
                # A list: what divides the labels of a text is the recipe's to say.
                row[self.text.tags.name] = [names[number] for number in tags[:n]]
        return rows


def _scheme(said: str, labels: Labels) -> Scheme | None:
    found = tag_scheme(labels.names)
    if said == "auto":
        return found
    fits = {"bio": ("bio",), "bilou": ("bio", "bilou")}
    if said in fits and found not in fits[said]:
        raise UserError(
            f"task.scheme={said} needs labels that are O or a mark with a kind, as B-person. "
            f"{labels.listed} Set task.scheme=none, or io."
        )
    schemes: dict[str, Scheme] = {"bio": "bio", "bilou": "bilou", "io": "io"}
    return schemes.get(said)


def _flat(rows: Sequence[Sequence[str]]) -> list[str]:
    return [tag for row in rows for tag in row]
