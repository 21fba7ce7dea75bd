"""Sequence to sequence judged by the text that it generates: base of translation, parsing, ..."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from typing_extensions import override

from weft.data.seq2seq_batch import Seq2SeqBatch
from weft.errors import UserError
from weft.exported.seq2seq import Translated
from weft.metrics.metric import Metric
from weft.tasks.batches.row_batches import RowBatches
from weft.tasks.seq2seq import Seq2Seq
from weft.tasks.seq2seq_protocols import generator_of
from weft.tasks.task import AnsweredConfig, Batches, Outputs, Row

__all__ = ["GenerationTask"]


class GenerationTask(Seq2Seq):
    """Base of tasks that score generated text; a subclass says by which metrics, and how."""

    class Config(Seq2Seq.Config, AnsweredConfig):
        """Settings of the task."""

        generate: bool = True
        """Whether evaluation generates text and scores it; else only the loss is measured."""

        @override
        def __post_init__(self) -> None:
            """Refuses metrics of texts that are not generated."""
            super().__post_init__()
            if self.metrics and not self.generate:
                raise UserError(
                    "task.metrics measure generated texts, and task.generate=false generates none. "
                    "Leave one of them out."
                )

    config: Config

    @abstractmethod
    def text_metrics(self) -> dict[str, Metric]:
        """Fresh metrics of generated text."""

    @abstractmethod
    def score(
        self,
        metrics: Mapping[str, Metric],
        texts: Sequence[str],
        examples: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds generated texts, and the rows they answer, to :meth:`text_metrics`."""

    def with_references(self, rows: Sequence[Row]) -> Sequence[Mapping[str, Any]]:
        """The rows of an evaluation with what answers are scored against, beside the target.

        As they are, unless overridden.
        """
        return rows

    def is_answered(self, example: Mapping[str, Any]) -> bool:
        """Whether evaluation generates an answer to this row: all, unless overridden."""
        return True

    @property
    def completed_by(self) -> str:
        """The setting by which :meth:`complete` changes answers; empty where it does not."""
        return ""

    def complete(
        self, answers: Sequence[Translated], rows: Sequence[Mapping[str, Any]]
    ) -> list[Translated]:
        """Answers as they are given: as they were generated, unless overridden.

        Args:
            answers: As they were generated.
            rows: What each answers.
        """
        return list(answers)

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """As :meth:`Seq2Seq.batches`, with what answers are scored against.

        Raises:
            UserError: The evaluation is to generate text, and the module cannot.
        """
        if not train and self.config.generate:
            generator_of(self.module)
        batches = super().batches(data, train=train, seed=seed)
        if not train and isinstance(batches, RowBatches):
            batches.rows = self.with_references(batches.rows)
        return batches

    @override
    def validation_step(
        self, batch: Seq2SeqBatch, examples: Sequence[Mapping[str, Any]]
    ) -> Outputs:
        """Loss of a batch, and an answer to each row that gets one."""
        outputs = super().validation_step(batch, examples)
        answered = [i for i, example in enumerate(examples) if self.is_answered(example)]
        if not (self.config.generate and answered):
            return outputs
        rows = torch.tensor(answered, device=batch.source.device)
        lengths = batch.source_lengths[rows]
        source = batch.source[rows][:, : int(lengths.max())]
        answers = self.complete(self.generate(source, lengths), [examples[i] for i in answered])
        return Outputs(outputs.loss, dict(zip(answered, answers, strict=True)))

    @override
    def predict(self, rows: Sequence[Row]) -> list[Translated]:
        """As :meth:`Seq2Seq.predict`, completed."""
        return self.complete(super().predict(rows), rows)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        """Those of generated text, where the evaluation generates it."""
        return self.text_metrics() if self.config.generate else {}

    @override
    def measure(
        self,
        metrics: Mapping[str, Metric],
        answers: Sequence[Translated],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        """Adds the texts of answers."""
        self.score(metrics, [answer.text for answer in answers], rows)
