"""Parts of a trained module, saved by their names for another run to begin with."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from torch import nn

from weft.checkpoint.layout import MODULES
from weft.checkpoint.writing import PART_NAME, split_parts, write_checkpoint
from weft.errors import UserError, refuse_all
from weft.tasks.task import Task

__all__ = ["check_modules", "save_modules"]


def check_modules(module: nn.Module, names: Sequence[str]) -> None:
    """Refuses names that the module has not, or no file can have, before anything is trained.

    Example:
        >>> check_modules(
        ...     nn.ModuleDict({"encoder": nn.Linear(1, 1)}), ["encodr"]
        ... )  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.UserError: trainer.save_modules names 'encodr', which ... 'encoder'?
    """
    known = [name for name, inner in module.named_modules() if name and inner.state_dict()]
    refuse_all([UserError(text) for name in names if (text := _refusal(name, known))])


def _refusal(name: str, known: Sequence[str]) -> str | None:
    if name == "model" or not PART_NAME.fullmatch(name):
        return (
            f"trainer.save_modules names '{name}', which cannot be the name of a saved part: "
            "small letters, digits, '_', '.' and '-' after a first small letter, 64 at most, "
            "and not 'model', which is the whole module."
        )
    if name in known:
        return None
    near = get_close_matches(name, known, n=1)
    tops = [each for each in known if "." not in each]
    hint = f"Did you mean '{near[0]}'?" if near else f"It has: {', '.join(tops)}."
    return f"trainer.save_modules names '{name}', which the module does not have. {hint}"


def save_modules(folder: Path, names: Sequence[str], *, step: int, task: Task) -> None:
    """Writes the parts and the text processor into ``modules``, which ``trainer.initialize`` takes.

    It has the format of a checkpoint, one safetensors file a part, each with its hash.

    Args:
        folder: The run's; what an earlier end of the run left is replaced.
        names: The parts, as ``encoder``; none writes nothing.
        step: Of which step the weights are.
        task: Whose module they are of.

    Raises:
        StorageError: No room, or the disk failed.
    """
    if names:
        tensors, document = split_parts(step, {n: task.module.get_submodule(n) for n in names})
        write_checkpoint(
            folder / MODULES,
            step=step,
            serial=1,
            tensors=tensors,
            document=document,
            write_text=task.text.save,
        )
