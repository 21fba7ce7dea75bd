"""The data of a recipe as a LightningDataModule: the same batches, in the order of our loop."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningDataModule
from typing_extensions import override

from textmill.config.planning.overrides import Overrides
from textmill.config.recipe import Recipe
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
) -> "RecipeData":
    """Makes the LightningDataModule of a recipe: its data is read and its task is built.

    The arguments are those of :func:`textmill.runs.train.train`. What is returned is also what
    :func:`~textmill.interop.lightning.task_module.as_module` takes.
    """
    prepared = prepare(recipe, overrides, configs=configs, allow_code=allow_code, device=device)
    kind = RecipeData if prepared.trainer.test is None else TestedRecipeData
    return kind(prepared)


@dataclass(frozen=True)
class HeldOutBatch:
    """A batch to evaluate, with its rows as people read them."""

    batch: Any
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)


class TrainingBatches:
    """Batches of one epoch after the other, as Lightning's loop asks for them.

    It has no length: epochs differ in theirs if batches are of so many tokens, and Lightning would
    cut those that are longer than the first. Without a length Lightning reads a batch ahead, so the
    state is the place after the batches that were taken by :meth:`take`.
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
        """The place after the batches that were taken, in the form of textmill's own loop."""
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


class RecipeData(LightningDataModule):
    """The data of a recipe.

    All of it is there from the beginning: ``prepare_data`` and ``setup`` have nothing left to do.
    """

    def __init__(self, prepared: Prepared) -> None:
        super().__init__()
        self.prepared = prepared
        self.training = TrainingBatches(prepared.trainer.data.data)

    @property
    def task(self) -> Task:
        """The task of the recipe, with the weights that training begins with."""
        return self.prepared.trainer.task

    @override
    def train_dataloader(self) -> TrainingBatches:
        """The batches to train on."""
        return self.training

    @override
    def val_dataloader(self) -> Any:
        """The batches of ``valid_data``."""
        valid = self.prepared.trainer.valid
        return [] if valid is None else _HeldOutBatches(valid)

    @override
    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """Leaves a batch where it is, and counts it: a task takes to its module what it needs."""
        if self.trainer is not None and self.trainer.training:
            self.training.take()
        return batch

    @override
    def state_dict(self) -> dict[str, Any]:
        """The place in the training data, for a checkpoint of Lightning's."""
        return self.training.state_dict()

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.training.load_state_dict(state)


class TestedRecipeData(RecipeData):
    """The data of a recipe with ``test_data``: Lightning must find no test in others."""

    __test__ = False  # pytest must find none here either

    @override
    def test_dataloader(self) -> Any:
        """The batches of ``test_data``."""
        return _HeldOutBatches(self.prepared.trainer.test)
