"""Semantic parsing: sentence to logical form, judged by exact match and as trees."""

from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.exported.seq2seq import Translated, with_copied
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.frames import Trees, read_tree
from textmill.metrics.metric import Metric
from textmill.models.decoding import Decoding
from textmill.tasks import registries
from textmill.tasks.batches.row_batches import RowBatches
from textmill.tasks.seq2seq import GenerationConfig, Seq2Seq
from textmill.tasks.task import Batches, Metrics
from textmill.text.cells import Rows, placed_errors
from textmill.text.tokenizers.tokenizer import Tokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer


@registries.tasks.register("semantic_parsing")
class SemanticParsing(Seq2Seq):
    """Parses sentences; evaluated by its loss, and by how many parses are wholly right.

    A parse is any text; ``exact_match`` counts those that are the target. Where targets are trees
    of intents and slots (``trees``), these are scored too: ``frame_accuracy``, ``bracket/..._f1``,
    ``tree/..._f1``; an answer that is no tree counts as one with the intent ``IN:INVALID_TREE``.
    """

    class Config(GenerationConfig):
        """Settings of the task."""

        label_smoothing: float = 0.0
        """Share of the target's probability spread over the vocabulary: a sentence has one parse,
        so nothing."""
        decoding: Decoding = Decoding(max_length_a=8.0, max_length_b=40)
        """How answers are searched. Logical forms are many times as long as their sentences."""
        trees: bool = False
        """Whether targets are trees, written ``[IN:LABEL words [SL:LABEL words ] ]`` (Gupta et al.
        2018), whose intents and slots are scored; a target that is not a tree is an error."""
        copy_unknown: bool = False
        """Whether an answer's unknown words are those of its sentence, in their order: for parses
        that repeat the sentence's words. The tokenizer must be one of words."""

    config: Config

    def __init__(self, config: Config, *, module: nn.Module, tokenizer: Tokenizer) -> None:
        if config.copy_unknown and not isinstance(tokenizer, WordTokenizer):
            raise UserError(
                f"task.copy_unknown needs a tokenizer of words, but this one is a "
                f"{type(tokenizer).__name__}. Set tokenizer.type=fitted_words with "
                "tokenizer.marks=true, or leave task.copy_unknown out."
            )
        super().__init__(config, module=module, tokenizer=tokenizer)

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """As :meth:`Seq2Seq.batches`.

        Raises:
            DataError: Targets are to be trees, and one is none.
        """
        batches = super().batches(data, train=train, seed=seed)
        if self.config.trees and isinstance(batches, RowBatches):
            with placed_errors(batches.rows):
                for number, row in enumerate(batches.rows):
                    try:
                        read_tree(row["target"])
                    except DataError as error:
                        raise DataError(
                            f"Row {number}, column 'target': {error} Correct the row, or set "
                            "task.trees=false."
                        ) from None
        return batches

    @property
    @override
    def answer_settings(self) -> dict[str, Any]:
        return {**super().answer_settings, "copy_unknown": self.config.copy_unknown}

    @override
    def complete(self, answers: Sequence[Translated], rows: Rows) -> list[Translated]:
        """Gives answers the unknown words of their sentences, with ``copy_unknown``."""
        return with_copied(answers, rows, self.text) if self.config.copy_unknown else list(answers)

    @override
    def text_metrics(self) -> dict[str, Metric]:
        """Exact match; of trees, the scores of their parts too."""
        trees = {"trees": Trees()} if self.config.trees else {}
        return {"exact_match": ExactMatch.Config().build(), **trees}

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        targets = [example["target"] for example in examples]
        metrics["exact_match"].update(texts, [[target] for target in targets])
        if self.config.trees:
            metrics["trees"].update(targets, texts)
