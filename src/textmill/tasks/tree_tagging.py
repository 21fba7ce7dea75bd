"""Trees over the words of a sentence: what opens and closes at each word is its label."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.exported.forward import Forward
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.frames import Trees
from textmill.metrics.metric import Metric
from textmill.models.label_losses import AutoLoss, LabelLoss
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask, UnseenLabelsConfig
from textmill.tasks.task import Loss, Metrics
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
from textmill.text.columns.trees import TreesColumn
from textmill.text.features.dictionaries import Dictionary
from textmill.text.features.labels import Labels
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.features.tree_tags import TreeTags, tree_of_tags
from textmill.text.features.word_pieces import WordPieces
from textmill.text.processors.trees import Parsed, TreeCheck, TreesText
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tasks.register("tree_tagging")
class TreeTagging(ColumnsTask):
    """Parses sentences into trees of intents and slots over their own words.

    What opens before a word and closes behind it is its label (``labels.type=trees``), so any
    model that labels words is a parser, and every answer is a tree, but of a sentence that has
    brackets of its own. Evaluated as
    :class:`~textmill.tasks.parsing.SemanticParsing` is.
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

        @override
        def row_check(self, labels: Any = None) -> TreeCheck | None:
            return labels and TreeCheck(self.column, labels.column)

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
        """The loss of a batch: a sum over its words, without padding."""
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
