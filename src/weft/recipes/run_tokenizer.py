"""The tokenizer of another run: what a run that begins with its weights needs."""

from pathlib import Path

from typing_extensions import override

from weft.checkpoint.manifest import MANIFEST
from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.inference.checkpoints import open_checkpoint, use_checkpoint
from weft.text.tokenizer import Tokenizer

__all__ = ["RunTokenizer"]


@registries.tokenizers.register("of_run")
class RunTokenizer(Component):
    """The tokenizer that another run was trained with, from its best checkpoint.

    ``weft train RECIPE tokenizer.type=of_run tokenizer.path=RUN trainer.initialize=RUN`` goes on
    from a run that was trained for something else: ids stand for the same pieces.
    """

    class Config(BaseConfig):
        """Whose tokenizer."""

        path: Path
        """What ``trainer.initialize`` names: a run folder, whose best checkpoint is taken, one of
        its checkpoints, or its modules."""

        @override
        def build(self) -> Tokenizer:  # type: ignore[override]  # nothing is needed
            """Reads it.

            Raises:
                UserError: There is no run, or it has no tokenizer.
                CheckpointError: It is damaged.
            """
            if (self.path / MANIFEST).is_file():
                text = open_checkpoint(self.path).text
            else:
                text = use_checkpoint(self.path, "best", lambda opened: opened.text)
            tokenizer = text.ingredients.get("tokenizer")
            if not isinstance(tokenizer, Tokenizer):
                raise UserError(
                    f"tokenizer.path is {self.path}, whose text path, a {type(text).__name__}, "
                    "has no tokenizer. Name a run that has one."
                )
            return tokenizer

    def __init__(self, config: Config) -> None:
        self.config = config
