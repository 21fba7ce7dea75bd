"""The base of tasks that read all rows before the first step: batches, lengths, answers to rows."""

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
from textmill.data.column_batch import ColumnBatch
from textmill.data.store.tokens import encoded_rows, kept_fingerprint
from textmill.errors import DataError, UserError
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.tasks.batches.row_batches import RowBatches, check_batch, peek_first, rows_of
from textmill.tasks.batches.user_batches import ReadyBatches
from textmill.tasks.evaluation import inference
from textmill.tasks.label_checks import label_notes, unseen_note, unseen_rows
from textmill.tasks.pretrained_parts import check_own_ids
from textmill.tasks.task import AnsweredConfig, Batches, Row, Task
from textmill.text.cells import RowCheck, Rows
from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import DictionaryColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.texts import TextsColumn
from textmill.text.processors.column_processor import WEIGHTS, ColumnsText
from textmill.text.processors.text_processor import Encoded

LOG = logging.getLogger("textmill")

PREDICTION_TOKENS = 4096
"""Padded tokens answered together."""
OF_SAMPLE = 3
"""Tells which rows a run learns from apart from what else its seed decides."""
IN_PARTS = "Give a longer text in parts: the trained model's limit stays."
"""What to do about a row to predict, when settings can no longer be changed."""


class RowsTask(Task):
    """Base of tasks whose rows are encoded before the first step, in columns."""

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
    batch_class: ClassVar[type[Any]] = ColumnBatch
    """What its batches are."""
    length_settings: ClassVar[str] = "task.max_length (and the model's)"
    """What allows for longer rows, in words."""

    @property
    def raised_settings(self) -> str:
        several = any(c.limit and isinstance(c, TextsColumn) for c in self.text.all.values())
        return "task.max_texts" if several else self.length_settings

    @property
    def remedy(self) -> str:
        """What to do about rows that are too long, in a sentence."""
        return (
            f"Raise {self.raised_settings}, or let them be cut or left out: "
            "task.over_length=truncate, task.over_length=skip."
        )

    def __init__(self, config: Config, *, module: torch.nn.Module) -> None:
        self.config, self.module = config, module
        if not 0 < config.sample_rate <= 1:
            raise UserError(
                f"task.sample_rate must be above 0 and at most 1, but is {config.sample_rate}."
            )

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

    def with_weights(self, targets: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of targets, and those of weights that the settings name."""
        named = {role: getattr(self.config, role, None) for role in WEIGHTS}
        return {**targets} | {
            role: NumberColumn(name, least=0.0) for role, name in named.items() if name
        }

    @override
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        self.check_module(train=train)
        if isinstance(data, Batches):
            return data
        if self.config.weight is not None and "weight" not in self.text.targets:
            raise UserError(
                f"task.weight: {type(self).__name__} has no weights of rows. Leave it out."
            )
        first, data = peek_first(data)
        if self.is_row(first):
            return self._of_rows(data, train=train, seed=seed)
        check_batch(self, first, self.batch_class, train=train)
        return ReadyBatches(data, self.read_batch, seed=seed)

    def check_module(self, *, train: bool) -> None:
        """Refuses a module that the task cannot train, or answer with."""
        self.check_lengths()
        check_own_ids(self.module, self.text)

    def is_row(self, first: Any) -> bool:
        """Whether the first item of data is a row, and not a ready batch."""
        # Cells may be lists: only a tensor in a column of the task tells a batch from a row.
        is_mapping = isinstance(first, Mapping)
        return is_mapping and not any(isinstance(first.get(c), Tensor) for c in self.text.columns)

    @abstractmethod
    def read_batch(self, batch: Any) -> list[dict[str, Any]]:
        """The rows of a ready batch, with the cells that its columns can be read back to."""

    def row_notes(self, rows: Sequence[Row], *, train: bool) -> dict[str, str]:
        """Notes on the rows to train on or to evaluate, by a name for each.

        Rows that cannot be used are refused with a DataError.
        """
        return {}

    def _of_rows(self, data: Iterable[Row], *, train: bool, seed: int) -> RowBatches:
        rows, batching = rows_of(data, train=train)
        details = dict[str, str]()
        encoded = self._with_labels(data, rows, details, counted=self.counts_unseen and not train)
        if train:
            self._say_known(encoded)
            for note in label_notes(self.text, encoded):
                self.notes = [*self.notes, note]
                LOG.warning(note)
        encoded, kept = self.within_limits(encoded, details, train=train)
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
        known, words = (
            column.known(encoded["dictionary"]),
            column.words(encoded, self.text.all).sum(),
        )
        note = f"The dictionary knows {known:,} of {words:,} words."
        self.note(note, logging.INFO if known else logging.WARNING)

    def within_limits(
        self, encoded: Encoded, details: dict[str, str], *, train: bool
    ) -> tuple[Encoded, NDArray[np.int64] | None]:
        """Cuts rows that are too long, or refuses them; or the rows without them, None for all."""
        over, count, how = encoded.over_length, encoded.num_rows, self.config.over_length
        if not len(over):
            return encoded, None
        if how == "error":
            raise DataError(f"{self._rows_over(over, count)} {self.remedy}")
        done = "left out" if how == "skip" else "cut"
        note = f"{len(over)} of {count} rows {done}: more than {self.text.limits_in_words}."
        self._warn(note, details, "over_length")
        if how == "truncate":
            return self.text.cut(encoded), None
        return encoded, np.delete(np.arange(count), over)

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
    ) -> EpochBatches[Any]:
        kinds = self.text.all
        # Batches are of rows of like length; what has one length in all rows says nothing.
        by_length = {r for r, k in kinds.items() if k.sorted and not k.single and k.width == 1}
        varying = {role: c for role, c in encoded.items() if role in by_length}
        batching = replace(batching, by_length=bool(varying))

        def collate(numbers: NDArray[np.int64]) -> Any:
            return self.collate(encoded, numbers)

        return EpochBatches(varying or dict(encoded), batching, collate, seed=seed, rows=rows)

    @abstractmethod
    def collate(self, encoded: Encoded, rows: NDArray[np.int64]) -> Any:
        """A batch of some rows."""

    @override
    def predict(self, rows: Sequence[Row]) -> list[Any]:
        """Answers to rows without targets, in order; batches are sorted by length inside."""
        if not rows:
            return []
        batching = Batching(max_tokens=PREDICTION_TOKENS, shuffle=False)
        found: dict[int, Any] = {}
        with inference(self.module):
            for batch in self._epochs(self.answerable(rows), batching, seed=0):
                numbers = batch.rows.tolist()
                answers = self.answers_to(batch, [rows[number] for number in numbers])
                found.update(zip(numbers, answers, strict=True))
        return [found[number] for number in range(len(rows))]

    def answerable(self, rows: Sequence[Row]) -> Encoded:
        """Rows to predict, encoded; those that are too long are cut or refused."""
        encoded = self.text.encode(rows, with_targets=False)
        if len(over := encoded.over_length) and self.config.over_length == "error":
            raise DataError(f"{self._rows_over(over, len(rows))} {IN_PARTS}")
        return self.text.cut(encoded) if len(over) else encoded

    @abstractmethod
    def answers_to(self, batch: Any, rows: Rows) -> list[Any]:
        """Answers to a batch of rows without targets, which is not on the device yet."""


class UnseenLabelsConfig(RowsTask.Config):
    """Settings of tasks whose answers are labels."""

    unseen_labels: Literal["wrong", "error"] = setting("wrong", in_key=False)
    """What happens to an evaluated row with a label or slot that training has not seen: wrong
    counts it as answered wrongly, leaves it out of the loss, and prints how many there are; error
    refuses it, as in training."""


def sampled(count: int, rate: float, *, seed: int) -> NDArray[np.int64]:
    """The numbers of the rows that a run of this seed draws; each row is drawn for itself."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, OF_SAMPLE])))
    return np.flatnonzero(random.random(count) < rate)
