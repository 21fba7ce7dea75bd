"""The names of what a run keeps of its weights: checkpoints, two pointers to them, and modules."""

import re
from pathlib import Path

CHECKPOINTS = "checkpoints"
"""The folder of a run's checkpoints, in the run folder."""
MODULES = "modules"
"""The parts of its module that a run saved apart, beside it; it has the format of a checkpoint."""
LAST, BEST = "last.json", "best.json"
"""The pointers, beside the checkpoints."""
CALIBRATION = "calibration.json"
"""What calibrating one of the checkpoints found, beside them."""
MANIFEST = "manifest.json"
"""The file of a checkpoint that lists all others, written last."""
STATE = "state.json"
"""The file of a checkpoint with everything of all parts that is not a tensor."""
TENSORS = ".safetensors"
"""How the names of files with tensors end, one a part."""
TEXT = "text"
"""The folder of a checkpoint with its text processor."""
_STEP = "step-"
_FOLDER = re.compile(_STEP + r"(\d{8,18})")


def folder_name(step: int) -> str:
    """The name of a step's checkpoint."""
    return f"{_STEP}{step:08d}"


def is_folder_name(name: str) -> bool:
    """Whether a folder of this name can be a checkpoint."""
    return _FOLDER.fullmatch(name) is not None


def step_of(checkpoint: Path) -> int:
    """The step that the name of a checkpoint says."""
    return int(checkpoint.name.removeprefix(_STEP))


def tensor_file(part: str) -> str:
    """The file with the tensors of a part: one a part, so that the name says which.

    With ``trainer.ema`` the average is the part ``model``, and the weights themselves, with which
    the training goes on, are another, ``weights``.
    """
    return f"{part}{TENSORS}"


def text_folder(checkpoint: Path) -> Path:
    """The folder of a checkpoint's text processor."""
    return checkpoint / TEXT


def has_checkpoints(run: Path) -> bool:
    """Whether a whole checkpoint was ever saved in a run folder.

    ``checkpoints`` is made before the first save, and a project's own has none of textmill's.
    """
    saved = run / CHECKPOINTS
    return (saved / LAST).exists() or any(
        path.is_dir() and is_folder_name(path.name) for path in saved.glob(f"{_STEP}*")
    )


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a checkpoint, or the modules that a run saved; damaged or not."""
    return (folder / MANIFEST).is_file()


def module_file(run: Path, name: str) -> Path:
    """The file of a part of the module that a run saved apart."""
    return run / MODULES / tensor_file(name)


def deciding_files(folder: Path) -> tuple[Path, ...]:
    """What says by checksums which weights a checkpoint, modules or a run folder give."""
    return folder / MANIFEST, folder / CHECKPOINTS / BEST
