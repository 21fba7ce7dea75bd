"""Checkpoints of Lightning's Trainer: safetensors and JSON, no pickle; and going on from them."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch import Callback, LightningModule, Trainer
from typing_extensions import override

from textmill.checkpoint.layout import (
    CHECKPOINTS,
    MANIFEST,
    folder_name,
    is_checkpoint,
    is_folder_name,
)
from textmill.checkpoint.manifest import Manifest
from textmill.checkpoint.parts import plain_parts, read_part
from textmill.checkpoint.store import Checkpoints
from textmill.checkpoint.writing import split_parts, write_checkpoint
from textmill.errors import CheckpointError
from textmill.interop.hydra.reporting import place_of
from textmill.metrics.reporters import Reporters, RunInfo
from textmill.runtime.files import make_folder, remove_folder
from textmill.runtime.seeds import HostRandom
from textmill.runtime.signals import StopSignals
from textmill.training.progress import stopped


class FolderCheckpointIO(CheckpointIO):
    """Writes each checkpoint of a Trainer as a folder: tensors in safetensors, the rest in JSON.

    Those called ``step-00000100`` in ``checkpoints`` are the run's own: the newest stays, and the
    run goes on from it. All others, such as those of a ``ModelCheckpoint``, are written where they
    were asked for; ``best.ckpt`` is a folder, too.
    """

    def __init__(self, run: Path, *, writes: bool = True) -> None:
        self.store = Checkpoints(run / CHECKPOINTS, keep=1, writes=writes)
        self.only_tries = False
        """Whether a save only finds out if all could be saved."""

    def own_path(self, step: int) -> Path:
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
        """Removes what callbacks saved after a step, because the run goes on from that step."""
        for manifest in sorted(self.store.folder.glob(f"*/{MANIFEST}")):
            place = manifest.parent
            if not is_folder_name(place.name) and Manifest.read(place).step > step:
                remove_folder(place)

    def _parts(self, checkpoint: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        rest = {name: value for name, value in checkpoint.items() if name != "hparams_type"}
        for name in ("hyper_parameters", "datamodule_hyper_parameters"):
            if name in rest:
                rest[name] = _described(rest[name])
        parts: dict[str, Mapping[str, Any]] = {"model": rest.pop("state_dict")}
        if "optimizer_states" in rest:
            parts["optimizer"] = {"states": rest.pop("optimizer_states")}
        return {**parts, "trainer": rest}


def _described(value: Any) -> Any:
    """Hyper-parameters as plain data for a reader; an object becomes its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _described(each) for name, each in value.items()}
    if isinstance(value, list | tuple) or type(value).__name__ == "ListConfig":
        return [_described(each) for each in value]
    return str(value)[:1000]


def refuse_no_checkpoint(path: Path) -> None:
    """Refuses a path without a checkpoint, and a file: Lightning's own are pickles."""
    if not path.exists():
        raise CheckpointError(f"{path}: there is no such checkpoint. Wanted the folder of one.")
    if path.is_file():
        raise CheckpointError(
            f"{path} is a file, as Lightning itself writes checkpoints: a pickle, which can execute"
            " anything when it is read, and is not read here. Wanted the folder of a checkpoint."
        )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Reads and verifies a checkpoint of :class:`FolderCheckpointIO`, in Lightning's form."""
    refuse_no_checkpoint(path)
    try:
        manifest = Manifest.read(path)
        plain = plain_parts(path, manifest)
        parts = {name: read_part(path, manifest, plain, name) for name in plain}
        found = dict(parts["trainer"]) | {"state_dict": parts["model"]}
    except KeyError as error:
        raise CheckpointError(
            f"{path} is not a checkpoint of Lightning's: it has no {error}"
        ) from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if "optimizer" in parts:
        found["optimizer_states"] = parts["optimizer"]["states"]
    return found


class GoingOn(Callback):
    """Saves a Trainer's run between epochs, and goes on from there, bit for bit.

    Lightning's own checkpoints are made before the schedulers of an epoch have moved and before its
    values are logged, and hold no state of the random generators. This one is made after all that:
    at the beginning of the next epoch, and when training ends. A signal is answered after the
    current batch; the run then goes on from the end of the epoch before. It must be the first
    callback. If the run was ``extended``, a former request to stop is forgotten.
    """

    def __init__(
        self,
        io: FolderCheckpointIO,
        reporters: Reporters,
        info: RunInfo,
        *,
        stop: StopSignals,
        extended: bool = False,
    ) -> None:
        self.io, self.reporters, self.info = io, reporters, info
        self.stop, self.extended = stop, extended
        self.resumes = False
        """Whether the checkpoint that the Trainer is given is this run's."""
        self.saved_step: int | None = None
        """The optimizer steps of the newest checkpoint."""
        self._state: Mapping[str, Any] | None = None
        self._began = time.monotonic()
        self._before = 0.0
        self._saves = self._asked = False

    def seconds(self) -> float:
        """Wall-clock seconds of the run, earlier processes included."""
        return self._before + time.monotonic() - self._began

    @override
    def state_dict(self) -> dict[str, Any]:
        if not self._saves:  # what a ModelCheckpoint saves is for its weights
            return {}
        return {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
            "host": HostRandom().state_dict(),
            "asked_to_stop": self._asked,
            "seconds": self.seconds(),
            "reporters": self.reporters.state_dict(),
        }

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._state = state_dict if self.resumes else None

    @override
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._state is None:
            return
        self._before = float(self._state["seconds"])
        if self.io.store.writes:
            self.reporters.load_state_dict(self._state["reporters"])
        # Early stopping has asked for the end that the run had.
        trainer.should_stop = bool(self._state["asked_to_stop"]) and not self.extended

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._state is None:
            self.io.only_tries = True  # what cannot be saved is told before the first step
            try:
                self._save(trainer)
            finally:
                self.io.only_tries = False
        total = trainer.estimated_stepping_batches
        info = RunInfo(
            recipe=self.info.recipe,
            folder=self.info.folder,
            step=trainer.global_step,
            total=int(total) if total < float("inf") else None,
            facts={
                "parameters": sum(p.numel() for p in pl_module.parameters()),
                "device": str(pl_module.device),
            },
        )
        self.reporters.start(info)

    @override
    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._state is not None:
            # Lightning takes a restart to be in the middle of an epoch if max_steps is set, and
            # keeps the pass over the data that it began before the generators were put back.
            trainer.fit_loop.on_iteration_done()
            trainer.fit_loop.epoch_loop.on_iteration_done()
            trainer.fit_loop.epoch_loop.restarting = False
            torch.set_rng_state(self._state["torch"])
            if self._state["cuda"] and torch.cuda.is_available():
                torch.cuda.set_rng_state_all(self._state["cuda"])
            HostRandom().load_state_dict(self._state["host"])
            self._state = None
        elif trainer.current_epoch > 0:
            self._save(trainer)

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._asked = trainer.should_stop
        self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        self._saves = True
        try:
            trainer.save_checkpoint(self.io.own_path(trainer.global_step))
        finally:
            self._saves = False
        if not self.io.only_tries:
            self.saved_step = trainer.global_step

    @override
    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Writes the epoch that is about to begin as not begun: a resumed run begins it."""
        if self._saves:
            progress = checkpoint["loops"]["fit_loop"]["epoch_progress"]
            for counts in (progress["total"], progress["current"]):
                counts["ready"] = counts["started"] = counts["completed"]

    @override
    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._poll(trainer)
        self.reporters.tick({**place_of(trainer), "time": {"elapsed": self.seconds()}})

    @override
    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._poll(trainer)

    on_test_batch_end = on_validation_batch_end  # type: ignore[assignment]  # it takes all

    @override
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.reporters.examples("valid", place_of(trainer), ())  # the report is due

    def _poll(self, trainer: Trainer) -> None:
        if self.stop.received is not None and not trainer.sanity_checking:
            step = self.saved_step
            place = "the beginning" if step is None else f"step {step:,}, the end of an epoch"
            raise stopped(self.stop, f"the same command goes on from {place}.")
