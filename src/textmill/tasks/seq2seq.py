"""Sequence to sequence: text in, text out, by an encoder-decoder trained with cross-entropy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from textmill.config.validators import require
from textmill.data.seq2seq_batch import Seq2SeqBatch, collate_seq2seq
from textmill.errors import DataError, UserError
from textmill.exported.seq2seq import translated
from textmill.metrics.metric import Metric
from textmill.metrics.streaming import Accuracy, Perplexity
from textmill.models import fast
from textmill.models.decoding import Decoding, decode
from textmill.models.decoding.search_state import Generator
from textmill.models.losses import CrossEntropy, cross_entropy, projected_cross_entropy
from textmill.tasks.batches.device import at_places, real_places
from textmill.tasks.batches.row_batches import RowBatches, is_row
from textmill.tasks.rows_task import RowsTask
from textmill.tasks.task import Batches, Loss, Metrics, Outputs, Row
from textmill.text.answers import Translated
from textmill.text.cells import Rows
from textmill.text.columns.dictionary import Dictionary
from textmill.text.columns.inputs import columns_beside
from textmill.text.processors.seq2seq import (
    CHARACTERS_A_TOKEN,
    Seq2SeqText,
    prefix_ids,
    prefix_of,
    source_text,
)
from textmill.text.processors.text_processor import Encoded
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import Tokenizer

_GENERATES = {
    "max_length": "max_length",
    "encode": "encode(source, source_lengths) -> memory",
    "start": "start(memory) -> state",
    "step": "step(tokens, state) -> logits",
}


@runtime_checkable
class HiddenStates(Protocol):
    """A module in two halves, so that padding is never scored over the vocabulary."""

    def hidden(self, source: Tensor, source_lengths: Tensor, target_in: Tensor, /) -> Tensor:
        """The last states. *Shape:* :math:`(B,T,D)`."""

    def project(self, hidden: Tensor, /) -> Tensor:
        """Logits of some of them. *Shape:* :math:`(N,D)` to :math:`(N,V)`."""


@runtime_checkable
class LinearOutput(HiddenStates, Protocol):
    """One whose ``project`` is an affine map: its loss can be had without all scores at once."""

    output_weight: Tensor
    """*Shape:* :math:`(V,D)`."""
    output_bias: Tensor | None
    """*Shape:* :math:`(V)`."""


def generator_of(module: nn.Module) -> Generator:
    """The module as what searches read from."""
    if isinstance(module, Generator):
        return module
    missing = [text for name, text in _GENERATES.items() if not hasattr(module, name)]
    raise UserError(
        f"{type(module).__name__} can be trained, but generates no text: it has no "
        f"{', no '.join(missing)}. Generation needs these, where the state has select(indices), "
        "and repeat(times) and select(indices, groups=None) for beam search; "
        "textmill.models.Transformer has them all. Add them, or set task.generate=false to "
        "evaluate the loss alone."
    )


def longest_input(module: nn.Module) -> int | None:
    """The most tokens the module has positions for; None where it does not say."""
    longest = getattr(module, "max_length", None)
    return longest if isinstance(longest, int) else None


PREDICTION_TOKENS = 4096
"""Padded source tokens answered together."""


class Seq2Seq(RowsTask):
    """An encoder-decoder trained with label-smoothed cross-entropy; answers are generated text.

    To change the loss, override :meth:`loss`.
    """

    class Config(RowsTask.Config):
        label_smoothing: float = 0.1
        """Share of the target's probability spread over the vocabulary (Szegedy et al. 2016)."""
        max_source_length: int = 512
        """Longest source, in tokens with its end mark."""
        max_target_length: int = 512
        """Longest target, in tokens with its start and end marks."""
        over_length: Literal["error", "skip"] = "error"
        """What happens to a longer row in training and validation: error refuses it, skip leaves it
        out and counts it. In validation a row whose target alone is too long is left out of the
        loss only."""
        source_prefix: str = ""
        """Text that is put before every source, as ``"summarize: "``, which says to a T5 what is to
        be done."""
        decoding: Decoding = Decoding()
        """How answers are searched."""
        answer_prefix: str = ""
        """Text that every generated answer begins with; a row to predict can have its own in a
        column ``prefix``. It should end where a word does: what follows is a new piece."""

        def __post_init__(self) -> None:
            require(self, "task", shares=["label_smoothing"])

    config: Config
    text: Seq2SeqText
    batch_class = Seq2SeqBatch

    def __init__(
        self,
        config: Config,
        *,
        module: torch.nn.Module,
        tokenizer: Tokenizer,
        dictionary: Dictionary | None = None,
    ) -> None:
        super().__init__(config, module=module)
        beside = columns_beside("source", "source", {"dictionary": dictionary})
        source, target = config.max_source_length, config.max_target_length
        longest = longest_input(module)
        if longest is not None:  # of a target the last token is never read
            source, target = min(source, longest), min(target, longest + 1)
        self.text = Seq2SeqText(
            tokenizer,
            max_source_length=source,
            max_target_length=target,
            source_prefix=config.source_prefix,
            beside=self.with_weights(beside),
        )
        self.pad_idx = tokenizer.vocab_info.pad_idx
        self.eos_idx = tokenizer.vocab_info.eos_idx
        self.unk_idx = tokenizer.vocab_info.unk_idx

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """Batches of rows (encoded here) or of ready batches.

        Rows that have no ``batching`` of their own, as in a list, get the defaults of
        :class:`~textmill.data.batching.Batching`; ``BatchedRows`` sets another.
        """
        batches = super().batches(data, train=train, seed=seed)
        if not train and isinstance(batches, RowBatches):
            batches.rows = self.with_references(batches.rows)
        return batches

    @override
    def is_row(self, first: Any) -> bool:
        return is_row(first, self.text.columns)

    @override
    def within_limits(
        self, encoded: Encoded, details: dict[str, str], *, train: bool
    ) -> tuple[Encoded, NDArray[np.int64] | None]:
        """As in other tasks; but an evaluation keeps a row whose target alone is too long.

        The target is cut to its start mark, which leaves it without a label: the source is still
        translated, and compared with the text of the target.
        """
        sides = {side: encoded[side].lengths > limit for side, limit in self.text.limits.items()}
        cut = np.flatnonzero(sides["target"] & ~sides["source"])
        if train or self.config.over_length == "error" or not len(cut):
            return super().within_limits(encoded, details, train=train)
        ids = [row.tolist() for row in encoded["target"]]
        for row in cut:
            del ids[row][1:]
        self._warn(
            f"{len(cut)} of {encoded.num_rows} rows do not count in the loss: more than "
            f"{self.text.limits['target']} tokens of 'target'.",
            details,
            "loss",
        )
        kept = Encoded(
            {**encoded, "target": Ragged.from_lists(ids)}, np.flatnonzero(sides["source"])
        )
        return super().within_limits(kept, details, train=train)

    @override
    def collate(self, encoded: Encoded, rows: NDArray[np.int64]) -> Seq2SeqBatch:
        batch = collate_seq2seq(encoded, rows, self.pad_idx, self.text.beside)
        if batch.target is None or batch.target.shape[1] > 1:
            return batch
        # Only targets that do not count: the decoder still reads one position.
        return replace(batch, target=pad(batch.target, (0, 1), value=self.pad_idx))

    @property
    @override
    def remedy(self) -> str:
        longest, config = longest_input(self.module), getattr(self.module, "config", None)
        fixed = not hasattr(config, "max_length") or getattr(config, "pretrained", None)
        if longest is not None and fixed and longest <= self.config.max_source_length:
            return (
                f"The model has positions for {longest} tokens: leave these rows out with "
                "task.over_length=skip."
            )
        return (
            "Raise task.max_source_length and task.max_target_length (and model.max_length with "
            "them), or leave these rows out with task.over_length=skip."
        )

    @override
    def read_batch(self, batch: Any) -> list[dict[str, Any]]:
        if not isinstance(batch, Seq2SeqBatch):
            return [{} for _ in range(self.batch_size(batch))]
        sources = self.text.decode(batch.source.tolist())
        if batch.target is None:
            return [{"source": source} for source in sources]
        targets = self.text.decode(batch.target.tolist())
        pairs = zip(sources, targets, strict=True)
        return [{"source": source, "target": target} for source, target in pairs]

    @override
    def training_step(self, batch: Seq2SeqBatch, examples: Rows = ()) -> Loss:
        """Loss of one batch, over its real label positions only.

        Where :meth:`loss` is the library's and the module projects its states by a matrix, the
        scores of the labels are made and forgotten a few hundred at a time.
        """
        batch, module = batch.to(self.device, non_blocking=True), self.module
        own_loss = type(self).loss is not Seq2Seq.loss or type(self).logits is not Seq2Seq.logits
        splits = fast.now().split_loss and self.device.type == "cpu"
        weighted = batch.weights is not None
        if own_loss or weighted or not splits or not isinstance(module, LinearOutput):
            return self.loss(*self.logits(batch), *_weights(batch))
        target_in, labels, places = _shifted(batch)
        states = module.hidden(batch.source, batch.source_lengths, target_in, **batch.beside)
        states = states[places]
        sums = projected_cross_entropy(
            states,
            module.output_weight,
            module.output_bias,
            labels[places],
            label_smoothing=self.config.label_smoothing,
        )
        return _loss_of(sums, len(states))

    def logits(self, batch: Seq2SeqBatch) -> tuple[Tensor, Tensor]:
        """Logits, :math:`(N,V)`, and labels, :math:`(N)`, of all labels that are not padding."""
        target_in, labels, places = _shifted(batch)
        source, lengths, module = batch.source, batch.source_lengths, self.module
        labels = at_places(labels, places)
        if isinstance(module, HiddenStates):
            states = module.hidden(source, lengths, target_in, **batch.beside)
            return module.project(at_places(states, places)), labels
        logits = module(source, lengths, target_in, **batch.beside)
        found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        if not isinstance(found, tuple) or len(found) != 3 or found[:2] != target_in.shape:
            rows, length = target_in.shape
            raise UserError(
                f"{type(module).__name__}(source, source_lengths, target_in) must give logits of "
                f"shape ({rows}, {length}, vocabulary), but gave {found}."
            )
        return at_places(logits, places), labels

    def loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Loss:
        """The loss of labels; the one method to override for another loss.

        By default the label-smoothed cross-entropy summed over the labels, with their count;
        ``nll`` is the sum without smoothing. ``weights`` say how often each label counts.
        """
        smoothing = self.config.label_smoothing
        sums = cross_entropy(logits, targets, label_smoothing=smoothing, weights=weights)
        if weights is not None:
            return Loss(sums.total, sums.count, {"nll": sums.nll})
        return _loss_of(sums, len(targets))

    @override
    def validation_step(self, batch: Seq2SeqBatch, examples: Rows) -> Outputs:
        batch = batch.to(self.device)
        loss = self.measured_loss(batch).detach()
        answered = [i for i, example in enumerate(examples) if self.is_answered(example)]
        if not (self.generates and answered):
            return Outputs(loss)
        rows = torch.tensor(answered, device=batch.source.device)
        lengths = batch.source_lengths[rows]
        source = batch.source[rows][:, : int(lengths.max())]
        found = self.generate(source, lengths, **_beside(batch, rows))
        answers = self.complete(found, [examples[i] for i in answered])
        return Outputs(loss, dict(zip(answered, answers, strict=True)))

    def measured_loss(self, batch: Seq2SeqBatch) -> Loss:
        """The loss of one batch of an evaluation, with how many labels are ``correct``."""
        (logits, targets), weights = self.logits(batch), _weights(batch)
        loss = self.loss(logits, targets, *weights)
        right = logits.argmax(dim=-1) == targets
        correct = right.to(weights[0]) @ weights[0] if weights else right.sum()
        return Loss(loss.total, loss.count, {**loss.sums, "correct": correct})

    @override
    def loss_metrics(self) -> dict[str, Metric]:
        return {**super().loss_metrics(), "perplexity": Perplexity(), "accuracy": Accuracy()}

    @override
    def aggregate(self, metrics: Metrics, outputs: Outputs, examples: Rows) -> None:
        super().aggregate(metrics, outputs, examples)
        loss = outputs.loss
        metrics["perplexity"].update(loss.sums.get("nll", loss.total), loss.count)
        metrics["accuracy"].update(loss.sums["correct"], loss.count)

    @override
    def check_module(self, *, train: bool) -> None:
        if own := getattr(self.module, "own_task", None):
            raise UserError(
                f"A {type(self.module).__name__} does not score one token after another: set "
                f"task.type={own}, or model.type=transformer."
            )
        if not train and self.generates:
            generator_of(self.module)

    # -- answers, and what a subclass whose evaluation generates them says of them

    @property
    def generates(self) -> bool:
        return isinstance(self.config, GenerationConfig) and self.config.generate

    def text_metrics(self) -> dict[str, Metric]:
        """Fresh metrics of generated text; by default none."""
        return {}

    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        """Adds generated texts, and the rows they answer, to :meth:`text_metrics`."""

    def with_references(self, rows: Sequence[Row]) -> Rows:
        """The rows of an evaluation with what answers are scored against, beside the target."""
        return rows

    def is_answered(self, example: Mapping[str, Any]) -> bool:
        """Whether an evaluation generates an answer to this row."""
        return True

    @property
    def answer_settings(self) -> dict[str, Any]:
        """Settings that decide answers beside their search: what an export keeps of the task."""
        return {"answer_prefix": self.config.answer_prefix}

    def complete(self, answers: Sequence[Translated], rows: Rows) -> list[Translated]:
        """Answers as they are given, by the generated ones and the rows that they answer."""
        return list(answers)

    @override
    def answer_metrics(self) -> dict[str, Metric]:
        return self.text_metrics() if self.generates else {}

    @override
    def measured(self, answer: Callable[[Rows], Sequence[Translated]], rows: Rows) -> Metrics:
        rows = [row for row in self.with_references(rows) if self.is_answered(row)]
        metrics: Metrics = {**self.text_metrics(), **self.added_metrics()}
        self.add_answers(metrics, answer(rows), rows)
        return metrics

    @override
    def measure(self, metrics: Metrics, answers: Sequence[Translated], rows: Rows) -> None:
        self.score(metrics, [answer.text for answer in answers], rows)

    def generate(
        self,
        source: Tensor,
        source_lengths: Tensor,
        *,
        prefixes: Sequence[str] | None = None,
        beside: Mapping[str, Tensor] = {},
    ) -> list[Translated]:
        if prefixes is None:
            prefixes = [self.config.answer_prefix] * len(source)
        found = decode(
            generator_of(self.module),
            source.to(self.device),
            source_lengths.to(self.device),
            self.config.decoding,
            prefix=self.text.target_prefix,
            eos_idx=self.eos_idx,
            unk_idx=self.unk_idx,
            forced=prefix_ids(self.text, prefixes),
            beside={name: each.to(self.device) for name, each in beside.items()},
        )
        return translated(self.text, found)

    @override
    def answerable(self, rows: Sequence[Row]) -> Encoded:
        encoded = self.text.encode(rows, with_targets=False)
        if len(encoded.over_length):
            row = int(encoded.over_length[0])
            raise DataError(
                f"Row {row}, column 'source': has {int(encoded['source'].lengths[row])} tokens; "
                f"the model takes at most {self.text.limits['source']}."
            )
        return encoded

    @override
    def answers_to(self, batch: Seq2SeqBatch, rows: Rows) -> list[Translated]:
        """Generated texts, each of which begins with the row's ``prefix``, if it has one."""
        own, default = _beside(batch), self.config.answer_prefix
        prefixes = [prefix_of(row, default) for row in rows]
        if any(prefix != default for prefix in prefixes):  # a method of one's own may take none
            own["prefixes"] = prefixes
        return self.complete(self.generate(batch.source, batch.source_lengths, **own), rows)

    @override
    def check(self, row: Row) -> None:
        source = source_text(row)
        prefix_ids(self.text, [prefix_of(row, self.config.answer_prefix)])
        limit = self.text.limits["source"]
        # A token can stand for many characters, but not for this many: no need to encode to know.
        too_long = len(source) > CHARACTERS_A_TOKEN * limit
        if too_long or len(self.text.encode([row], with_targets=False).over_length):
            raise DataError(f"'source' is longer than the {limit} tokens the model takes.")


class GenerationConfig(Seq2Seq.Config):
    """Settings of tasks that are judged by the text they generate."""

    generate: bool = True
    """Whether evaluation generates text and scores it; else only the loss is measured."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metrics and not self.generate:
            raise UserError(
                "task.metrics measure generated texts, and task.generate=false generates none. "
                "Leave one of them out."
            )


def _shifted(batch: Seq2SeqBatch) -> tuple[Tensor, Tensor, Tensor]:
    """What the decoder reads, what it is scored on, and the places where that is no padding."""
    if batch.target is None or batch.target_lengths is None:
        raise DataError("This batch has no target; training and evaluation need one.")
    labels = batch.target[:, 1:]
    real = torch.arange(labels.shape[1], device=labels.device) < batch.target_lengths[:, None]
    return batch.target[:, :-1], labels, real_places(real, batch.num_labels)


def _weights(batch: Seq2SeqBatch) -> list[Tensor]:
    """The weight of each label that is no padding, :math:`(N)`; empty if all count alike."""
    _, labels, places = _shifted(batch)
    own = [] if batch.weights is None else [batch.weights[:, None].expand_as(labels)]
    return [at_places(each, places) for each in own]


def _beside(batch: Seq2SeqBatch, rows: Tensor | None = None) -> dict[str, Any]:
    """What generation gets of some rows beside their sources; nothing if there is nothing."""
    some = slice(None) if rows is None else rows
    return {"beside": {n: each[some] for n, each in batch.beside.items()}} if batch.beside else {}


def _loss_of(sums: CrossEntropy, count: int) -> Loss:
    """The count comes from a shape: reading the one in ``sums`` would wait for the device."""
    return Loss(sums.total, torch.tensor(float(count)), {"nll": sums.nll.detach()})
