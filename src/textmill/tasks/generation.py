"""Tasks of generated text, each with its measures: translation, semantic parsing, summaries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.column_batch import ColumnBatch
from textmill.errors import DataError, UserError
from textmill.exported.seq2seq import with_copied
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.frames import Trees, read_tree
from textmill.metrics.metric import Metric
from textmill.metrics.rouge import Rouge, RougeKind
from textmill.metrics.translation import Bleu, ChrF
from textmill.models.decoding import Decoding
from textmill.tasks import registries
from textmill.tasks.batches.row_batches import RowBatches
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.seq2seq import GenerationConfig, Seq2Seq
from textmill.tasks.task import Batches, Loss, Metrics, Row
from textmill.text.answers import Translated
from textmill.text.cells import Rows, joined_text, placed_errors
from textmill.text.columns.dictionary import Dictionary
from textmill.text.features.sentences import REFERENCES, references_of
from textmill.text.features.spelling import WordPieces
from textmill.text.processors.extract import (
    MOST,
    Extract,
    ExtractText,
    OverlapsColumn,
    SentencesColumn,
)
from textmill.text.tokenizers.tokenizer import Tokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer


@registries.tasks.register("translation")
class Translation(Seq2Seq):
    """Translates text; evaluated by its loss, and by sacreBLEU and chrF of generated text.

    A source that stands on several rows with different targets is translated once and scored
    against all of them (``bleu``, ``chrf``); ``bleu_single`` scores every row against its own
    target alone.
    """

    class Config(GenerationConfig):
        """Settings of the task."""

    @override
    def with_references(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Gives the first row of each source the targets of all its rows, and the later none."""
        targets: dict[str, list[str]] = {}
        sources = [joined_text(row["source"]) for row in rows]
        pairs = list(zip(sources, rows, strict=True))
        for source, row in pairs:
            targets.setdefault(source, []).append(row["target"])
        return [{**row, "references": targets.pop(source, [])} for source, row in pairs]

    @override
    def is_answered(self, example: Mapping[str, Any]) -> bool:
        """Each source is translated where it occurs first."""
        return bool(example.get("references", True))

    @override
    def text_metrics(self) -> dict[str, Metric]:
        return {
            "bleu": Bleu.Config().build(),
            "chrf": ChrF.Config().build(),
            "bleu_single": Bleu.Config(name="bleu_single").build(),
        }

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        references = [example.get("references") or [example["target"]] for example in examples]
        for name in ("bleu", "chrf"):
            metrics[name].update(texts, references)
        pairs = [(text, [r]) for text, many in zip(texts, references, strict=True) for r in many]
        metrics["bleu_single"].update([text for text, _ in pairs], [one for _, one in pairs])


@registries.tasks.register("semantic_parsing")
class SemanticParsing(Seq2Seq):
    """Parses sentences; evaluated by its loss, and by how many parses are wholly right.

    A parse is any text; ``exact_match`` counts those that are the target. Where targets are trees
    of intents and slots (``trees``), these are scored too: ``frame_accuracy``, ``bracket/..._f1``,
    ``tree/..._f1``; an answer that is no tree counts as one with the intent ``IN:INVALID_TREE``.
    """

    class Config(GenerationConfig):
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

    def __init__(
        self,
        config: Config,
        *,
        module: nn.Module,
        tokenizer: Tokenizer,
        dictionary: Dictionary | None = None,
    ) -> None:
        if config.copy_unknown and not isinstance(tokenizer, WordTokenizer):
            raise UserError(
                f"task.copy_unknown needs a tokenizer of words, but this one is a "
                f"{type(tokenizer).__name__}. Set tokenizer.type=fitted_words with "
                "tokenizer.marks=true, or leave task.copy_unknown out."
            )
        super().__init__(config, module=module, tokenizer=tokenizer, dictionary=dictionary)

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
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
        return with_copied(answers, rows, self.text) if self.config.copy_unknown else list(answers)

    @override
    def text_metrics(self) -> dict[str, Metric]:
        trees = {"trees": Trees()} if self.config.trees else {}
        return {"exact_match": ExactMatch.Config().build(), **trees}

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        targets = [example["target"] for example in examples]
        metrics["exact_match"].update(texts, [[target] for target in targets])
        if self.config.trees:
            metrics["trees"].update(targets, texts)


@registries.tasks.register("summarization")
class Summarization(Seq2Seq):
    """Summarizes text; evaluated by its loss, and by ROUGE-1, -2 and -L of generated summaries.

    A row's ``target`` is what is learned, and the loss is of it. Where rows have a column
    ``references``, a list of texts or one written as JSON, an answer is scored against that of them
    which it shares most words with (``rouge1``); else against the target.
    """

    class Config(GenerationConfig):
        decoding: Decoding = Decoding(
            beam_size=4, max_length_a=0.0, max_length_b=100, no_repeat_ngram=3
        )
        """How answers are searched. A summary is short however long its text is, and repeats
        nothing."""

    @override
    def with_references(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The rows with their references, where they have any, as lists."""
        return [
            {**row, REFERENCES: references_of(row, number)} if REFERENCES in row else dict(row)
            for number, row in enumerate(rows)
        ]

    @override
    def text_metrics(self) -> dict[str, Metric]:
        return {"rouge": _rouge_of_summaries()}

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        references = [example.get(REFERENCES) or [example["target"]] for example in examples]
        metrics["rouge"].update(texts, references)


@registries.tasks.register("extractive_summarization")
class ExtractiveSummarization(ColumnsTask):
    """Summarizes texts by their own sentences; evaluated by ROUGE as ``Summarization`` is.

    A row is a text, or a list of sentences, and a ``target``, or a list of ``references``. The
    module scores sentences, :math:`(B,N)`; they are trained to be chosen as often as they share
    words and pairs of words with a reference.
    """

    class Config(ColumnsTask.Config):
        column: str = "source"
        """The column of the text."""
        target: str = "target"
        """The column of the right summary, where a row has no ``references``."""
        max_length: int = 256
        """Most sentences of a text."""
        sentences: int = 1
        """Sentences of a summary."""
        temperature: float = 0.1
        """How much a sentence must share more than another to be e times as often the right one;
        shares are from 0 to 1."""

        def __post_init__(self) -> None:
            require(self, "task", sizes=["max_length", "sentences"], positive=["temperature"])
            if self.sentences > MOST:
                raise UserError(f"task.sentences must be at most {MOST}, but is {self.sentences}.")

    config: Config
    text: ExtractText

    def __init__(self, config: Config, *, module: nn.Module, pieces: WordPieces) -> None:
        super().__init__(config, module=module)
        self.text = ExtractText(
            {"sentences": SentencesColumn(pieces, name=config.column, limit=config.max_length)},
            self.with_weights({"overlaps": OverlapsColumn(config.target)}),
        )
        self.text.most = config.sentences

    @override
    def scores(self, batch: ColumnBatch) -> Tensor:
        """Scores of sentences, least at padding. *Shape:* :math:`(B,N)`."""
        found: Tensor = self.module(batch["sentences"], batch.lengths["sentences"])
        real = batch.mask("sentences")
        return found.float().masked_fill(~real, torch.finfo(torch.float32).min)

    @override
    def loss(self, scores: Tensor, batch: ColumnBatch) -> Loss:
        real = batch.mask("sentences")
        shares = (batch["overlaps"] / self.config.temperature).masked_fill(~real, -torch.inf)
        has = real.any(dim=1)
        right = shares[has].softmax(dim=1)
        chances = scores[has].log_softmax(dim=1).masked_fill(~real[has], 0.0)
        weights = self.weights(batch)
        losses = -(right * chances).sum(dim=1)
        return Loss.of_rows(losses, None if weights is None else weights[has])

    @override
    def answers(self, scores: Tensor, batch: ColumnBatch) -> list[Any]:
        return self.text.decode(scores.cpu().numpy())

    @override
    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        return (self.scores(batch),)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return {"rouge": _rouge_of_summaries()}

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Extract], rows: Rows) -> None:
        references = [self.text.references(row) for row in rows]
        metrics["rouge"].update([answer.text for answer in answers], references)


def _rouge_of_summaries() -> Rouge:
    """ROUGE of stems, of the reference that is best by ROUGE-1: as SciTLDR is scored."""
    kinds: tuple[RougeKind, ...] = ("rouge1", "rouge2", "rougeL")
    found: Rouge = Rouge.Config(kinds=kinds, chosen_by="rouge1", stems=True).build()
    return found
