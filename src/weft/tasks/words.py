"""The base of tasks whose module says something of each word."""

from typing import Any

from weft.data.columns import ColumnBatch
from weft.models.crf import LinearChainCrf
from weft.tasks.columns import ColumnsTask

__all__ = ["WordsTask"]


class WordsTask(ColumnsTask):
    """A task over words; its text path has the role ``words``, and others beside it.

    The module is called as ``module(words, lengths)``, with ``characters=``, ``affixes=`` and
    ``dictionary=`` where the recipe has such.
    """

    @property
    def crf(self) -> LinearChainCrf | None:
        """The module's random field; a module of the recipe's own need not have the attribute."""
        return getattr(self.module, "crf", None)

    def called(self, batch: ColumnBatch) -> Any:
        """What the module makes of a batch's words and of what stands beside them."""
        beside = {role: batch[role] for role in self.text.inputs if role != "words"}
        return self.module(batch["words"], batch.lengths["words"], **beside)

    def words_of(self, batch: ColumnBatch) -> list[str]:
        """The known words of each row of a ready batch, as text."""
        decoder = self.text.ingredients["tokenizer"].create_decoder()
        ids, lengths = batch["words"].cpu().numpy(), batch.lengths["words"].tolist()
        texts: list[str] = decoder.batch([row[:n] for n, row in zip(lengths, ids, strict=True)])
        return texts
