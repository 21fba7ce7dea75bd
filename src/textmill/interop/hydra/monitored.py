"""What callbacks of Lightning monitor, and a module may not log."""

from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from typing_extensions import override

from textmill.interop.hydra.logged_names import split_and_name


def not_logged(trainer: Trainer) -> list[str]:
    """The names of validation values that callbacks monitor but nothing logs."""
    names = [getattr(callback, "monitor", None) for callback in trainer.callbacks]  # type: ignore[attr-defined]
    return sorted(
        {
            name
            for name in names
            if isinstance(name, str)
            and split_and_name(name)[0] == "valid"
            and name not in trainer.callback_metrics
        }
    )


class ReturnedLoss(Callback):
    """Logs the loss that ``validation_step`` returns if callbacks monitor it and nothing logs it.

    Lightning itself has no use for what ``validation_step`` returns.
    """

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._names: set[str] = set()

    @override
    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._losses = []

    @override
    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach().reshape(()))

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._losses:
            missing = not_logged(trainer)  # of later epochs the values of the first are there
            self._names |= {name for name in missing if split_and_name(name)[1] == "loss"}
            for name in sorted(self._names):
                pl_module.log(name, torch.stack(self._losses).mean(), sync_dist=True)
