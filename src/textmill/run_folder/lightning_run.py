"""Runs that Lightning trained: read and compared as others, but the model is a project's own."""

from pathlib import Path

from textmill.checkpoint.layout import CHECKPOINTS, tensor_file
from textmill.errors import TextmillError, UserError
from textmill.run_folder.folder import RunFolder


def is_of_lightning(run: Path) -> bool:
    """Whether ``textmill train --hydra`` made a run; False for a folder that cannot be read."""
    try:
        return RunFolder(run).info.get("trained_by") == "lightning"
    except (OSError, TextmillError):
        return False


def refuse_lightning(run: Path) -> None:
    """Refuses to load, or to plan anew, a run that Lightning trained."""
    if not is_of_lightning(run):
        return
    saved = sorted(run.glob(f"{CHECKPOINTS}/*/{tensor_file('model')}"))
    weights = saved[0] if saved else run / CHECKPOINTS
    config = RunFolder(run).info.get("config", "its configs")
    raise UserError(
        f"{run} is a run of Lightning's: its model is code of the project of {config}, which no run"
        " folder may execute. Type the command that began it to go on, or to see its result "
        "(textmill train --hydra …). Another program reads the weights: "
        f"safetensors.torch.load_file('{weights}')."
    )
