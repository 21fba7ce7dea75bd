"""Pairs of texts: a label, or a number, for how two texts stand to each other."""

import torch
from torch import Tensor
from typing_extensions import override

from weft.config import registries
from weft.data.columns import ColumnBatch
from weft.tasks.classification import LabelTask
from weft.tasks.regression import NumberTask
from weft.text.columns.number import NumberColumn
from weft.text.labels import Labels
from weft.text.pairs import PairLabelText, PairNumberText
from weft.text.tokenizer import Tokenizer

__all__ = ["PairClassification", "PairRegression"]


@registries.tasks.register("pair_classification")
class PairClassification(LabelTask):
    """Gives two texts a label, or with ``labels.multiple`` any number of labels.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives scores,
    :math:`(B,L)`.
    """

    class Config(LabelTask.Config):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    config: Config

    def __init__(
        self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer, labels: Labels
    ) -> None:
        columns, limit = config.columns, config.max_length
        text = PairLabelText(tokenizer, labels, columns=columns, max_length=limit)
        super().__init__(config, module=module, text=text, labels=labels)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """Unnormalized scores of the labels. *Shape:* :math:`(B,L)`."""
        return _scores(self.module, batch)


@registries.tasks.register("pair_regression")
class PairRegression(NumberTask):
    """Gives two texts a number; answers and metrics are in the units of the training data.

    The module is called as ``module(text1, lengths1, text2, lengths2)`` and gives one number a row,
    :math:`(B,1)`.
    """

    class Config(NumberTask.Config):
        """Settings of the task."""

        columns: tuple[str, str] = ("text1", "text2")
        """The columns of the first and of the second text."""

    config: Config
    text: PairNumberText

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        super().__init__(config, module=module)
        number = NumberColumn(config.number, span=config.span)
        columns, limit = config.columns, config.max_length
        self.text = PairNumberText(tokenizer, number, columns=columns, max_length=limit)

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """The number of each row, as the module learns it. *Shape:* :math:`(B)`."""
        return _scores(self.module, batch).squeeze(1).float()


def _scores(module: torch.nn.Module, batch: ColumnBatch) -> Tensor:
    lengths = batch.lengths
    out: Tensor = module(batch["text1"], lengths["text1"], batch["text2"], lengths["text2"])
    return out
