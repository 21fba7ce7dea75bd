"""The data of a recipe as a LightningDataModule: the same batches, in our loop's order."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.planning.overrides import Overrides
from textmill.config.recipe import Recipe
from textmill.interop.lightning.package import made_from, refuse_no_lightning
from textmill.interop.lightning.prepared import Prepared, prepare
from textmill.tasks.task import Batches, Task
from textmill.text.cells import Rows


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
    refuse_no_lightning("as_datamodule")  # before anything is read
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
    one that is longer than the first. So Lightning reads a batch ahead; the state is the place
    after those that :meth:`take` was told of.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self._places: deque[dict[str, Any]] = deque()
        self._places.append({"epochs": 0, "taken": 0, "data": batches.state_dict()})

    def __iter__(self) -> Iterator[Any]:
        self.load_state_dict(place := self._places[0])
        for batch in self.batches:
            place = {**place, "taken": place["taken"] + 1, "data": self.batches.state_dict()}
            self._places.append(place)
            yield batch
        self._places[-1] = {
            "epochs": place["epochs"] + 1,
            "taken": 0,
            "data": self.batches.state_dict(),
        }

    def take(self) -> None:
        """Notes that the oldest batch that was read is trained on."""
        if len(self._places) > 1:
            self._places.popleft()

    def state_dict(self) -> dict[str, Any]:
        """The place after the batches that were taken, as textmill's own loop has it."""
        return dict(self._places[0])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._places = deque([dict(state)])
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
        return self.training

    def val_dataloader(self) -> Any:
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
        self.training.load_state_dict(state)


class TestedRecipeData(RecipeData):
    """The same of a recipe with ``test_data``: without any, Lightning is to find no test."""

    __test__ = False  # nor is pytest

    def test_dataloader(self) -> Any:
        return _HeldOutBatches(self.prepared.trainer.test)
