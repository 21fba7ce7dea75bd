"""What a LightningModule logs, as a run of textmill reports it: lines by split, step and epoch."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.loggers.logger import Logger
from typing_extensions import override

from textmill.interop.hydra.logged_names import split_and_name
from textmill.metrics.reporters import Reporters

_STAGES = {"train": "train", "validate": "valid", "sanity_check": "valid", "test": "test"}


class ReportingLogger(Logger):
    """A logger for the Trainer that hands all values to the reporters of a run.

    So ``metrics.jsonl``, the lines on the terminal and ``report.html`` have what ``self.log``
    logged. The name says the split (``val/f1``, ``train_loss``), else the stage does.

    Args:
        reporters: Where values go.
        writes: Whether this process reports: of several, one does.
    """

    def __init__(self, reporters: Reporters, *, writes: bool = True) -> None:
        super().__init__()
        self.reporters, self.writes = reporters, writes
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
        """They are in the run's ``config.yaml``."""

    @override
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        trainer = self.trainer
        if not self.writes or trainer is None or trainer.sanity_checking:
            return
        default = _STAGES.get(
            str(trainer.state.stage.value if trainer.state.stage else ""), "train"
        )
        splits: dict[str, dict[str, float]] = {}
        for logged, value in metrics.items():
            if logged == "epoch":
                continue
            split, name = split_and_name(logged, default)
            values = splits.setdefault(split, {})
            values[logged if name in values else name] = float(value)
        for split, values in splits.items():
            clock = {"time": {"elapsed": self.seconds()}}
            self.reporters.report(split, {**place_of(trainer), **clock}, values)


def place_of(trainer: Trainer) -> dict[str, Any]:
    """Where a Trainer is: optimizer steps taken, and how many epochs, as a fraction."""
    batches, done = trainer.num_training_batches, trainer.fit_loop.total_batch_idx + 1
    if isinstance(batches, int) and batches > 0:
        return {"step": trainer.global_step, "epoch": round(done / batches, 3)}
    now = trainer.fit_loop.epoch_progress.current  # data without a length: whole epochs
    at_end = trainer.is_last_batch and now.ready > now.completed
    return {"step": trainer.global_step, "epoch": float(now.completed + at_end)}
