"""The settings of the trainer: how long, how often, how carefully."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal

from textmill.config.component import Config, setting
from textmill.errors import UserError, refuse_all
from textmill.exported.formats import AnyFormat, ExportSettings
from textmill.models.fast import Fast
from textmill.training.nonfinite import Policy
from textmill.training.precision import Precision
from textmill.training.progress import Every, Until
from textmill.training.selection import Selection
from textmill.training.weights.pruning import Pruning

DEFAULT_EPOCHS = 10
MAX_NONFINITE = 5


FIRST = ("max_steps", "max_epochs", "max_time", "evaluate_every", "initialize", "selection", "seed")


class TrainerConfig(Config, first=FIRST):
    """Settings of the trainer."""

    max_steps: int | None = setting(None, in_key=False)
    """Optimizer steps after which the run ends; without any limit it ends after 10 epochs."""
    max_epochs: int | None = setting(None, in_key=False)
    """Passes over ``train_data`` after which the run ends."""
    max_time: timedelta | None = setting(None, in_key=False)
    """Wall-clock time after which the run ends, as ``15m``; resumed runs count what came before."""
    evaluate_every: Every = Every(1, "epochs")
    """How often ``valid_data`` is evaluated; also at the end."""
    save_every: Every = setting(Every(10, "min"), in_key=False)
    """How often a checkpoint is saved; also after a new best, and at the end."""
    report_every: Every = setting(Every(100, "steps"), in_key=False)
    """How often training values are reported; also with every evaluation."""
    keep: int = setting(2, in_key=False)
    """How many of the newest checkpoints are kept besides the best."""
    accumulate: int = 1
    """Batches whose gradients are added up for one optimizer step. More of them act as a larger
    batch in the memory of a small one."""
    clip_norm: float | None = 1.0
    """Largest norm of a step's gradient: a longer one is scaled down to it; null leaves all."""
    on_nonfinite: Policy = "stop"
    """What to do if a loss or gradient is not finite: ``stop`` ends the run, ``skip`` leaves the
    step's update out, ``rollback`` returns to the step at which ``evaluate_every`` last fell due
    and goes on with other data."""
    loss_upper_bound: float | None = None
    """A step whose mean loss is above this counts as not finite: a loss that blows up may need many
    steps to become infinite; null for no bound."""
    max_nonfinite: int = MAX_NONFINITE
    """So many steps in a row that are not finite end a run of ``skip`` or ``rollback``, too."""
    precision: Precision = "auto"
    """Type of the matrix products in training steps: ``auto`` is ``bf16`` on CUDA devices that can
    compute in it (capability 8), and on CPUs where ``textmill bench --machine`` found it faster;
    else ``fp32``. ``fp16`` scales the loss. A run keeps the type that it began with; weights,
    gradients and the optimizer are float32 in any case."""
    compile: bool = False
    """Whether torch compiles the blocks of the module for training steps: the first steps take
    minutes, and a resumed run equals the undisturbed one only to rounding."""
    activation_checkpointing: bool = setting(False, in_key=False)
    """Whether a training step keeps only the input of each block of the module and computes the
    rest again in the backward pass: less memory for more time, the same gradients (Chen 2016)."""
    data_parallelism: Literal["ddp", "fsdp"] = setting("ddp", in_key=False)
    """How several ranks share a run: with ``ddp`` each has all weights; with ``fsdp`` each has a
    share of every weight, gradient and optimizer state, as torch's ``fully_shard`` divides them,
    for models that do not fit one device. One rank alone has everything."""
    ema: float | None = None
    """Decay, such as 0.999, of a moving average of the weights. The average is evaluated and saved
    as the model instead of the last step's weights; null for no average."""
    swa_start: Every | None = None
    """From when on the equal average of the weights is taken, as ``5 epochs`` (stochastic weight
    averaging). From then on the average is evaluated and saved as the model; null for none."""
    swa_every: Every = Every(1, "epochs")
    """How often the weights are taken into that average."""
    pruning: Pruning = Pruning()
    """How many units of feed-forward blocks become zero, and when; an export leaves them out."""
    initialize: str | None = None
    """A run, a checkpoint or a run's ``modules`` whose weights a fresh run begins with."""
    initialize_from: Mapping[str, str] = setting(factory=dict)
    """Submodules to take, each with its name there, as ``{"encoder": "encoder"}``; ``""`` is all of
    the module, but for what a longer name takes. Empty takes all that matches."""
    save_modules: tuple[str, ...] = setting((), in_key=False)
    """Submodules whose best weights are also saved alone at the end, in ``modules`` of the run, for
    other runs to begin with."""
    export: tuple[AnyFormat | ExportSettings, ...] = setting((), in_key=False)
    """Formats in which the best checkpoint is exported at the end, as ``["onnx"]`` or
    ``[{format: onnx, quantize: int8}]``, to ``export/<format>`` of the run. An exporter of your own
    is ``["@module.Class"]``."""
    selection: Selection.Config = Selection.Config()
    """Which checkpoint is the best."""
    fast: Fast = Fast()
    """Faster paths of a step; switch one off to compare."""
    seed: int = 1
    """Seed of all randomness: initial weights, order of the data, dropout."""

    def __post_init__(self) -> None:
        refuse_all([UserError(text) for text in self._refused()])

    def _refused(self) -> Iterator[str]:
        for name in ("max_steps", "max_epochs", "accumulate", "keep", "max_nonfinite"):
            value = getattr(self, name)
            if value is not None and value < 1:
                yield f"trainer.{name} must be at least 1, but is {value}."
        if self.max_time is not None and not self.max_time > timedelta(0):
            yield f"trainer.max_time must be longer than nothing, as 15m, but is {self.max_time}."
        for name in ("clip_norm", "loss_upper_bound"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                yield f"trainer.{name} must be positive or null, but is {value}."
        if self.ema is not None and not 0 < self.ema < 1:
            yield f"trainer.ema must be above 0 and below 1 or null, but is {self.ema}."
        if self.swa_start is not None and self.ema is not None:
            yield "trainer.ema and trainer.swa_start are two averages. Set one of them to null."
        if (self.swa_start is not None and self.swa_start.timed) or self.swa_every.timed:
            yield "trainer.swa_start and trainer.swa_every are in steps, epochs or examples."
        if self.compile and self.data_parallelism == "fsdp":
            yield "trainer.compile is not for trainer.data_parallelism=fsdp. Leave one of them out."
        if self.on_nonfinite == "stop" and self.max_nonfinite != MAX_NONFINITE:
            yield (
                f"trainer.max_nonfinite is {self.max_nonfinite}, but trainer.on_nonfinite=stop "
                "ends the run with the first. Leave it out, or set on_nonfinite to skip or "
                "rollback."
            )
        if self.initialize_from and self.initialize is None:
            yield (
                f"trainer.initialize_from names {', '.join(self.initialize_from)}, but "
                "trainer.initialize no run to take it from. Name a run folder or a checkpoint."
            )

    @property
    def until(self) -> Until:
        if self.max_steps is None and self.max_epochs is None and self.max_time is None:
            return Until(epochs=DEFAULT_EPOCHS)
        return Until(self.max_steps, self.max_epochs, self.max_time)
