"""Trees over the words of a sentence: what opens and closes at each word is its label."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from weft.config.validators import require
from weft.data.column_batch import ColumnBatch
from weft.errors import UserError
from weft.exported.forward import Forward
from weft.metrics.accumulators import ExactMatch
from weft.metrics.frames import Trees
from weft.metrics.metric import Metric
from weft.models.label_losses import AutoLoss, LabelLoss
from weft.tasks import registries
from weft.tasks.column_task import ColumnsTask, UnseenLabelsConfig
from weft.tasks.task import Loss, Metrics
from weft.tasks.word_tags import (
    random_field,
    tag_chances,
    tag_forward,
    tag_outputs,
    word_criterion,
    word_loss,
    words_of,
)
from weft.text.cells import Rows
from weft.text.columns.inputs import WordFeatures, word_columns
from weft.text.columns.trees import TreesColumn
from weft.text.features.dictionaries import Dictionary
from weft.text.features.labels import Labels
from weft.text.features.spelling import Affixes, Characters
from weft.text.features.tree_tags import TreeTags, tree_of_tags
from weft.text.features.word_pieces import WordPieces
from weft.text.processors.trees import Parsed, TreesText
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["TreeTagging"]


@registries.tasks.register("tree_tagging")
class TreeTagging(ColumnsTask):
    """Parses sentences into trees of intents and slots over their own words.

    What opens before a word and closes behind it is its label (``labels.type=trees``), so any
    model that labels words is a parser, and every answer is a tree, but of a sentence that has
    brackets of its own. Evaluated as
    :class:`~weft.tasks.parsing.SemanticParsing` is.
    """

    class Config(UnseenLabelsConfig):
        """Settings of the task."""

        column: str = "source"
        """The column of the sentence: text, split at white space, or a list."""
        max_length: int = 256
        """Most words of a sentence."""
        loss: AutoLoss.Config | LabelLoss.Config | None = None
        """The loss of a word, for a model without a random field; null and auto are
        cross_entropy."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length"])

    config: Config
    text: TreesText

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
        if not isinstance(labels, TreeTags):
            raise UserError(
                "The labels of words must be what opens and closes at them: set labels.type=trees."
            )
        beside = WordFeatures(
            characters=characters, affixes=affixes, pieces=pieces, dictionary=dictionary
        )
        words = word_columns(
            tokenizer, column=config.column, max_length=config.max_length, beside=beside
        )
        self.text = TreesText(words, {"tags": TreesColumn(labels)})
        self.crf = random_field(module)
        self.criterion = word_criterion(config.loss, labels, self.crf)

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        """The loss of a batch: a sum over its words, which padding is none of."""
        return word_loss(scores, batch, self.crf, self.criterion, training=self.module.training)

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Parsed]:
        """Each sentence's tags, with the probability that each word's is right."""
        return self.text.decode(tag_chances(scores, batch, self.crf, self.criterion.probabilities))

    @property
    @override
    def exported_forward(self) -> Forward:
        return tag_forward(self.crf)

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """Numbers and probabilities of tags, or scores for the random field."""
        return tag_outputs(self.scores(batch), self.crf, self.criterion.probabilities)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """Shares of trees that are right as a whole, and of their parts."""
        return {"exact_match": ExactMatch.Config().build(), "trees": Trees()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Parsed], rows: Rows) -> None:
        column, root = self.text.tags, self.text.tags.labels.root
        # Written as answers are: white space around brackets is no part of a tree.
        gold = [tree_of_tags(*column.parts(row[column.name]), root=root) for row in rows]
        given = [answer.tree for answer in answers]
        metrics["exact_match"].update(given, [[tree] for tree in gold])
        metrics["trees"].update(gold, given)

    @override
    def read_batch(self, batch: ColumnBatch) -> list[dict[str, Any]]:
        lengths, names = batch.lengths["words"].tolist(), self.text.tags.labels.names
        texts = words_of(self.text, batch)
        rows: list[dict[str, Any]] = [{self.config.column: text} for text in texts]
        if "tags" in batch:
            root = self.text.tags.labels.root
            for row, n, tags in zip(rows, lengths, batch["tags"].tolist(), strict=True):
                words, told = row[self.config.column].split(), [names[t] for t in tags[:n]]
                row[self.text.tags.name] = tree_of_tags(words, told, root=root)
        return rows
