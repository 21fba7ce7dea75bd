"""Parsing by a conditional masked language model, which writes all tokens of a parse at once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.errors import DataError, UserError
from textmill.exported.seq2seq import translated
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import Accuracy
from textmill.models.decoders.mask_predict import MaskPredict
from textmill.models.decoding.mask_predict import MaskPredictDecoding, mask_predict
from textmill.tasks import registries
from textmill.tasks.generation import SemanticParsing
from textmill.tasks.task import Loss, Metrics, Outputs, Row
from textmill.text.answers import Translated
from textmill.text.cells import Rows
from textmill.text.processors.seq2seq import prefix_of
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tasks.register("mask_predict_parsing")
class MaskPredictParsing(SemanticParsing):
    """Parses sentences as ``SemanticParsing`` does, all tokens of a parse at once.

    In training a random share of a target's tokens is masked, anew in each step; the loss is that
    of these tokens, and of the moves of source tokens, divided by the number of masked tokens. In
    an evaluation all tokens are masked, and loss, perplexity and accuracy are of predictions that
    know the right moves; answers are by predicted ones.

    Source: Ghazvininejad et al. 2019, "Mask-Predict: Parallel Decoding of Conditional Masked
    Language Models".
    """

    class Config(SemanticParsing.Config):
        decoding: MaskPredictDecoding = MaskPredictDecoding(max_length_a=8.0, max_length_b=40)
        """How answers are predicted."""
        all_masked: float = 0.0
        """Share of the targets in training of which all tokens are masked, as in the first pass of
        decoding; of each other one the number of masked tokens is uniform, from 1 to all."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            if not 0 <= self.all_masked <= 1:
                raise UserError(f"task.all_masked must be from 0 to 1, but is {self.all_masked}.")
            if self.weight is not None:
                raise UserError(
                    "task.weight: a model that predicts masked tokens takes no weights of rows. "
                    "Leave it out, or set task.type=semantic_parsing with another model."
                )
            if self.answer_prefix:
                raise UserError(
                    f"task.answer_prefix is {self.answer_prefix!r:.40}, but all tokens of an "
                    "answer are predicted at once, and none is given. Leave it out."
                )

    config: Config
    module: MaskPredict

    def __init__(self, config: Config, *, module: nn.Module, tokenizer: Tokenizer) -> None:
        if not isinstance(module, MaskPredict):
            raise UserError(
                f"The task predicts masked tokens, but the model is a {type(module).__name__}. "
                "Set model.type=mask_predict, or task.type=semantic_parsing."
            )
        super().__init__(config, module=module, tokenizer=tokenizer)

    @override
    def check_module(self, *, train: bool) -> None:
        """Does nothing: the module was checked when the task was made."""

    @override
    def training_step(self, batch: Seq2SeqBatch, examples: Rows = ()) -> Loss:
        batch = batch.to(self.device, non_blocking=True)
        real = _real(batch)
        lengths = real.sum(dim=1, keepdim=True)
        share, whole = torch.rand((2, *lengths.shape), device=lengths.device)
        count = torch.where(whole < self.config.all_masked, lengths, 1 + (share * lengths).long())
        order = torch.rand(real.shape, device=real.device).masked_fill(~real, 2.0).argsort(dim=1)
        first = torch.arange(real.shape[1], device=real.device) < count
        masked = torch.zeros_like(real).scatter_(1, order, first)
        labels = self.module.with_copies(batch.labels, batch.source)
        self.module.written[labels[masked & (labels < self.module.size)]] = True
        return self._scored(batch, labels, masked)[0]

    @override
    def measured_loss(self, batch: Seq2SeqBatch) -> Loss:
        labels, masked = self.module.with_copies(batch.labels, batch.source), _real(batch)
        loss, right, right_lengths = self._scored(batch, labels, masked)
        lengths = torch.tensor(float(len(right_lengths)))
        sums = {"correct": right.sum(), "right_lengths": right_lengths.sum(), "lengths": lengths}
        return Loss(loss.total, loss.count, {**loss.sums, **sums})

    def _scored(
        self, batch: Seq2SeqBatch, labels: Tensor, masked: Tensor
    ) -> tuple[Loss, Tensor, Tensor]:
        """The loss, which masked tokens are right, and which lengths.

        The decoder reads the right places of source tokens, where they are known.
        """
        module, smoothing = self.module, self.config.label_smoothing
        memory = module.encode(batch.source, batch.source_lengths)
        moves = module.move_scores(memory)
        places, lengths = self._places(batch, labels), _real(batch).sum(dim=1)
        known = places >= 0
        decoded = module.read(
            labels, masked, lengths, memory, torch.where(known, places, module.moved(moves))
        )
        scores, wanted = module.scores(decoded, masked, memory), labels[masked]
        total, nll = _cross_entropy(scores, wanted, smoothing)
        each = torch.arange(places.shape[1], device=places.device)
        right_moves = module.move(places, each)
        total = total + _cross_entropy(moves[known], right_moves[known], smoothing)[0]
        loss = Loss(total, torch.tensor(float(len(wanted))), {"nll": nll.detach()})
        ends = (each == batch.source_lengths[:, None] - 1) & known
        return loss, scores.argmax(dim=1) == wanted, moves[ends].argmax(dim=1) == right_moves[ends]

    def _places(self, batch: Seq2SeqBatch, labels: Tensor) -> Tensor:
        """Where each source token is in the target, the last one at its end; -1: it is nowhere."""
        real, size = _real(batch), self.module.size
        places = torch.full_like(batch.source, -1)
        rows, at = ((labels >= size) & real).nonzero(as_tuple=True)
        places[rows, labels[rows, at] - size] = at
        last = batch.source_lengths[:, None] - 1
        return places.scatter(1, last, real.sum(dim=1, keepdim=True) - 1)

    @override
    def loss_metrics(self) -> dict[str, Metric]:
        return {**super().loss_metrics(), "lengths": Accuracy("length_accuracy")}

    @override
    def aggregate(self, metrics: Metrics, outputs: Outputs, examples: Rows) -> None:
        super().aggregate(metrics, outputs, examples)
        sums = outputs.loss.sums
        metrics["lengths"].update(sums["right_lengths"], sums["lengths"])

    @override
    def generate(
        self,
        source: Tensor,
        source_lengths: Tensor,
        *,
        prefixes: Sequence[str] | None = None,
        **beside: Any,
    ) -> list[Translated]:
        if any(prefixes or ()):
            raise DataError(_NO_PREFIX)
        found = mask_predict(
            self.module,
            source.to(self.device),
            source_lengths.to(self.device),
            self.config.decoding,
            eos_idx=self.eos_idx,
        )
        return translated(self.text, found)

    @override
    def check(self, row: Row) -> None:
        super().check(row)
        if prefix_of(row, ""):
            raise DataError(_NO_PREFIX)


_NO_PREFIX = (
    "'prefix' is given, but all tokens of an answer are predicted at once. Leave the column out."
)


def _real(batch: Seq2SeqBatch) -> Tensor:
    """True at labels that are not padding. *Shape:* :math:`(B,T)`."""
    if batch.target_lengths is None:
        raise DataError("This batch has no target; training and evaluation need one.")
    places = torch.arange(batch.labels.shape[1], device=batch.target_lengths.device)
    return places < batch.target_lengths[:, None]


def _cross_entropy(scores: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The sum of the smoothed losses, and of those without smoothing.

    Classes with a score of minus infinity, places that a source does not have, are none.
    """
    log_probs = scores.log_softmax(dim=1)
    nll = F.nll_loss(log_probs, labels, reduction="sum")
    if not smoothing:
        return nll, nll
    real = scores > -torch.inf
    uniform = -(log_probs.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1)).sum()
    return (1 - smoothing) * nll + smoothing * uniform, nll
