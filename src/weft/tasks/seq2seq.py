"""Sequence to sequence: text in, text out, by an encoder-decoder trained with cross-entropy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from weft.config.component import Config
from weft.data.batches import EpochBatches
from weft.data.batching import Batching
from weft.data.seq2seq import Seq2SeqBatch, collate_seq2seq
from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.metrics.streaming import Accuracy, Mean, Perplexity
from weft.models.decoding import Decoding, Hypothesis, decode
from weft.models.losses import cross_entropy, num_correct
from weft.runtime.devices import Env
from weft.tasks.row_batches import ReadyBatches, RowBatches, peek
from weft.tasks.task import Batches, Loss, Outputs, Row, Task
from weft.text.paths import Seq2SeqText
from weft.text.tokenizer import Tokenizer

__all__ = ["Seq2Seq", "Translated"]


@dataclass(frozen=True)
class Translated:
    """A generated text with its score; ``str()`` gives the text.

    Example:
        >>> print(Translated("Bonjour.", -0.31))
        Bonjour.
    """

    text: str
    """The text."""
    score: float
    """Its length-normalized log-probability (natural logarithm; higher is more certain)."""
    alternatives: tuple["Translated", ...] = ()
    """The other hypotheses of an n-best search, best first."""

    def __str__(self) -> str:
        return self.text


class Seq2Seq(Task):
    """An encoder-decoder trained with label-smoothed cross-entropy; answers are generated text.

    To change the loss, override :meth:`loss`.
    """

    class Config(Config):
        """Settings of the task."""

        label_smoothing: float = 0.1
        """Share of the target's probability spread over the vocabulary (Szegedy et al. 2016)."""
        max_source_length: int = 512
        """Longest source, in tokens with its end mark."""
        max_target_length: int = 512
        """Longest target, in tokens with its start and end marks."""
        over_length: Literal["error", "skip"] = "error"
        """What a row longer than that is in training and validation: an error, or left out and counted."""
        decoding: Decoding = Decoding()
        """How answers are searched."""

    config: Config

    def __init__(self, config: Config, *, module: torch.nn.Module, tokenizer: Tokenizer) -> None:
        self.config, self.module = config, module
        self.text = Seq2SeqText(
            tokenizer,
            max_source_length=config.max_source_length,
            max_target_length=config.max_target_length,
        )
        self.pad_idx = tokenizer.vocab_info.pad_idx
        self.eos_idx = tokenizer.vocab_info.eos_idx
        self.notes: list[str] = []

    # -- data

    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """Batches of rows (encoded here) or of ready batches."""
        if isinstance(data, Batches):
            return data
        if isinstance(peek(data), Mapping):
            return self._encoded(data, train=train, seed=seed)
        return ReadyBatches(data, self._read_batch)

    def _encoded(self, data: Iterable[Row], *, train: bool, seed: int) -> RowBatches:
        rows: Sequence[Row] = data.rows() if hasattr(data, "rows") else list(data)
        batching: Batching = getattr(data, "batching", Batching(shuffle=train))
        encoded = self.text.encode(rows, with_targets=True)
        if len(encoded.over_length):
            rows = self._without(rows, encoded.over_length, data)
            encoded = self.text.encode(rows, with_targets=True)
        collate: Callable[[np.ndarray[Any, Any]], Seq2SeqBatch] = lambda indices: collate_seq2seq(  # noqa: E731
            encoded.columns, indices, pad_idx=self.pad_idx
        )
        return RowBatches(EpochBatches(encoded.columns, batching, collate, seed=seed), rows)

    def _without(self, rows: Sequence[Row], too_long: Any, data: object) -> list[Row]:
        limits = f"{self.config.max_source_length} source or {self.config.max_target_length} target tokens"
        listed = ", ".join(str(int(i) + 1) for i in too_long[:20])
        if self.config.over_length == "error":
            raise DataError(
                f"{len(too_long)} of {len(rows)} rows have more than {limits}: rows {listed}. "
                "Raise task.max_source_length and task.max_target_length, "
                "or leave them out with task.over_length=skip."
            )
        self.notes.append(f"{len(too_long)} of {len(rows)} rows left out: more than {limits}.")
        out = {int(i) for i in too_long}
        return [row for i, row in enumerate(rows) if i not in out]

    def _read_batch(self, batch: Seq2SeqBatch) -> list[dict[str, Any]]:
        sources = self.text.decode(batch.source.tolist())
        targets = self.text.decode([] if batch.target is None else batch.target.tolist())
        return [dict(zip(("source", "target"), pair, strict=False)) for pair in zip(sources, targets, strict=True)]

    # -- loss

    def training_step(self, batch: Seq2SeqBatch) -> Loss:
        """Loss of one batch, over its real label positions only."""
        logits, targets = self.logits(batch.to(self.device))
        return self.loss(logits, targets)

    def logits(self, batch: Seq2SeqBatch) -> tuple[Tensor, Tensor]:
        """Scores and labels of the real label positions.

        Returns:
            Logits, shape ``[N, V]``, and labels, shape ``[N]``, where N counts the labels without padding.
        """
        if batch.target is None or batch.target_lengths is None:
            raise DataError("This batch has no target; training and evaluation need one.")
        inputs, labels = batch.target[:, :-1], batch.target[:, 1:]
        real = torch.arange(labels.shape[1], device=labels.device) < batch.target_lengths[:, None]
        hidden = self.module.hidden(batch.source, batch.source_lengths, inputs)
        return self.module.project(hidden[real]), labels[real]

    def loss(self, logits: Tensor, targets: Tensor) -> Loss:
        """The loss of labels; the one method to override for another loss.

        Args:
            logits: Scores, shape ``[N, V]``.
            targets: Labels without padding, shape ``[N]``.

        Returns:
            The label-smoothed cross-entropy summed over the labels, with their count; ``nll`` is the sum without smoothing.
        """
        sums = cross_entropy(logits, targets, label_smoothing=self.config.label_smoothing)
        return Loss(sums.total, torch.tensor(float(len(targets))), {"nll": sums.nll.detach()})

    # -- evaluation

    def validation_step(self, batch: Seq2SeqBatch, examples: Sequence[Mapping[str, Any]]) -> Outputs:
        """Loss and token accuracy of one batch."""
        logits, targets = self.logits(batch.to(self.device))
        loss = self.loss(logits, targets).detach()
        correct = num_correct(logits, targets)
        return Outputs(Loss(loss.total, loss.count, {**loss.sums, "correct": correct}))

    def metrics(self) -> dict[str, Metric]:
        """Loss, perplexity and token accuracy."""
        return {"loss": Mean("loss"), "perplexity": Perplexity(), "accuracy": Accuracy()}

    def aggregate(
        self, metrics: Mapping[str, Metric], outputs: Outputs, examples: Sequence[Mapping[str, Any]]
    ) -> None:
        """Adds a batch's sums."""
        loss = outputs.loss
        metrics["loss"].update(loss.total, loss.count)
        metrics["perplexity"].update(loss.sums.get("nll", loss.total), loss.count)
        metrics["accuracy"].update(loss.sums["correct"], loss.count)

    # -- answers

    def generate(self, source: Tensor, source_lengths: Tensor) -> list[Translated]:
        """Searches answers to encoded sources.

        Args:
            source: Token ids, shape ``[B, S]``.
            source_lengths: Real tokens of each row, shape ``[B]``.
        """
        found = decode(
            self.module,
            source.to(self.device),
            source_lengths.to(self.device),
            self.config.decoding,
            prefix=self.text.target_prefix,
            eos_idx=self.eos_idx,
        )
        return [self._answer(hypotheses) for hypotheses in found]

    def _answer(self, hypotheses: Sequence[Hypothesis]) -> Translated:
        texts = self.text.decode([h.ids for h in hypotheses])
        answers = [Translated(t, h.score) for t, h in zip(texts, hypotheses, strict=True)]
        return Translated(answers[0].text, answers[0].score, tuple(answers[1:]))

    def predict(self, rows: Sequence[Row]) -> list[Translated]:
        """Answers to rows with a ``source``, in order; batches are sorted by length inside."""
        if not rows:
            return []
        encoded = self.text.encode(rows, with_targets=False)
        if len(encoded.over_length):
            row = int(encoded.over_length[0])
            raise DataError(
                f"Input {row + 1} has {int(encoded.columns['source'].lengths[row])} tokens; "
                f"the model takes at most {self.config.max_source_length}."
            )
        batches = EpochBatches(
            encoded.columns,
            Batching(max_tokens=4096, shuffle=False),
            lambda indices: collate_seq2seq(encoded.columns, indices, pad_idx=self.pad_idx),
            seed=0,
        )
        answers: dict[int, Translated] = {}
        self.module.eval()
        with torch.inference_mode():
            for batch in batches:
                found = self.generate(batch.source, batch.source_lengths)
                answers.update(zip(batch.rows.tolist(), found, strict=True))
        return [answers[i] for i in range(len(rows))]

    def check(self, row: Row) -> None:
        """Refuses a source that is no text, or is longer than the model takes."""
        source = row.get("source")
        if not isinstance(source, str):
            raise DataError(f"'source' must be a string; found {type(source).__name__}.")
        if len(source) > 100 * self.config.max_source_length or len(
            self.text.encode([row], with_targets=False).over_length
        ):
            raise DataError(f"'source' is longer than the {self.config.max_source_length} tokens the model takes.")

    def answer_row(self, answer: Translated) -> dict[str, Any]:
        """An answer as plain data."""
        row: dict[str, Any] = {"prediction": answer.text, "score": round(answer.score, 6)}
        if answer.alternatives:
            row["alternatives"] = [{"prediction": a.text, "score": round(a.score, 6)} for a in answer.alternatives]
        return row
