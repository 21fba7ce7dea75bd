"""The base of tasks whose module says something of each word."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from weft.config.component import setting
from weft.data.column_batch import ColumnBatch
from weft.models.crf import LinearChainCrf
from weft.tasks.column_task import ColumnsTask
from weft.text.features.labels import UNSEEN

__all__ = ["WordsTask"]


class WordsTask(ColumnsTask):
    """A task over words; its text processor has the role ``words``, and others beside it.

    The module is called as ``module(words, lengths)``, with ``characters=``, ``affixes=`` and
    ``dictionary=`` where the recipe has such.
    """

    class Config(ColumnsTask.Config):
        """Settings of the task."""

        unseen_labels: Literal["wrong", "error"] = setting("wrong", in_key=False)
        """What becomes of a row to evaluate with a label or slot that training has not: it counts
        as wrong, is left out of the loss, and how many there are is said; or it is an error. In
        training rows it always is."""

    config: Any

    @property
    @override
    def counts_unseen(self) -> bool:
        return bool(self.config.unseen_labels == "wrong")

    @property
    def crf(self) -> LinearChainCrf | None:
        """The module's random field; a module of the recipe's own need not have the attribute."""
        return getattr(self.module, "crf", None)

    def called(self, batch: ColumnBatch) -> Any:
        """What the module makes of a batch's words and of what stands beside them."""
        beside = {role: batch[role] for role in self.text.inputs if role != "words"}
        return self.module(batch["words"], batch.lengths["words"], **beside)

    def tagged(
        self, scores: Tensor, batch: ColumnBatch, probabilities: Callable[[Tensor], Tensor]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The number and the probability of the label of each word, row by row.

        Args:
            scores: Unnormalized scores of labels. *Shape:* :math:`(B,T,L)`.
            batch: The words they are of.
            probabilities: Of labels from scores; where there is a random field, its own are taken.
        """
        if self.crf is None:
            chances, numbers = probabilities(scores).max(dim=-1)
        else:
            real = batch.mask("words").to(scores.device)
            numbers, chances = self.crf.decode_with_chances(scores, real)
        lengths = batch.lengths["words"].tolist()
        rows = zip(lengths, numbers.cpu().numpy(), chances.float().cpu().numpy(), strict=True)
        return [(row[:n], scored[:n]) for n, row, scored in rows]

    def seen(self, *targets: Tensor) -> Tensor:
        """Which rows have no label that training has not. *Shape:* :math:`(B)`.

        Args:
            targets: Labels of rows or of words, ``UNSEEN`` where training has none such.
                *Shape:* :math:`(B)` or :math:`(B,T)`.
        """
        wrong = [(target == UNSEEN).reshape(len(target), -1).any(dim=1) for target in targets]
        return ~torch.stack(wrong).any(dim=0)

    def words_of(self, batch: ColumnBatch) -> list[str]:
        """The known words of each row of a ready batch, as text."""
        decoder = self.text.ingredients["tokenizer"].create_decoder()
        ids, lengths = batch["words"].cpu().numpy(), batch.lengths["words"].tolist()
        texts: list[str] = decoder.batch([row[:n] for n, row in zip(lengths, ids, strict=True)])
        return texts
