"""Trees over the words of a sentence: what opens and closes at each word is its label."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from textmill.config.validators import require
from textmill.errors import UserError
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.frames import Trees
from textmill.metrics.metric import Metric
from textmill.models.label_losses import AutoLoss, LabelLoss
from textmill.tasks import registries
from textmill.tasks.column_task import UnseenLabelsConfig
from textmill.tasks.tagging import TagTask
from textmill.tasks.task import Metrics
from textmill.text.cells import Rows
from textmill.text.columns.column import Column
from textmill.text.columns.trees import TreesColumn
from textmill.text.features.labels import Labels
from textmill.text.features.tree_tags import TreeTags, tree_of_tags
from textmill.text.processors.trees import Parsed, TreeCheck, TreesText


@registries.tasks.register("tree_tagging")
class TreeTagging(TagTask):
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

    text: TreesText

    @override
    def text_of(self, words: dict[str, Column], labels: Labels) -> TreesText:
        if not isinstance(labels, TreeTags):
            raise UserError(
                "The labels of words must be what opens and closes at them: set labels.type=trees."
            )
        return TreesText(words, {"tags": TreesColumn(labels)})

    @override
    def cell(self, words: str, tags: list[str]) -> str:
        return tree_of_tags(words.split(), tags, root=self.text.tags.labels.root)

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
