"""Ingredients taken from another run: its tokenizer, or its trained task."""

from pathlib import Path

from typing_extensions import override

from textmill.checkpoint.layout import is_checkpoint
from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.inference import registries
from textmill.inference.checkpoints import open_checkpoint, use_checkpoint
from textmill.inference.load import load_run
from textmill.runtime.devices import Experiment
from textmill.tasks.task import Task
from textmill.text.processors.text_processor import TextProcessor
from textmill.text.tokenizers.tokenizer import Tokenizer


@registries.tokenizers.register("of_run")
class RunTokenizer(Component):
    """The tokenizer that another run was trained with, from its best checkpoint.

    ``textmill train RECIPE tokenizer.type=of_run tokenizer.path=RUN trainer.initialize=RUN`` goes
    on from a run that was trained for something else: ids stand for the same pieces. A run that has
    a checkpoint of its own has the tokenizer in it, and goes on without the other one.
    """

    class Config(BaseConfig):
        """Whose tokenizer."""

        path: Path
        """What ``trainer.initialize`` names: a run folder, whose best checkpoint is taken, one of
        its checkpoints, or its modules."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, xp: Experiment | None = None
        ) -> Tokenizer:
            """Reads it; a run ``xp`` that has saved a checkpoint has it in there."""
            own = None if xp is None else _own_text(xp.folder)
            if own is not None and (kept := _tokenizer(own)) is not None:
                return kept
            if is_checkpoint(self.path):
                text = open_checkpoint(self.path).text
            else:
                text = use_checkpoint(self.path, "best", lambda opened: opened.text)
            tokenizer = _tokenizer(text)
            if tokenizer is None:
                raise UserError(
                    f"tokenizer.path is {self.path}, whose text processor, a "
                    f"{type(text).__name__}, has no tokenizer. Name a run that has one."
                )
            return tokenizer

    def __init__(self, config: Config) -> None:
        self.config = config


@registries.trained_tasks.register("of_run")
def trained_task(run: Path, checkpoint: str, device: str) -> Task:
    """The task of a run with its trained weights, which no training changes."""
    task = load_run(run, checkpoint=checkpoint, device=device).task
    task.module.requires_grad_(requires_grad=False)
    return task


def _own_text(run: Path) -> TextProcessor | None:
    """The text processor of a run's last checkpoint; None if it has none yet."""
    try:
        return use_checkpoint(run, "last", lambda opened: opened.text)
    except UserError:  # it has no checkpoint yet
        return None


def _tokenizer(text: TextProcessor) -> Tokenizer | None:
    found = text.ingredients.get("tokenizer")
    return found if isinstance(found, Tokenizer) else None
