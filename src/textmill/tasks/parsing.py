"""Parsing by a model that builds trees action by action."""

import math
from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.models.parsers.rnng import Rnng
from textmill.tasks import registries
from textmill.tasks.tagging import TreeTask
from textmill.tasks.task import Loss
from textmill.text.columns.inputs import BesideWords, word_columns
from textmill.text.columns.labels import TreeActionsColumn
from textmill.text.features.labels import UNSEEN, Labels
from textmill.text.features.tree_actions import TreeActions
from textmill.text.processors.tagging import TreesText
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tasks.register("shift_reduce_parsing")
class ShiftReduceParsing(TreeTask):
    """Parses sentences into trees of intents and slots over their own words, by a stack.

    The module is an ``rnng``, which chooses one action after another (``labels.type=tree_actions``)
    among those that lead to a tree. So every answer is one, but of a sentence that has brackets of
    its own; its score is its probability. The loss is that of an action.
    """

    class Config(TreeTask.Config):
        over_length: Literal["skip", "error"] = "error"
        """What happens to a longer sentence: error refuses it; skip leaves it out of training and
        evaluation, and counts it. In prediction the words after the limit are left out."""
        beam_size: int = 1
        """Trees that are followed at once; 1 takes the likeliest action each time."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "task", sizes=["beam_size"])

    config: Config
    module: Rnng

    def __init__(
        self,
        config: Config,
        *,
        module: nn.Module,
        tokenizer: Tokenizer,
        labels: Labels,
        **beside: Unpack[BesideWords],
    ) -> None:
        if not isinstance(module, Rnng):
            raise UserError(
                f"shift_reduce_parsing needs a model that builds trees, but a "
                f"{type(module).__name__} does not: set model.type=rnng."
            )
        assert isinstance(labels, TreeActions), "an rnng takes no others"
        super().__init__(config, module=module)
        words = word_columns(
            tokenizer, column=config.column, max_length=config.max_length, **beside
        )
        self.text = TreesText(words, self.with_weights({"tags": TreeActionsColumn(labels)}))

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        actions, real, lengths = batch["tags"], batch.mask("tags"), batch.lengths["words"]
        weights = self.weights(batch)
        times = real.float() if weights is None else real * weights[:, None]
        if not self.module.training:
            seen = (actions != UNSEEN).all(dim=1)
            parts = (scores, lengths, actions, real, times)
            scores, lengths, actions, real, times = (each[seen] for each in parts)
        found = self.module.log_probabilities(scores, lengths, actions.clamp(min=0))
        return Loss(-(torch.where(real, found, 0.0) * times).sum(), times.sum())

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Any]:
        lengths = batch.lengths["words"].to(scores.device)
        best = self.module.search(scores, lengths, beam_size=self.config.beam_size)
        found: list[Any] = self.text.decode((each.ids, [math.exp(each.score)]) for each in best)
        return found
