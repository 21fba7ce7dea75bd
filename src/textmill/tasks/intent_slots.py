"""Intents and slots: what a text wants, and what is marked in it, as one frame."""

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.exported.forward import Forward
from textmill.metrics.frames import Frames
from textmill.metrics.metric import Metric
from textmill.models.wide import FittedScores
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.rows_task import UnseenLabelsConfig
from textmill.tasks.tagging import TagHead, scored_words
from textmill.tasks.task import Batches, Loss, Metrics, Row
from textmill.text.cells import Rows
from textmill.text.columns.inputs import BesideWords, word_columns
from textmill.text.columns.labels import SlotsColumn, label_column
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.words import NgramsColumn
from textmill.text.features.labels import UNSEEN, Labels
from textmill.text.features.slots import Slots
from textmill.text.processors.intent_slots import Frame, IntentSlotText
from textmill.text.tokenizers.tokenizer import Tokenizer

MOST_FITTED = 200_000
"""Rows that the linear classifier is fitted to: ready batches may have no end."""


@registries.tasks.register("intent_slots")
class IntentSlots(ColumnsTask):
    """Gives a text an intent (the ingredient ``labels``) and slots (the ingredient ``slots``).

    The module gives scores of intents, :math:`(B,I)`, and of the tags of words, :math:`(B,T,L)`.
    Where it has a conditional random field as its attribute ``crf``, loss and answers are of whole
    sequences of tags.

    The loss of a text is the negative log probability of its frame: that of its intent and those of
    all its tags. Where the recipe has ``ngrams``, a linear classifier of intents is fitted to those
    of the training rows before the first step, and what the module learns is added to its scores.
    """

    class Config(UnseenLabelsConfig):
        column: str = "text"
        """The column of the text: split at white space, or a list of words."""
        max_length: int = 512
        """Most words of a text; slots in what is cut off count as missed."""
        context: str | None = None
        """The column of the texts around the text, such as a conversation's turns, which
        ``model.context`` reads; of a list whose last text is the text, column is its name with
        ``.-1`` after it. null: a text stands alone."""
        max_texts: int = 20
        """Most texts of a context; of more the last are read, of each the first max_length
        words."""
        slot_weight: str | None = None
        """The column of the weight of each row's slots in the loss; ``weight`` is then that of its
        intent there, and of the row in metrics; null: slots have the row's."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length", "max_texts"])

    text: IntentSlotText
    _train_batches: Batches | None = None

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        slots: Slots,
        ngrams: Tokenizer | None = None,
        **beside: Unpack[BesideWords],
    ) -> None:
        super().__init__(config, module=module)
        inputs = word_columns(
            tokenizer, column=config.column, max_length=config.max_length, **beside
        )
        if config.context is not None:
            inputs["context"] = TextsColumn(
                config.context, tokenizer, length=config.max_length, around=config.max_texts
            )
        if ngrams is not None:
            inputs["ngrams"] = NgramsColumn(config.column, ngrams)
        targets = {"label": label_column(labels), "slots": SlotsColumn(slots)}
        self.text = IntentSlotText(inputs, self.with_weights(targets))
        self.head = TagHead(module, list(slots))

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        made = super().batches(data, train=train, seed=seed)
        if train:
            self._train_batches = made
        return made

    @override
    def initialize(self) -> list[str]:
        """Fits the intents' scores of n-grams, if the module has them, to the training rows."""
        lines = super().initialize()
        wide = getattr(self.module, "wide", None)
        if not isinstance(wide, FittedScores):
            return lines
        if self._train_batches is None:
            why = "the task was initialized before it made training batches"
            return [*lines, f"The linear classifier of intents is not fitted: {why}."]
        start = self._train_batches.state_dict()
        ids, labels, weights, rows = list[Tensor](), list[Tensor](), list[Tensor](), 0
        for batch in self._train_batches:
            ids.append(batch["ngrams"])
            labels.append(batch["label"])
            weights += [] if (own := self.weights(batch)) is None else [own]
            rows += len(batch["label"])
            if rows >= MOST_FITTED:
                break
        self._train_batches.load_state_dict(start)
        wide.fit(ids, labels, weights or None)
        return [
            *lines,
            f"A linear classifier of intents is fitted to the n-grams of {rows:,} rows.",
        ]

    @override
    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        off, every, first = self.text.off_words(rows)
        note = (
            f"{off} of {every} slots in '{self.text.slots.column}' do not begin and end with a "
            f"word of their own, the first in row {first}. Whole words are trained on; no answer "
            "can be such a slot."
        )
        return {"off_words": note} if off else {}

    @override
    def loss(self, scores: tuple[Tensor, Tensor], batch: ColumnBatch) -> Loss:
        """The negative log probability of each row's frame, where training has all of its parts.

        A row counts by the mean of the weights of its intent and of its slots.
        """
        intents, tags = scores[0].float(), scores[1].float()
        wanted, right, real = batch["label"], batch["slots"], batch.mask("words")
        of_row, of_slots = self.weights(batch), self.weights(batch, "slot_weight")
        weights = [of_row, of_row if of_slots is None else of_slots]
        if not self.module.training:
            rows = (wanted != UNSEEN) & (right != UNSEEN).all(dim=1)
            intents, wanted, tags, right, real = (
                part[rows] for part in (intents, wanted, tags, right, real)
            )
            weights = [None if each is None else each[rows] for each in weights]
        count = batch.count("words") if self.module.training else None
        total = _summed(intents, wanted, weights[0])
        if self.head.crf is not None:
            total = total + self.head.loss(tags, right, real, count, weights[1]).total
        else:
            total = total + _summed(*scored_words(tags, right, real, count, weights[1]))
        counts = [total.new_tensor(len(wanted)) if w is None else w.sum() for w in weights]
        return Loss(total, (counts[0] + counts[1]) / 2)

    @override
    def averaged(
        self, members: Sequence["IntentSlots"], scores: Sequence[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        intents, tags = zip(*scores, strict=True)
        chances = torch.stack([each.float().softmax(dim=-1) for each in intents]).mean(dim=0)
        heads = [member.head for member in members]
        return chances.log(), self.head.averaged(heads, tags)

    @override
    def answers(self, scores: tuple[Tensor, Tensor], batch: ColumnBatch) -> list[Frame]:
        intents, tags = scores[0].float(), scores[1].float()
        wants = intents.softmax(dim=-1).cpu().numpy()
        tagged = self.head.chances(tags, batch)
        return self.text.decode([(want, *row) for want, row in zip(wants, tagged, strict=True)])

    @property
    @override
    def exported_forward(self) -> Forward:
        return self.head.forward

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        intents, tags = self.scores(batch)
        return intents.float().softmax(dim=-1), *self.head.outputs(tags.float())

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"frames": Frames()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Frame], rows: Rows) -> None:
        gold = [self.text.gold(row) for row in rows]
        found = [(a.intent, [(s.label, s.start, s.end) for s in a.slots]) for a in answers]
        metrics["frames"].update(gold, found)


def _summed(scores: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
    """The cross entropy, by torch's own sum, which rounds as docs/results.md was trained."""
    if weights is None:
        return F.cross_entropy(scores, targets, reduction="sum")
    return F.cross_entropy(scores, targets, reduction="none") @ weights
