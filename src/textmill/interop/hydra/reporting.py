"""What a LightningModule logs, as a run of textmill reports it: lines by split, step and epoch."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loggers.logger import Logger
from typing_extensions import override

from textmill.metrics.reporters import Reporters

_SPLITS = {
    "train": "train", "training": "train",
    "val": "valid", "valid": "valid", "validation": "valid", "validate": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_PREFIX = re.compile(rf"({'|'.join(sorted(_SPLITS, key=len, reverse=True))})[/_.-](?=.)")
_RESERVED = ("split", "time", "step", "epoch", "examples")


def split_and_name(logged: str, default: str = "train") -> tuple[str, str]:
    """The split of a logged name, and the name of the value.

    Example:
        >>> split_and_name("val/f1"), split_and_name("train_loss_step"), split_and_name("lr-Adam")
        (('valid', 'f1'), ('train', 'loss_step'), ('train', 'lr-Adam'))
    """
    found = _PREFIX.match(logged)
    split, name = (_SPLITS[found[1]], logged[found.end() :]) if found else (default, logged)
    return split, f"{name}_" if name in _RESERVED else name


class ReportingLogger(Logger):
    """A logger for the Trainer that hands all values to the reporters of a run.

    So ``metrics.jsonl``, the lines on the terminal and ``report.html`` have what ``self.log``
    logged. The name says the split (``val/f1``, ``train_loss``), else the stage does.
    """

    def __init__(self, reporters: Reporters) -> None:
        super().__init__()
        self.reporters = reporters
        self.trainer: Trainer | None = None
        """Set before the first value: it knows the stage and where the run stands."""
        self.seconds: Callable[[], float] = time.monotonic
        """Seconds of the run so far."""

    @property
    @override
    def name(self) -> str:
        return ""

    @property
    @override
    def version(self) -> str:
        return ""

    @override
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Does nothing: they are in the run's ``config.yaml``."""

    @override
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        trainer = self.trainer
        if trainer is None or trainer.sanity_checking:
            return
        default = _SPLITS.get(str(trainer.state.stage and trainer.state.stage.value), "train")
        splits: dict[str, dict[str, float]] = {}
        for logged, value in metrics.items():
            if logged != "epoch":
                split, name = split_and_name(logged, default)
                values = splits.setdefault(split, {})
                values[logged if name in values else name] = float(value)
        for split, values in splits.items():
            clock = {"time": {"elapsed": self.seconds()}}
            self.reporters.report(split, {**place_of(trainer), **clock}, values)


def place_of(trainer: Trainer) -> dict[str, Any]:
    """Optimizer steps that a Trainer has taken, and its epochs as a fraction."""
    batches, done = trainer.num_training_batches, trainer.fit_loop.total_batch_idx + 1
    if isinstance(batches, int) and batches > 0:
        return {"step": trainer.global_step, "epoch": round(done / batches, 3)}
    now = trainer.fit_loop.epoch_progress.current  # data without a length: whole epochs
    at_end = trainer.is_last_batch and now.ready > now.completed
    return {"step": trainer.global_step, "epoch": float(now.completed + at_end)}
