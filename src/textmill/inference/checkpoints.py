"""Choosing a checkpoint of a run; reading its text processor and weights, verified."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import nn

from textmill.checkpoint.layout import has_checkpoints, is_folder_name, text_folder
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.parts import check_fit, load_part
from textmill.checkpoint.run_seal import RunSeal
from textmill.checkpoint.saved import SavedCheckpoints
from textmill.errors import CheckpointError, UserError, worded
from textmill.exported.manifest import is_export
from textmill.text.metadata import SavedTextError
from textmill.text.processors.text_processor import TextProcessor, load_text_processor

T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """One checkpoint: its text processor, and its weights on demand."""

    path: Path
    text: TextProcessor

    def load_weights(self, module: nn.Module) -> None:
        """Loads the weights from verified bytes; refuses those that do not fit the module."""
        weights = load_part(self.path, "model")
        if problems := check_fit(module, weights):
            lines = "\n".join(f"  {problem}" for problem in problems)
            raise CheckpointError(
                f"{self.path}: its weights do not fit the model in config.yaml.\n{lines}"
            )
        module.load_state_dict(weights)


def use_checkpoint(run: Path, name: str, use: Callable[[Opened], T]) -> T:
    """Uses the checkpoint that is asked for; for a damaged ``best`` or ``last``, a good one.

    If another one is used, the log says why. ``name`` is ``best`` (the last one if nothing was
    selected), ``last``, or a checkpoint's name.
    """
    if not has_checkpoints(run):
        if (run / "run.json").is_file():
            raise _no_checkpoint(run)
        what = "is not a run folder"
        if is_export(run):
            what = (
                "is an export, which only answers (textmill predict, serve, textmill.exported.load)"
            )
        raise UserError(
            f"{run} {what}; wanted a folder that textmill train has written, with checkpoints/ in "
            "it."
        )
    RunSeal.read(run)  # before any checkpoint: damaged settings mean none of them
    saved = SavedCheckpoints.of(run)
    if name not in ("best", "last"):
        path = _named(saved, name)
        try:
            saved.manifest(path)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None
        return use(open_checkpoint(path))
    refused = (CheckpointError, SavedTextError)
    used = saved.use(
        "best" if name == "best" else "last",
        lambda path: (use(open_checkpoint(path)),),
        refused=refused,
    )
    if used is None:
        raise _no_checkpoint(run)
    return used[0]


def _no_checkpoint(run: Path) -> UserError:
    way = worded(f"textmill train {run}", f"textmill.train({str(run)!r})")
    return UserError(f"{run} has no checkpoint yet; train it first: {way}")


def _named(saved: SavedCheckpoints, name: str) -> Path:
    path = saved.folder / name
    if is_folder_name(name) and path.is_dir():
        return path
    known = ", ".join(path.name for path in saved.paths()) or "none"
    raise UserError(
        f"{saved.folder.parent} has no checkpoint '{name}'. It has: {known}; best and last name "
        "two of them."
    )


def open_checkpoint(path: Path) -> Opened:
    """One checkpoint, or the modules that a run saved: its text processor is verified and read."""
    if path.is_symlink():
        raise CheckpointError(f"{path}: a symbolic link, not a checkpoint")
    try:
        Manifest.read(path).verify_text(path)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    text = text_folder(path)
    if not (text / TextProcessor.description).is_file() and text.is_dir():
        run, tasks = path.parents[1], sorted(p.name for p in text.iterdir() if p.is_dir())
        raise UserError(
            f"{run} trained several tasks, and each answers on its own when the run has ended. "
            f"Name the folder of one: {', '.join(str(run / name) for name in tasks)}"
        )
    return Opened(path, load_text_processor(text))
