"""The base of tasks whose rows have typed columns: a subclass is a page.

It says which columns there are (a text processor), and the loss, metrics and answers of scores.
Batches, evaluation, prediction and what is refused come from here.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from textmill.config.component import setting
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.column_batch import ColumnBatch, collate_columns
from textmill.data.store.tokens import encoded_rows, kept_fingerprint
from textmill.errors import DataError, UserError
from textmill.exported.forward import Forward, RowForward
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.tasks.batches.row_batches import RowBatches, check_batch, peek_first, rows_of
from textmill.tasks.batches.user_batches import ReadyBatches
from textmill.tasks.evaluation import inference
from textmill.tasks.label_checks import label_notes, unseen_note, unseen_rows
from textmill.tasks.pretrained_parts import check_own_ids
from textmill.tasks.task import AnsweredConfig, Batches, Loss, Outputs, Row, Task
from textmill.text.cells import RowCheck, Rows
from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import DictionaryColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.processors.column_processor import WEIGHTS, ColumnsText
from textmill.text.processors.text_processor import Encoded, TextProcessor

LOG = logging.getLogger("textmill")

PREDICTION_TOKENS = 4096
"""Padded tokens answered together."""
OF_SAMPLE = 3
"""Tells which rows a run learns from apart from what else its seed decides."""
IN_PARTS = "Give a longer text in parts: the trained model's limit stays."
"""What to do about a row to predict, when settings can no longer be changed."""


class ColumnsTask(Task):
    """A task over rows of typed columns.

    A subclass makes ``self.text`` and has :meth:`loss` and :meth:`answers`, and where answers are
    measured ``answer_metrics`` and ``measure``; and :meth:`scores` where its module is called in
    another way.
    """

    class Config(AnsweredConfig):
        over_length: Literal["truncate", "skip", "error"] = "truncate"
        """What happens to a row with more tokens than the model takes: truncate cuts it, in
        prediction too; skip leaves it out of training and evaluation, and counts it; error refuses
        it."""
        sample_rate: float = 1.0
        """Share of the training rows that the run learns from, drawn by its seed: runs of other
        seeds have other rows, as members of an ensemble should (bagging)."""
        weight: str | None = None
        """The column of each row's weight, 0 or more: a row of weight 2 counts in the loss and in
        metrics as if it were there twice; null: each row counts once."""

        def row_check(self, labels: Any = None) -> RowCheck | None:
            """The check that a row must pass, or it counts as a bad row; None for no check.

            It knows settings alone, not what is fitted on rows, such as which labels there are.
            """
            return None

    text: ColumnsText
    length_settings: ClassVar[str] = "task.max_length (and the model's)"
    """What allows for longer rows, in words."""

    @property
    def raised_settings(self) -> str:
        several = any(c.limit and isinstance(c, TextsColumn) for c in self.text.all.values())
        return "task.max_texts" if several else self.length_settings

    def __init__(self, config: Config, *, module: torch.nn.Module) -> None:
        self.config, self.module = config, module
        if not 0 < config.sample_rate <= 1:
            raise UserError(
                f"task.sample_rate must be above 0 and at most 1, but is {config.sample_rate}."
            )

    @override
    def use_text(self, text: TextProcessor) -> None:
        settings = {name: getattr(self.text, name) for name in self.text.answer_settings}
        super().use_text(text)
        for name, value in settings.items():
            setattr(self.text, name, value)
        self.check_lengths()

    def check_lengths(self) -> None:
        """Refuses texts longer than the module takes: training would fail at the first of them."""
        encoders = [m for m in self.module.modules() if isinstance(m, SequenceEncoder)]
        most = min((m.max_length for m in encoders if m.max_length is not None), default=None)
        raised = any(hasattr(m.config, "max_length") for m in encoders)
        rather = ", or raise model.encoder.max_length" if raised else ""
        for column in self.text.all.values():
            length = column.length if isinstance(column, TextsColumn) else 0
            limit = max(column.limit or 0, length)
            if most is not None and limit > most:
                raise UserError(
                    f"A text in '{column.name}' may have {limit} "
                    f"{'tokens' if limit == length else column.unit}, but the module's encoder "
                    f"takes at most {most}. "
                    f"Set task.max_length={most}{rather}."
                )

    # -- from a batch to scores, a loss and answers

    def scores(self, batch: ColumnBatch) -> Any:
        """What the module makes of a batch, which is on the module's device.

        The module is called with :meth:`inputs`: ``module(text, lengths, dense=...)``.
        """
        texts, beside = self.inputs(batch)
        return self.module(*texts, **beside)

    def inputs(self, batch: ColumnBatch) -> tuple[list[Tensor], dict[str, Tensor]]:
        """What the module is called with: texts by position, what stands beside them by name.

        Of each text these are the ids and the lengths, in the order of the roles.
        """
        texts, beside = list[Tensor](), dict[str, Tensor]()
        for role, column in self.text.all.items():
            if isinstance(column, IdsColumn) and not column.shares:
                if role in self.text.inputs or role in batch:
                    texts += [batch[role], batch.lengths[role]]
            elif role in self.text.inputs:
                beside[role] = batch[role]
        return texts, beside

    def with_weights(self, targets: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of targets, and those of weights that the settings name."""
        named = {role: getattr(self.config, role, None) for role in WEIGHTS}
        return {**targets} | {
            role: NumberColumn(name, least=0.0) for role, name in named.items() if name
        }

    def weights(self, batch: ColumnBatch, role: str = "weight") -> Tensor | None:
        """The weight of each row; None if all count alike. *Shape:* :math:`(B)`."""
        return batch[role] if role in self.text.targets else None

    @abstractmethod
    def loss(self, scores: Any, batch: ColumnBatch) -> Loss:
        """The loss of a batch's scores: a sum over its targets, with their count."""

    @abstractmethod
    def answers(self, scores: Any, batch: ColumnBatch) -> list[Any]:
        """The typed answer to each row of a batch."""

    def averaged(self, members: Sequence[Any], scores: Sequence[Any]) -> Any:
        """Scores whose answers are the mean of those of an ensemble's members.

        Args:
            members: Tasks of this one's kind with the same labels.
            scores: What each of them makes of a batch.
        """
        raise NotImplementedError

    # -- what an export computes

    @property
    def exported_forward(self) -> Forward:
        """How an export answers from :meth:`exported_outputs`, without torch."""
        return RowForward()

    def exported_outputs(self, batch: ColumnBatch) -> tuple[Tensor, ...]:
        """What an exported graph of the task gives of a batch; without it there is no export."""
        raise UserError(
            f"A {type(self).__name__} cannot be exported: it has no method "
            "exported_outputs(batch), which says what its text processor decodes."
        )

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        if isinstance(data, Batches):
            return data
        self.check_lengths()
        check_own_ids(self.module, self.text)
        if self.config.weight is not None and "weight" not in self.text.targets:
            raise UserError(
                f"task.weight: {type(self).__name__} has no weights of rows. Leave it out."
            )
        first, data = peek_first(data)
        # Cells may be lists: only a tensor in a column of the task tells a batch from a row.
        cells = (
            [first.get(name) for name in self.text.columns] if isinstance(first, Mapping) else []
        )
        if isinstance(first, Mapping) and not any(isinstance(cell, Tensor) for cell in cells):
            return self._encoded(data, train=train, seed=seed)
        check_batch(self, first, ColumnBatch, train=train)
        return ReadyBatches(data, self.read_batch, seed=seed)

    def read_batch(self, batch: Any) -> list[dict[str, Any]]:
        """The rows of a ready batch, with the cells that its columns can be read back to."""
        rows: list[dict[str, Any]] = [{} for _ in range(self.batch_size(batch))]
        texts: Sequence[Any] = ()
        for role, column in self.text.all.items():
            if not (isinstance(batch, ColumnBatch) and role in batch):
                continue
            encoded: Any = batch[role].cpu().numpy()
            if role in batch.lengths:
                ends = batch.lengths[role].tolist()
                encoded = [row[:end] for row, end in zip(encoded, ends, strict=True)]
            cells = column.cells(encoded, texts)
            texts = texts or cells
            if len(cells):
                for row, cell in zip(rows, cells, strict=True):
                    row[column.name] = cell
        return rows

    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        """Notes on the rows to train on or to evaluate, by a name for each.

        Rows that cannot be used are refused with a DataError.
        """
        return {}

    def _encoded(self, data: Iterable[Row], *, train: bool, seed: int) -> RowBatches:
        rows, batching = rows_of(data, train=train)
        details = dict[str, str]()
        encoded = self._with_labels(data, rows, details, counted=self.counts_unseen and not train)
        if train:
            self._say_known(encoded)
            for note in label_notes(self.text, encoded):
                self.notes = [*self.notes, note]
                LOG.warning(note)
        kept: NDArray[np.int64] | None = None
        if len(over := encoded.over_length):
            self._over_length(over, len(rows), details)
            if self.config.over_length == "skip":
                kept = np.delete(np.arange(len(rows)), over)
            else:
                encoded = self.text.cut(encoded)
        if train and self.config.sample_rate < 1:
            taken = sampled(len(rows), self.config.sample_rate, seed=seed)
            kept = taken if kept is None else np.intersect1d(kept, taken)
            self.note(f"Learns from {len(kept):,} of {len(rows):,} rows.", logging.INFO)
        batches = self._epochs(encoded, batching, seed=seed, rows=kept)
        for name, note in self.row_notes(rows, train=train).items():
            self._warn(note, details, name)
        return RowBatches(batches, rows, details=details)

    @property
    def counts_unseen(self) -> bool:
        """Whether rows that are evaluated may have labels that training has not seen."""
        config = self.config
        return isinstance(config, UnseenLabelsConfig) and config.unseen_labels == "wrong"

    def _with_labels(
        self, data: Iterable[Row], rows: Sequence[Row], details: dict[str, str], *, counted: bool
    ) -> Encoded:
        """Encodes rows; labels that training has not seen are counted, or refused as bad values.

        They are refused, too, where no row has another: it is another column, most likely.
        """
        text = self.text.with_unseen() if counted else self.text
        encoded = encoded_rows(text, rows, kept_fingerprint(data, self.text))
        unseen = unseen_rows(self.text, encoded)
        if unseen and not (counted and all((encoded[role].values >= 0).any() for role in unseen)):
            return encoded_rows(self.text, rows, None)
        if unseen:
            self._warn(unseen_note(self.text, unseen, rows), details, "unseen_labels")
        return encoded

    def _say_known(self, encoded: Encoded) -> None:
        """Says how many words a dictionary knows: a file of other words would be of no effect."""
        column = self.text.inputs.get("dictionary")
        if not isinstance(column, DictionaryColumn):
            return
        known, words = column.known(encoded["dictionary"]), encoded[column.text].lengths.sum()
        note = f"The dictionary knows {known:,} of {words:,} words."
        self.note(note, logging.INFO if known else logging.WARNING)

    def _over_length(self, over: NDArray[np.int64], count: int, details: dict[str, str]) -> None:
        if self.config.over_length == "error":
            raise DataError(
                f"{self._rows_over(over, count)} Raise {self.raised_settings}, or let them be cut "
                "or left out: task.over_length=truncate, task.over_length=skip."
            )
        done = "left out" if self.config.over_length == "skip" else "cut"
        self._warn(
            f"{len(over)} of {count} rows {done}: more than {self.text.limits_in_words}.",
            details,
            "over_length",
        )

    def _warn(self, note: str, details: dict[str, str], name: str) -> None:
        """Notes something about rows: in the log, in the run's notes, and beside its values."""
        details[name] = note
        self.note(note)

    def _rows_over(self, over: NDArray[np.int64], count: int) -> str:
        listed = ", ".join(map(str, over[:20].tolist())) + (", ..." if len(over) > 20 else "")
        most = self.text.limits_in_words
        return f"{len(over)} of {count} rows have more than {most}: rows {listed} (from 0)."

    def _epochs(
        self,
        encoded: Encoded,
        batching: Batching,
        *,
        seed: int,
        rows: NDArray[np.int64] | None = None,
    ) -> EpochBatches[ColumnBatch]:
        kinds = self.text.all
        # Batches are of rows of like length; what has one length in all rows says nothing.
        by_length = {r for r, k in kinds.items() if k.sorted and not k.single and k.width == 1}
        varying = {role: c for role, c in encoded.items() if role in by_length}
        batching = replace(batching, by_length=bool(varying))

        def collate(indices: NDArray[np.int64]) -> ColumnBatch:
            return collate_columns(encoded, kinds, indices)

        return EpochBatches(varying or dict(encoded), batching, collate, seed=seed, rows=rows)

    @override
    def training_step(self, batch: ColumnBatch, examples: Rows = ()) -> Loss:
        batch = batch.to(self.device, non_blocking=True)
        return self.loss(self.scores(batch), batch)

    @override
    def validation_step(self, batch: ColumnBatch, examples: Sequence[Mapping[str, Any]]) -> Outputs:
        batch = batch.to(self.device)
        scores = self.scores(batch)
        answers = zip(self.answers(scores, batch), examples, strict=True)
        completed = [self.text.completed(answer, row) for answer, row in answers]
        return Outputs(self.loss(scores, batch).detach(), dict(enumerate(completed)))

    @override
    def predict(self, rows: Sequence[Row]) -> list[Any]:
        """Answers to rows without targets, in order; batches are sorted by length inside."""
        if not rows:
            return []
        encoded = self.text.encode(rows, with_targets=False)
        if len(encoded.over_length):
            if self.config.over_length == "error":
                too_long = self._rows_over(encoded.over_length, len(rows))
                raise DataError(f"{too_long} {IN_PARTS}")
            encoded = self.text.cut(encoded)
        batching = Batching(max_tokens=PREDICTION_TOKENS, shuffle=False)

        found: dict[int, Any] = {}
        with inference(self.module):
            for batch in self._epochs(encoded, batching, seed=0):
                answers = self.answers(self.scores(batch.to(self.device)), batch)
                assert batch.rows is not None, "batches cut out of rows know their numbers"
                for i, answer in zip(batch.rows.tolist(), answers, strict=True):
                    found[i] = self.text.completed(answer, rows[i])
        return [found[i] for i in range(len(rows))]

    @override
    def check(self, row: Row) -> None:
        over = self.text.encode([row], with_targets=False).over_length
        if len(over) and self.config.over_length == "error":
            raise DataError(
                "The row has more tokens than the model takes: "
                f"{self.text.limits_in_words}. {IN_PARTS}"
            )

    @property
    @override
    def predict_checks(self) -> bool:
        own = type(self)  # what a subclass refuses, or answers, is its own affair
        return own.check is ColumnsTask.check and own.predict is ColumnsTask.predict


class UnseenLabelsConfig(ColumnsTask.Config):
    """Settings of tasks whose answers are labels."""

    unseen_labels: Literal["wrong", "error"] = setting("wrong", in_key=False)
    """What happens to an evaluated row with a label or slot that training has not seen: wrong
    counts it as answered wrongly, leaves it out of the loss, and prints how many there are; error
    refuses it, as in training."""


def sampled(count: int, rate: float, *, seed: int) -> NDArray[np.int64]:
    """The numbers of the rows that a run of this seed draws; each row is drawn for itself."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, OF_SAMPLE])))
    return np.flatnonzero(random.random(count) < rate)
