"""A Trainer's run that can be stopped anywhere and goes on as if it had not been."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from lightning.fabric.utilities.data import _set_sampler_epoch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.utils.data import DataLoader
from typing_extensions import override

from textmill.errors import RunStoppedError
from textmill.interop.hydra.checkpoints import FolderCheckpointIO
from textmill.interop.hydra.logger import place_of
from textmill.metrics.reporters import Reporters, RunInfo
from textmill.runtime.seeds import HostRandom
from textmill.runtime.signals import StopSignals
from textmill.training.progress import stopped


def random_state() -> dict[str, Any]:
    """The state of all global generators: torch's on each device, Python's and numpy's."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {"torch": torch.get_rng_state(), "cuda": devices, "host": HostRandom().state_dict()}


def set_random_state(state: Mapping[str, Any]) -> None:
    """Goes on from a state that :func:`random_state` gave."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    HostRandom().load_state_dict(state["host"])


class GoingOn(Callback):
    """Saves a Trainer's run between epochs, and goes on from there, bit for bit.

    Lightning's own checkpoints are made before the schedulers of an epoch have moved and before its
    values are logged, and hold no state of the random generators. This one is made when all that is
    done: as the first thing of the next epoch, and when training ends. A signal is answered after
    the optimizer step at hand, in the middle of an epoch where its batches can be counted. It must
    be the first of the callbacks.

    Args:
        io: What writes checkpoints.
        reporters: What is told of the run; their state is saved too.
        info: What they are told first.
        stop: Signals that ask the run to stop.
        resumes: Whether the checkpoint that the Trainer is given is this run's; what another run
            knew of its files and random numbers is of no use here.
        extended: Whether the run was given another length: an end that a callback asked for is
            forgotten.
    """

    def __init__(
        self,
        io: FolderCheckpointIO,
        reporters: Reporters,
        info: RunInfo,
        *,
        stop: StopSignals,
        resumes: bool = False,
        extended: bool = False,
    ) -> None:
        self.io, self.reporters, self.info = io, reporters, info
        self.stop, self.resumes, self.extended = stop, resumes, extended
        self.saved_step: int | None = None
        """The optimizer steps of the newest checkpoint."""
        self._state: Mapping[str, Any] | None = None
        self._began = time.monotonic()
        self._before = 0.0
        self._saves = self._asked = False
        self._of_epoch: Mapping[str, Any] | None = None  # None in the first: as seeded
        self._middle: Mapping[str, Any] | None = None

    def seconds(self) -> float:
        """Wall-clock seconds of the run, earlier processes included."""
        return self._before + time.monotonic() - self._began

    @override
    def state_dict(self) -> dict[str, Any]:
        if not self._saves:  # what a ModelCheckpoint saves is for its weights
            return {}
        state: dict[str, Any] = {"random": random_state(), "asked_to_stop": self._asked}
        state |= {"seconds": self.seconds(), **(self._middle or {})}
        return {**state, "reporters": self.reporters.state_dict() if self.io.store.writes else {}}

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
        if self.io.store.writes:
            self.reporters.start(info)
        if self._state is not None and "batches" in self._state:
            self._of_epoch = self._state["of_epoch"]
            _pass_over(trainer, self._state["batches"], begin_with=self._of_epoch)
            set_random_state(self._state["random"])

    @override
    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._state is not None:
            _begin_epoch_afresh(trainer)
            set_random_state(self._state["random"])
            self._state = None
        elif trainer.current_epoch > 0:
            self._save(trainer)
        self._of_epoch = random_state() if trainer.current_epoch > 0 else None

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
        """The epoch, or the batch, that is about to begin has not: what goes on begins it."""
        if not self._saves:
            return
        which = "epoch_progress" if self._middle is None else "epoch_loop.batch_progress"
        progress = checkpoint["loops"]["fit_loop"][which]
        for counts in (progress["total"], progress["current"]):
            counts["ready"] = counts["started"] = counts["completed"]

    @override
    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if self._state is not None:  # in the middle of an epoch
            trainer.fit_loop.on_iteration_done()  # else schedulers by a metric would wait
            self._state = None
        if self._middle is not None:
            self._save(trainer)
            raise stopped(
                self.stop,
                "everything is saved, and the same command goes on from here.",
                at=f" at step {trainer.global_step:,}",
            )

    @override
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # Saved before the next batch: what this one logs comes after this.
        if self.stop.received is None or trainer.fit_loop._should_accumulate():
            pass
        elif not _can_pass_over(trainer):
            raise self._stopped()
        elif not trainer.is_last_batch:
            self._middle = {
                "random": random_state(),
                "of_epoch": self._of_epoch,
                "batches": batch_idx + 1,
            }
        if self.io.store.writes:
            self.reporters.tick({**place_of(trainer), "time": {"elapsed": self.seconds()}})

    @override
    def on_validation_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._poll(trainer)

    @override
    def on_test_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self._poll(trainer)

    @override
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.io.store.writes:
            self.reporters.examples("valid", place_of(trainer), ())  # the report is due

    def _poll(self, trainer: Trainer) -> None:
        if self.stop.received is not None and not trainer.sanity_checking:
            raise self._stopped()

    def _stopped(self) -> RunStoppedError:
        step = self.saved_step
        from_there = "the beginning" if step is None else f"step {step:,}, where it was saved last"
        return stopped(self.stop, f"the same command goes on from {from_there}.")


def _begin_epoch_afresh(trainer: Trainer) -> None:
    """Lets the first epoch after a restart begin as each epoch does, with a new pass of the data.

    Lightning takes a restart to be in the middle of an epoch where ``max_steps`` is set, and keeps
    the pass that it began before the random generators were put back.
    """
    loop = trainer.fit_loop
    loop.on_iteration_done()
    loop.epoch_loop.on_iteration_done()
    loop.epoch_loop.restarting = False


def _can_pass_over(trainer: Trainer) -> bool:
    """Whether an epoch can be gone on with in its middle: its batches are counted, and data alone.

    Data that keep their own place have it after the batch that is fetched, and not trained on.
    """
    fetcher = trainer.fit_loop._data_fetcher
    loaders = fetcher.combined_loader.flattened if fetcher is not None else []
    plain = [isinstance(each, DataLoader) and not hasattr(each, "state_dict") for each in loaders]
    return fetcher is not None and fetcher.length is not None and all(plain)


def _pass_over(trainer: Trainer, batches: int, *, begin_with: Mapping[str, Any] | None) -> None:
    """Fetches the batches of an epoch that were trained on before."""
    fetcher = trainer.fit_loop._data_fetcher
    assert fetcher is not None, "the data are there before training starts"
    for loader in fetcher.combined_loader.flattened:
        _set_sampler_epoch(loader, trainer.current_epoch)
    if begin_with is not None:  # else they are shuffled as in the first start, from the seed on
        set_random_state(begin_with)
        iter(fetcher)
    assert fetcher.iterator is not None
    for _ in range(batches):
        next(fetcher.iterator)
