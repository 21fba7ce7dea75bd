"""What a run learns from: sources, each a task with its data, and the batches that a step takes.

A run of one task has one source. Of several, each step takes its batches from one that is drawn, or
from all; which one is a function of the seed and the step, so nothing of it is saved.
"""

import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from textmill.checkpoint.parts import Stateful
from textmill.data.batching import Filler
from textmill.data.column_batch import ColumnBatch
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.errors import DataError, UserError
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import fold
from textmill.tasks.batches.device import Transfer
from textmill.tasks.batches.row_batches import ComparedRows
from textmill.tasks.batches.user_batches import known_length
from textmill.tasks.several.multitask import Multitask, TaskSource, part_name
from textmill.tasks.task import Batches, BatchRows, KnownBatches, Loss, loss_of
from textmill.training.progress import Progress
from textmill.training.trainer_config import TrainerConfig

LOG = logging.getLogger("textmill")
_END = object()


class TakenBatch(NamedTuple):
    """A batch of a step, which knows the source that it is of."""

    batch: Any
    source: "OpenSource"
    counted: bool = True
    """Whether its rows are this rank's. Else they only keep it at work beside the others."""

    @property
    def rows(self) -> BatchRows:
        """Its rows, read when they are first looked at."""
        return BatchRows(self.source.groups.data, self.batch)

    @property
    def size(self) -> int:
        """How many they are; 0 of those that are another rank's."""
        return self.source.task.batch_size(self.batch) if self.counted else 0

    def loss(self) -> Loss:
        return loss_of(self.source.task, self.batch, self.rows)


class Group(NamedTuple):
    """What one optimizer step takes of a source."""

    source: "OpenSource"
    batches: list[TakenBatch]
    """Those that this rank has rows of, or is kept at work with."""
    weight: float = 1.0
    """What the mean loss counts in a step of several groups."""


class Groups:
    """An endless, resumable iterator over groups of up to ``size`` batches, none across epochs.

    A batch that is None is one of which this rank has no row; it counts as any other.

    It reads one batch ahead, to know an epoch's end when it comes; its state is that of the data
    before the batch ahead, so nothing read ahead is lost or repeated.
    """

    def __init__(self, data: Batches, *, size: int, device: str | torch.device = "cpu") -> None:
        self.data, self.size = data, size
        self.transfer = Transfer(device)
        self.epochs, self.taken = 0, 0
        self._iterator: Iterator[Any] | None = None
        self._ahead: Any = None
        self._state = data.state_dict()

    def __next__(self) -> list[Any]:
        if self._iterator is None:
            self._begin()
        batches = [self._take()]
        while self._iterator is not None and len(batches) < self.size:
            batches.append(self._take())
        self.taken = 0 if self._iterator is None else self.taken + len(batches)
        return [batch for batch in batches if batch is not None]

    @property
    def position(self) -> float:
        """Epochs completed, with the part of the one at hand where its length is known."""
        if (length := known_length(self.data)) is None:
            return float(self.epochs)
        # The length of an epoch of very many rows is an estimate, which the last batches may pass.
        return self.epochs + min(1.0, self.taken / max(1, length))

    def _take(self) -> Any:
        taken = self.transfer.receive(self._ahead)
        self._advance()
        return taken

    def _begin(self) -> None:
        """Goes on with the epoch; data resumed just at an epoch's end may need a second try."""
        epochs = self.epochs
        for _ in range(2):
            self._iterator = iter(self.data)
            self._advance()
            if self._iterator is not None:
                self.epochs = epochs
                return
        raise DataError("train_data gave no batch in a whole epoch; there is nothing to train on.")

    def _advance(self) -> None:
        """Reads the next batch ahead; at the epoch's end there is none: the iterator is dropped."""
        assert self._iterator is not None
        self._state = self.data.state_dict()
        self._ahead = next(self._iterator, _END)
        if self._ahead is _END:
            self._iterator = None
            self.epochs += 1
            self._state = self.data.state_dict()
        self._ahead = self.transfer.send(self._ahead)

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "taken": self.taken, "data": self._state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        place = Progress.saved(steps=state["taken"], epochs=state["epochs"])  # refuses what is none
        self.epochs, self.taken, self._state = place.epochs, place.steps, state["data"]
        self.data.load_state_dict(state["data"])
        self._iterator = None


class OpenSource:
    """A source whose batches are made; of many ranks each has its share of them.

    Where ranks compute ``together``, or the loss compares rows, it has a part of each batch that is
    trained on.
    """

    def __init__(
        self, config: TrainerConfig, source: TaskSource, *, ranks: Ranks, together: bool
    ) -> None:
        self.name, self.task, self.metric = source.name, source.task, source.metric
        compared: ComparedRows | None = getattr(self.task, "compared_rows", None)

        def made(name: str, data: Iterable[Any], *, train: bool = True) -> Batches:
            name = f"{name} of {self.name}" if self.name else name
            batches = self.task.batches_of(name, data, train=train, seed=config.seed)
            if compared is not None and not train:
                return whole_batches(batches, ranks)
            # A rank that takes no part in a step would let those wait that do.
            fill = together or (compared is not None and isinstance(batches, KnownBatches))
            if not train or compared is not None:
                return shared_batches(batches, ranks, fill=train and fill)
            return shared_batches(batches, ranks, fill=fill, accumulate=config.accumulate)

        self.train = None if source.train_data is None else made("train_data", source.train_data)
        """What is learnt from, if anything."""
        divided = ranks.size > 1 and not isinstance(self.train, SharedBatches)
        self.compared = compared if divided else None
        """What compares rows of a batch that is divided among several ranks, if anything does."""
        if self.train is not None:
            self.groups = Groups(self.train, size=config.accumulate, device=ranks.env.device)
        self.valid, self.test = (
            None if data is None else made(name, data, train=False)
            for name, data in (("valid_data", source.valid_data), ("test_data", source.test_data))
        )

    @property
    def size(self) -> int | None:
        """Batches of an epoch, where they are known."""
        return known_length(self.groups.data)

    def take(self, weight: float = 1.0) -> Group:
        batches = []
        for batch in next(self.groups):
            counted = not isinstance(batch, Filler)
            batches.append(TakenBatch(batch if counted else batch.batch, self, counted))
        return Group(self, batches, weight)


class Sources:
    """The sources of a run: those of several tasks, which come with them, else the one of a task.

    ``data`` is what that one learns from and is measured on, by the names of :class:`TaskSource`.
    """

    def __init__(
        self, config: TrainerConfig, task: Any, *, ranks: Ranks, together: bool, **data: Any
    ) -> None:
        self.config, self.task = config, task if isinstance(task, Multitask) else None
        sources = [TaskSource(task=task, **data)] if self.task is None else self.task.sources
        self.measured = [OpenSource(config, s, ranks=ranks, together=together) for s in sources]
        """All of them; some may be measured alone."""
        self.all = [source for source in self.measured if source.train is not None]
        """Those that are learnt from."""
        if self.task is not None:
            self._check(self.task)

    def _check(self, task: Multitask) -> None:
        if self.config.initialize is not None:
            raise UserError(
                "trainer.initialize fills the module of one task, and this run has several. Begin "
                "with a pretrained encoder (model.encoder.path), or train each task on its own."
            )
        unknown = [source.name for source in self.all if source.size is None]
        if unknown and self.config.until.steps is None:
            raise UserError(
                f"How many batches {unknown[0]}.train_data has is not known, so neither is how "
                "long the run is: set trainer.max_steps."
            )
        if unknown and task.config.steps == "one" and not task.alike:
            raise UserError(
                f"How many batches {unknown[0]}.train_data has is not known, so neither is how "
                "often it is to be drawn: set task.size_power=0, and task.weights."
            )

    @property
    def length(self) -> int | None:
        """Batches of an epoch, where they are known; those of several sources together."""
        sizes = [source.size for source in self.all]
        together = len(sizes) if self.task is not None and self.task.config.steps == "all" else 1
        return None if None in sizes else -(-sum(filter(None, sizes)) // together)

    def groups(self, step: int, total: int | None) -> list[Group]:
        """The batches of a step, from 1, that this rank has rows of: of one source, or of each."""
        if self.task is None:
            return [self.first.take()]
        if self.task.config.steps == "all":
            return [source.take(self.task.weight(source.name)) for source in self.all]
        sizes = {source.name: source.size or 1 for source in self.all}
        weights = self.task.draws(sizes, 0.0 if total is None else min(1.0, step / total))
        draw = random.Random(fold(self.config.seed, "source", step))  # noqa: S311  # no secret
        return [draw.choices(self.all, weights)[0].take()]

    @property
    def first(self) -> OpenSource:
        return self.all[0]

    @property
    def data(self) -> Batches:
        return self.first.groups.data

    @property
    def epochs(self) -> int:
        """Epochs completed; of several sources those of all their batches together."""
        groups = [source.groups for source in self.all]
        sizes = [source.size or 0 for source in self.all]
        if len(groups) == 1 or not all(sizes):
            return min(each.epochs for each in groups)
        each = zip(groups, sizes, strict=True)
        return sum(g.epochs * size + g.taken for g, size in each) // sum(sizes)

    @property
    def position(self) -> float:
        """The same with the part of the one at hand, where its length is known."""
        if len(self.all) == 1:
            return self.first.groups.position
        sizes = [source.size or 1 for source in self.all]
        each = zip(self.all, sizes, strict=True)
        return sum(source.groups.position * size for source, size in each) / sum(sizes)

    @property
    def parts(self) -> dict[str, Stateful]:
        return {part_name("data", source.name): source.groups for source in self.all}

    def held_out(self, split: str) -> list[tuple[OpenSource, Batches]]:
        """The sources that have data of ``valid`` or ``test``, with its batches."""
        found = [(source, getattr(source, split)) for source in self.measured]
        return [(source, batches) for source, batches in found if batches is not None]


class SharedBatches:
    """Batches that a recipe makes itself, and those of an evaluation whose loss compares rows.

    With ``accumulate``, a trainer's, a rank has every ``size``-th row of a batch that is one of
    textmill's. Of others it is not known what a row is: it has every ``size``-th batch. Of what it
    has no row of it gets None, or with ``fill`` a :class:`~textmill.data.batching.Filler`.
    """

    def __init__(
        self, batches: Batches, ranks: Ranks, *, fill: bool = False, accumulate: int = 0
    ) -> None:
        self.batches, self.rank, self.world_size = batches, ranks.env.rank, ranks.size
        self.fill, self.accumulate = fill, accumulate
        self._number, self._is_told = 0, False

    @property
    def epoch(self) -> int:
        return self.batches.epoch

    @property
    def details(self) -> Mapping[str, str]:
        details: Mapping[str, str] = getattr(self.batches, "details", {})
        return details

    def __len__(self) -> int:
        return len(self.batches)  # type: ignore[arg-type]  # a TypeError where it is not known

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            mine, shown = self._number % self.world_size == self.rank, batch
            if self.accumulate and isinstance(batch, ColumnBatch | Seq2SeqBatch):
                shown = batch.part(self.rank, self.world_size)
                mine = len(shown) > 0
                shown = shown if mine else batch.part(0, len(batch))
            elif self.accumulate:
                self._tell_idle()
            self._number += 1
            yield shown if mine else Filler(shown) if self.fill else None
        self._number = 0

    def _tell_idle(self) -> None:
        """Warns once where whole batches are shared and ranks are idle, or do the same work."""
        told, self._is_told = self._is_told, True
        ranks = f"{self.accumulate} of {self.world_size} ranks work in a step"
        if not told and self.fill:
            LOG.warning(
                "train_data gives ready batches of a type of its own, which ranks share whole, and "
                "each rank computes with all of them, since weights are divided among ranks or the "
                "recipe has wrapped its module: only memory is saved. Give rows, or textmill's "
                "batches."
            )
        elif not told and self.accumulate < self.world_size:
            LOG.warning(
                "train_data gives ready batches of a type of its own, which ranks share whole: "
                f"with trainer.accumulate={self.accumulate} only {ranks}. Give rows, textmill's "
                f"batches, or set trainer.accumulate={self.world_size}."
            )

    def examples(self, batch: Any) -> Sequence[Mapping[str, Any]]:
        return self.batches.examples(batch)

    def state_dict(self) -> dict[str, Any]:
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._number = int(state.get("position", 0))
        self.batches.load_state_dict(state)


def shared_batches(
    batches: Batches, ranks: Ranks, *, fill: bool = False, accumulate: int = 0
) -> Batches:
    """The share of this rank, in the order that one rank alone would have: by rows where known.

    A batch of which the rank has no row is None; with ``fill`` a part of it that does not count.
    """
    if isinstance(batches, KnownBatches) and ranks.size > 1:
        return batches.share(ranks.env.rank, ranks.size, fill=fill)
    return whole_batches(batches, ranks, fill=fill, accumulate=accumulate)


def whole_batches(batches: Batches, ranks: Ranks, **how: Any) -> Batches:
    """The share of this rank, as :class:`SharedBatches` have it."""
    return batches if ranks.size == 1 else SharedBatches(batches, ranks, **how)
