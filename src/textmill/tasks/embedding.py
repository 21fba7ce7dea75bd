"""Embedding: vectors of texts that are near where the texts mean alike."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.metrics.label_scores import Retrieval
from textmill.metrics.metric import Metric
from textmill.metrics.regression import Regression
from textmill.models.classifier import TextSequence, TextVector
from textmill.models.embedding_losses import EmbeddingLoss, MultipleNegativesRanking
from textmill.models.encoders.sequence import real_tokens
from textmill.models.poolings import MeanPooling, Pooling
from textmill.models.tagger import IntentSlotModel, WordEncoder
from textmill.tasks import registries
from textmill.tasks.batches.row_batches import ComparedRows
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.task import Loss, Metrics, Task
from textmill.text.cells import Rows
from textmill.text.columns.inputs import BESIDE_WORDS
from textmill.text.columns.numbers import NumberCheck, NumberColumn, number_in
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.token_ids import IdsColumn, TextColumn, one_limit
from textmill.text.processors.texts import ComparedTexts, Embedded, EmbeddingText
from textmill.text.tokenizers.tokenizer import Tokenizer

LONGEST = 512
"""Tokens of a text, where another task has no limit."""
FACTOR = 6364136223846793005
"""Of the hash of a text's ids, which needs no comparison with the texts of other ranks; Knuth's
multiplier modulo 2**64."""


@registries.tasks.register("text_embedding")
class TextEmbedding(ColumnsTask):
    """Makes a vector of a text, near those of texts that belong to it.

    A row of the training data is two texts that belong together, and perhaps a wrong one that looks
    like them (``task.negative``); what is measured is how often the second one is the nearest to
    the first one among the second and wrong ones of all rows. With a loss of scores
    (``task.loss.type=cosent``, ``cosine_similarity``) a row is two texts and how alike they are,
    and what is measured is the correlation of scores with cosines. In prediction a row is a text.

    The module is called as ``module(text1, lengths1)``, in training and evaluation with the other
    texts and their lengths after it, and gives a vector of each, :math:`(B,K,H)`.
    """

    class Config(ColumnsTask.Config):
        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first text (in prediction, of the only one) and of the second one."""
        negative: str | None = None
        """The column of a text that is near the first one, and does not belong to it."""
        score: str = "score"
        """The column that says how alike the texts are, for a loss that learns such."""
        span: tuple[float, float] | None = None
        """The least and the greatest score there may be, which are learnt as 0 and 1; null: scores
        are learnt as they are."""
        max_length: int = 128
        """Longest text, in tokens; over_length says what happens to longer ones."""
        loss: EmbeddingLoss.Config = MultipleNegativesRanking.Config()
        """What vectors are learnt by."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length"])

        @override
        def row_check(self, labels: Any = None) -> NumberCheck | None:
            scored = getattr(self.loss.owner, "scored", False)
            return NumberCheck(self.score, self.span) if scored else None

    text: EmbeddingText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        self.compared: EmbeddingLoss = config.loss.build()
        wrong = () if config.negative is None else (config.negative,)
        names, roles = (*config.columns, *wrong), EmbeddingText.alike[: 2 + len(wrong)]
        targets = one_limit(roles, names, tokenizer, config.max_length)
        first = {"text1": targets.pop("text1")}
        if self.compared.scored and wrong:
            raise UserError(
                "task.negative is for task.loss.type=multiple_negatives_ranking: rows with scores "
                "have two texts. Leave it out."
            )
        if self.compared.scored:
            targets["score"] = NumberColumn(config.score, span=config.span)
        self.text = EmbeddingText(first, targets)
        self.compared_rows = ComparedRows() if self.compared.compares else None

    @property
    def roles(self) -> list[str]:
        return [role for role, column in self.text.all.items() if isinstance(column, TextColumn)]

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        targets = batch["score"] if self.compared.scored else self._names(batch)
        if self.compared_rows is None:
            return Loss.of(self.compared(scores, targets), self.compared)
        return self.compared_rows.loss(self.compared, scores, targets)

    def _names(self, batch: ColumnBatch) -> Tensor:
        """A number of each text, the same of texts with the same ids. *Shape:* :math:`(B,K)`."""
        return torch.stack([_hashed(batch[r], batch.lengths[r]) for r in self.roles], dim=1)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Any]:
        vectors = scores.float().cpu().numpy()
        return self.text.decode(vectors[:, 0] if vectors.shape[1] == 1 else vectors)

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """The vector of each text. *Shape:* :math:`(B,H)`."""
        return (self.scores(batch)[:, 0].float(),)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        if self.compared.scored:
            return {"similarity": Regression(only=("pearson", "spearman"))}
        return {"retrieval": Retrieval()}

    @override
    def measured(self, answer: Callable[[Rows], Sequence[Embedded]], rows: Rows) -> Metrics:
        columns = self.text.all
        first, *others = [columns[role].name for role in self.roles]

        def compared(rows: Rows) -> list[ComparedTexts]:
            asked = [rows, *([{**row, first: row[name]} for row in rows] for name in others)]
            found = zip(*map(answer, asked), strict=True)
            return [ComparedTexts(np.stack([one.vector for one in row])) for row in found]

        return super().measured(compared, rows)

    @override
    def measure(self, metrics: Metrics, answers: Sequence[ComparedTexts], rows: Rows) -> None:
        columns = self.text.all
        if self.compared.scored:
            score = columns["score"].name
            gold = [number_in(row[score], score, at) for at, row in enumerate(rows)]
            metrics["similarity"].update(gold, [answer.cosines[0] for answer in answers])
            return
        names = [columns[role].name for role in self.roles]
        texts = [[str(row[name]) for name in names] for row in rows]
        metrics["retrieval"].update(texts, np.stack([answer.vectors for answer in answers]))


def text_vectors(task: Task) -> TextEmbedding:
    """A task that answers texts with the vectors that a trained task's encoder makes of them.

    That of classification, regression, pairs, ranking: their pooled vectors, in front of the layers
    that score (of pairs the first text's). That of words: the pooling of intents, else the mean.
    """
    if isinstance(task, TextEmbedding):
        return task
    parts = [] if not isinstance(task, ColumnsTask) else [*task.module.modules()]
    found = next((m for m in parts if isinstance(m, TextVector | TextSequence | WordEncoder)), None)
    texts = task.text.inputs if isinstance(task, ColumnsTask) else {}
    role = next((r for r, column in texts.items() if isinstance(column, IdsColumn)), None)
    if isinstance(found, TextVector) and isinstance(texts.get(role or ""), TextsColumn):
        found = None  # what reads the list of texts is no part of it
    if found is None or role is None or not isinstance(task, ColumnsTask):
        raise UserError(
            f"A {type(task).__name__} makes no vectors of texts: its model has no encoder whose "
            "vectors are pooled. Tasks of classification, pairs, ranking, tagging and embedding do."
        )
    first = texts[role]
    assert isinstance(first, IdsColumn)
    most = first.limit or LONGEST
    config = TextEmbedding.Config(over_length=task.config.over_length, max_length=most)
    made: TextEmbedding = config.build(module=_Pooled(found), tokenizer=first.tokenizer)
    of_words = isinstance(found, WordEncoder)
    beside = BESIDE_WORDS | {"context"} if of_words else {"dictionary"}
    made.text = EmbeddingText({role: first, **{r: c for r, c in texts.items() if r in beside}}, {})
    return made


class _Pooled(nn.Module):
    """A vector of a text by a part of another model, as a sentence encoder gives it."""

    def __init__(self, part: TextVector | TextSequence | WordEncoder) -> None:
        super().__init__()
        self.part = part
        self.pooling: Pooling | None = None
        if isinstance(part, IntentSlotModel):
            self.pooling = part.pooling
        elif isinstance(part, WordEncoder):
            self.pooling = MeanPooling.Config().build(dim=part.encoder.out_dim)

    @override
    def forward(self, text: Tensor, lengths: Tensor, **beside: Tensor) -> Tensor:
        if self.pooling is None or not isinstance(self.part, WordEncoder):
            vector: Tensor = self.part(text, lengths, **beside)
        else:
            states = self.part.states(text, lengths, **beside)
            vector = self.pooling(states, real_tokens(states, lengths.clamp(min=1)))
        return vector[:, None]


def _hashed(ids: Tensor, lengths: Tensor) -> Tensor:
    """A hash of 64 bits of each row's ids up to its length, whatever stands after them.

    *Shape:* :math:`(B,T)` and :math:`(B)` to :math:`(B)`, int64.
    """
    places = torch.arange(ids.shape[1], device=ids.device)
    powers = torch.full_like(places, FACTOR).cumprod(0)
    mixed = (ids + 1) * powers  # an id of 0 counts, too
    return mixed.masked_fill(places >= lengths[:, None], 0).sum(dim=1)
