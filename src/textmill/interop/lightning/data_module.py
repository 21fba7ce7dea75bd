"""The data of a recipe as a LightningDataModule: the same batches, in our loop's order."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.planning.overrides import Overrides
from textmill.config.recipe import Recipe
from textmill.interop.lightning.bases import lightning_class, made_from
from textmill.interop.lightning.prepared import Prepared, prepare
from textmill.tasks.task import Batches, Task
from textmill.text.cells import Rows

_END = object()


def as_datamodule(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
) -> Any:
    """Makes the LightningDataModule of a recipe, whose data is read and whose task is built.

    The arguments are those of :func:`textmill.runs.train.train`.

    Returns:
        A :class:`RecipeData` that is a LightningDataModule, too. Its ``task`` is what
        :func:`~textmill.interop.lightning.task_module.as_module` takes, or it itself.

    Raises:
        PlanError: Something is wrong with the recipe; it lists everything.
        MissingExtraError: Lightning is not installed.

    Example:
        >>> data = as_datamodule("classification/docnn/local")  # doctest: +SKIP
        >>> next(iter(data.train_dataloader())).size  # doctest: +SKIP
        32
    """
    lightning_class("LightningDataModule")  # before anything is read
    made = prepare(recipe, overrides, configs=configs, allow_code=allow_code, device=device)
    hooks = RecipeData if made.trainer.test is None else TestedRecipeData
    return made_from(hooks, "LightningDataModule")(made)


@dataclass(frozen=True)
class HeldOutBatch:
    """A batch to evaluate, with its rows as a person reads them."""

    batch: Any
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)


class TrainingBatches:
    """Batches of one epoch after the other, as Lightning's loop asks for them.

    It has no length: epochs of batches of so many tokens differ in theirs, and Lightning would cut
    one that is longer than the first. Lightning may read a batch ahead; the state is the place
    after those that :meth:`take` was told of, so that nothing is lost where training goes on.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self._place = {"epochs": 0, "taken": 0, "data": batches.state_dict()}
        self._ahead: deque[dict[str, Any]] = deque()

    def __iter__(self) -> Iterator[Any]:
        if self._ahead:  # the iteration before was left in the middle of an epoch
            self.load_state_dict(self._place)
        start = self._place
        for batch in self.batches:
            taken = self._now["taken"] + 1
            self._ahead.append({**self._now, "taken": taken, "data": self.batches.state_dict()})
            yield batch
        empty = self._now is start and start["taken"]
        self._ended(told=self._place is not start)
        if empty:  # it had been left at the very end of an epoch
            yield from self

    @property
    def _now(self) -> dict[str, Any]:
        """The place after all that was read."""
        return self._ahead[-1] if self._ahead else self._place

    def _ended(self, *, told: bool) -> None:
        """Moves the place after what was read to the next epoch."""
        ended = {"epochs": self._now["epochs"] + 1, "taken": 0, "data": self.batches.state_dict()}
        if self._ahead and told:
            self._ahead[-1] = ended
        else:  # nobody tells what is taken: all of it
            self._place = ended
            self._ahead.clear()

    def take(self) -> None:
        """Notes that the oldest batch that was read is trained on."""
        if self._ahead:
            self._place = self._ahead.popleft()

    def state_dict(self) -> dict[str, Any]:
        """The place after the batches that were taken, as textmill's own loop has it."""
        return dict(self._place)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a place."""
        self._place = dict(state)
        self._ahead.clear()
        self.batches.load_state_dict(state["data"])


class _HeldOutBatches:
    """Batches to evaluate: all of them each time, in the same order."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[HeldOutBatch]:
        place = self.batches.state_dict()
        try:
            for batch in self.batches:
                yield HeldOutBatch(batch, self.batches.examples(batch))
        finally:
            self.batches.load_state_dict(place)


class RecipeData:
    """The LightningDataModule that :func:`as_datamodule` makes.

    All of it is there from the beginning: ``prepare_data`` and ``setup`` have nothing left to do.
    """

    trainer: Any

    def __init__(self, prepared: Prepared) -> None:
        super().__init__()
        self.prepared = prepared
        self.training = TrainingBatches(prepared.trainer.data.data)

    @property
    def task(self) -> Task:
        """The task of the recipe, with the weights that training begins with."""
        return self.prepared.trainer.task

    def train_dataloader(self) -> TrainingBatches:
        """The batches of ``train_data``, shuffled anew for each epoch as in textmill's loop."""
        return self.training

    def val_dataloader(self) -> Any:
        """The batches of ``valid_data`` with their rows; nothing of a recipe without any."""
        valid = self.prepared.trainer.valid
        return [] if valid is None else _HeldOutBatches(valid)

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """Leaves a batch where it is, and counts it: a task takes to its module what it needs."""
        del device, dataloader_idx
        if self.trainer is not None and self.trainer.training:
            self.training.take()
        return batch

    def state_dict(self) -> dict[str, Any]:
        """The place in the training data, for a checkpoint of Lightning's."""
        return self.training.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a place in the training data."""
        self.training.load_state_dict(state)


class TestedRecipeData(RecipeData):
    """The same of a recipe with ``test_data``: without any, Lightning is to find no test."""

    __test__ = False  # nor is pytest

    def test_dataloader(self) -> Any:
        """The batches of ``test_data`` with their rows."""
        return _HeldOutBatches(self.prepared.trainer.test)
