"""Intents and slots: what a text wants, and what is marked in it, as one frame."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.errors import DataError
from weft.metrics.frames import Frames
from weft.metrics.metric import Metric
from weft.tasks import registries
from weft.tasks.batches.row_batches import RowBatches
from weft.tasks.task import Loss, Row
from weft.tasks.word_task import WordsTask
from weft.text.features.affixes import Affixes
from weft.text.features.characters import Characters
from weft.text.features.dictionaries import Dictionary
from weft.text.features.labels import Labels
from weft.text.features.slots import Slots
from weft.text.processors.intent_slots import Frame, IntentSlotText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["IntentSlots"]


@registries.tasks.register("intent_slots")
class IntentSlots(WordsTask):
    """Gives a text an intent (the ingredient ``labels``) and slots (the ingredient ``slots``).

    The module gives scores of intents, :math:`(B,I)`, and of the tags of words, :math:`(B,T,L)`.
    Where it has a conditional random field as its attribute ``crf``, loss and answers are of whole
    sequences of tags.

    The loss of a text is the negative log probability of its frame: that of its intent and those of
    all its tags.
    """

    class Config(WordsTask.Config):
        """Settings of the task."""

        column: str = "text"
        """The column of the text: split at white space, or a list of words."""
        max_length: int = 512
        """Most words of a text; slots in what is cut off count as missed."""
        intent_weight: float = 1.0
        """How much the intent's part of the loss counts."""
        off_words: Literal["widen", "error"] = "widen"
        """What becomes of a slot that begins or ends within a word, or shares one with the slot
        before: training takes whole words, and it is counted, in a note, and as missed in every
        value; or it is an error."""

        def __post_init__(self) -> None:
            """Refuses what no text has, and a weight that is none."""
            require(self, "task", sizes=["max_length"], positive=["intent_weight"])

    config: Config
    text: IntentSlotText

    def __init__(  # noqa: PLR0913  # one argument per ingredient
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        slots: Slots,
        characters: Characters | None = None,
        affixes: Affixes | None = None,
        dictionary: Dictionary | None = None,
        ngrams: Tokenizer | None = None,
    ) -> None:
        super().__init__(config, module=module)
        self.text = IntentSlotText(
            tokenizer,
            labels,
            slots,
            column=config.column,
            max_length=config.max_length,
            characters=characters,
            affixes=affixes,
            dictionary=dictionary,
            ngrams=ngrams,
        )

    @override
    def _encoded(self, data: Iterable[Row], *, train: bool, seed: int) -> RowBatches:
        batches = super()._encoded(data, train=train, seed=seed)
        off, every, first = self.text.off_words(batches.rows)
        if off:
            column = self.text.slots.column
            note = (
                f"{off} of {every} slots in '{column}' do not begin and end with a word of their "
                f"own, the first in row {first}."
            )
            if self.config.off_words == "error":
                raise DataError(f"{note} Correct them, or set task.off_words=widen.")
            note += " Whole words are trained on; no answer can be such a slot."
            self._warn(note, batches.details, "off_words")
        return batches

    @override
    def scores(self, batch: ColumnBatch) -> tuple[Tensor, Tensor]:
        """Scores of intents :math:`(B,I)` and of tags :math:`(B,T,L)`."""
        intents, tags = self.called(batch)
        return intents.float(), tags.float()

    @override
    def loss(self, scores: tuple[Tensor, Tensor], batch: ColumnBatch) -> Loss:
        """The negative log probability of each row's frame, where training has all of its parts."""
        intents, tags = scores
        wanted, right, real = batch["label"], batch["slots"], batch.mask("words")
        if not self.module.training:
            rows = self.seen(wanted, right)
            intents, wanted, tags, right, real = (
                part[rows] for part in (intents, wanted, tags, right, real)
            )
        total = self.config.intent_weight * F.cross_entropy(intents, wanted, reduction="sum")
        if self.crf is not None:
            total = total - self.crf.log_likelihood(tags, right, real).sum()
        else:
            total = total + F.cross_entropy(tags[real], right[real], reduction="sum")
        return Loss(total, torch.tensor(len(wanted), device=total.device))

    @override
    def answers(self, scores: tuple[Tensor, Tensor], batch: ColumnBatch) -> list[Frame]:
        """Each row's intent and tags, with their probabilities."""
        intents, tags = scores
        wants = intents.softmax(dim=-1).cpu().numpy()
        tagged = self.tagged(tags, batch, partial(torch.softmax, dim=-1))
        return self.text.decode([(want, *row) for want, row in zip(wants, tagged, strict=True)])

    @override
    def completed(self, answer: Frame, row: Mapping[str, Any]) -> Frame:
        """The answer with its row's text, and the slots in it."""
        return self.text.completed(answer, row)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """Intents, slots and whole frames, as brackets and as trees."""
        return {"frames": Frames()}

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Frame],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds frames."""
        gold = [self.text.gold(row) for row in rows]
        found = [(a.intent, [(s.label, s.start, s.end) for s in a.slots]) for a in answers]
        metrics["frames"].update(gold, found)

    @override
    def answer_row(self, answer: Frame) -> dict[str, Any]:
        """An answer as plain data: the frame in brackets, its intent and its slots."""
        slots = [{"label": slot.label, **slot.row()} for slot in answer.slots]
        return {
            "prediction": str(answer),
            "score": round(answer.score, 6),
            "predicted_intent": answer.intent,
            "predicted_slots": slots,
        }

    @override
    def _read_batch(self, batch: ColumnBatch) -> list[dict[str, Any]]:
        """Rows with the words of a ready batch, and its frames where it has such."""
        lengths, text = batch.lengths["words"].tolist(), self.text
        rows: list[dict[str, Any]] = [{text.column: found} for found in self.words_of(batch)]
        if "label" in batch and "slots" in batch:
            both = zip(batch["label"].tolist(), batch["slots"].tolist(), strict=True)
            for row, n, (label, tags) in zip(rows, lengths, both, strict=True):
                row[text.labels.column] = text.labels[label]
                row[text.slots.column] = text.slots.cell(
                    [text.slots[tag] for tag in tags[:n]], row[text.column]
                )
        return rows
