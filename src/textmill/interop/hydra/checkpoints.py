"""Checkpoints of Lightning's Trainer as textmill writes them: safetensors and JSON, no pickle."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.fabric.plugins import CheckpointIO
from typing_extensions import override

from textmill.checkpoint.layout import CHECKPOINTS, folder_name, is_checkpoint, is_folder_name
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.parts import plain_parts, read_part
from textmill.checkpoint.store import Checkpoints
from textmill.checkpoint.writing import split_parts, write_checkpoint
from textmill.errors import CheckpointError
from textmill.runtime.files import make_folder, remove_folder

LOG = logging.getLogger("textmill")
HYPER = ("hyper_parameters", "datamodule_hyper_parameters")
"""What ``save_hyperparameters`` keeps of the module and of the data: a record for a reader."""
TYPES = ("hparams_type",)
"""A class, which JSON has not; a dictionary is one when it is read."""


class _State:
    """A part of a checkpoint that is at hand already."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state

    def state_dict(self) -> Mapping[str, Any]:
        """It."""
        return self._state

    def load_state_dict(self, state: Any, /) -> None:
        """Nothing: whoever reads a checkpoint takes what it returns."""


class FolderCheckpointIO(CheckpointIO):
    """Writes each checkpoint of a Trainer as a folder: tensors in safetensors, the rest in JSON.

    Those called ``step-00000100`` in ``checkpoints`` are the run's own: the newest stays, the run
    goes on from it, and ``last.json`` points to it. All others, such as those of a
    ``ModelCheckpoint``, are where they were asked for, ``best.ckpt`` being a folder.

    Args:
        run: The run folder.
        writes: Whether this process writes.
    """

    def __init__(self, run: Path, *, writes: bool = True) -> None:
        self.store = Checkpoints(run / CHECKPOINTS, keep=1, writes=writes)
        self.only_tries = False
        """Whether a save only finds out if all could be saved."""
        self._told: set[str] = set()

    def own_path(self, step: int) -> Path:
        """Where the run's own checkpoint of a step is."""
        return self.store.folder / folder_name(step)

    @override
    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        parts = self._parts(checkpoint)
        step, place = int(checkpoint["global_step"]), Path(path)
        if self.only_tries:
            split_parts(step, parts)
        elif place.parent == self.store.folder and is_folder_name(place.name):
            self.store.save(step, parts)
        else:
            make_folder(place.parent)
            tensors, document = split_parts(step, parts)
            run = None if self.store.seal is None else self.store.seal.run
            write_checkpoint(
                place, step=step, serial=1, tensors=tensors, document=document, run=run
            )

    @override
    def load_checkpoint(
        self, path: str | Path, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        return read_checkpoint(Path(path))

    @override
    def remove_checkpoint(self, path: str | Path) -> None:
        if is_checkpoint(Path(path)):
            remove_folder(Path(path))

    def forget_after(self, step: int) -> None:
        """Removes what a Trainer saved in the run after a step: the run goes on before it."""
        for manifest in sorted(self.store.folder.glob("*/manifest.json")):
            place = manifest.parent
            if not is_folder_name(place.name) and Manifest.read(place).step > step:
                remove_folder(place)

    def _parts(self, checkpoint: Mapping[str, Any]) -> dict[str, _State]:
        rest = {name: value for name, value in checkpoint.items() if name not in TYPES}
        for name in HYPER:
            if name in rest:
                rest[name] = self._described(rest[name], name)
        parts = {"model": _State(rest.pop("state_dict"))}
        if "optimizer_states" in rest:
            parts["optimizer"] = _State({"states": rest.pop("optimizer_states")})
        return {**parts, "trainer": _State(rest)}

    def _described(self, value: Any, path: str) -> Any:
        """Hyper-parameters as data; an object is what it shows, which is said once."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            return {str(k): self._described(v, f"{path}.{k}") for k, v in value.items()}
        if isinstance(value, list | tuple) or type(value).__name__ == "ListConfig":
            return [self._described(item, f"{path}.{n}") for n, item in enumerate(value)]
        if not isinstance(value, Path) and path not in self._told:
            self._told.add(path)
            LOG.info("%s is no data: checkpoints keep what it shows.", path)
        return str(value)[:1000]


def refuse_no_checkpoint(path: Path) -> None:
    """Refuses what is not there, and what is no folder.

    Raises:
        CheckpointError: It is so. A file of Lightning's own is a pickle, which may execute
            anything, and is not read.
    """
    if not path.exists():
        raise CheckpointError(f"{path}: there is no such checkpoint. Wanted the folder of one.")
    if path.is_file():
        raise CheckpointError(
            f"{path} is a file, as Lightning itself writes checkpoints: a pickle, which can execute"
            " anything when it is read, and is not read here. Wanted the folder of a checkpoint."
        )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint that :class:`FolderCheckpointIO` wrote, verified, as Lightning has it.

    Raises:
        CheckpointError: It is none, or a byte is not as it was saved.
    """
    refuse_no_checkpoint(path)
    try:
        manifest = Manifest.read(path)
        plain = plain_parts(path, manifest)
        parts = {name: read_part(path, manifest, plain, name) for name in plain}
        found = dict(parts["trainer"]) | {"state_dict": parts["model"]}
    except KeyError as error:
        raise CheckpointError(
            f"{path} is no checkpoint of Lightning's: it has no {error}"
        ) from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if "optimizer" in parts:
        found["optimizer_states"] = parts["optimizer"]["states"]
    return found
