"""What a run needs of disk and memory, known before its first step, and refused in time."""

import logging
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from textmill.checkpoint.tensors import tensors_size
from textmill.checkpoint.writing import split_parts
from textmill.data.batches import EpochBatches
from textmill.errors import StorageError, UserError, worded
from textmill.models import fast
from textmill.preflight.step_memory import StepBytes, optimizer_bytes, step_bytes, weight_bytes
from textmill.runtime import memory
from textmill.runtime.disk import operations
from textmill.runtime.files import size_of
from textmill.runtime.memory import host_room, keep_memory
from textmill.tasks.batches.row_batches import RowBatches
from textmill.training.data_parallel.fsdp import is_sharded
from textmill.training.linear_trainer import LinearTrainer
from textmill.training.loop import Trainer

LOG = logging.getLogger("textmill")

CHECKPOINT_REST = 64 << 10
"""Bytes of a checkpoint for its list of files, its pointers and the folders' own blocks."""


SHORT = (
    "There is less memory than this run takes: it may be killed, or swap. Take smaller batches "
    "(train_data.max_tokens; auto finds what fits), or a smaller model."
)


@dataclass(frozen=True)
class ResourceEstimate:
    """What a run takes; the numbers are kept in ``run.json`` and not measured again."""

    checkpoint: int
    """Bytes of one checkpoint."""
    memory: int
    """Bytes held at most: on a CPU by the process, on another device by torch."""
    batches: bool
    """Whether ``memory`` has what the largest batch takes; of ready batches it is not known."""
    device: str
    """Kind of the device."""

    def tell(self, trainer: Trainer) -> None:
        """Says in one line what is needed and what is there; what is short is a warning.

        Raises:
            StorageError: Not even the next checkpoint fits on the disk.
        """
        folder, config = trainer.checkpoints.folder.parent, trainer.config
        count, which = _at_a_time(config.keep, rollback=config.on_nonfinite == "rollback")
        free, there = operations.free(folder), size_of(trainer.checkpoints.folder)
        if free < self.checkpoint:
            raise StorageError(
                f"A checkpoint takes {as_size(self.checkpoint)}, but {folder} has "
                f"{as_size(free)} free. Make room, or give another disk with "
                f"{worded('--run-dir', 'run_dir')}."
            )
        words, short = self.memory_words(trainer.task.device)
        disk = f"{as_size(count * self.checkpoint)} of disk for {count} checkpoints of "
        disk += f"{as_size(self.checkpoint)}, of {as_size(free + there)}"
        LOG.info("Needed: %s; %s.", disk, words)
        if free + there < count * self.checkpoint:
            LOG.warning(
                "The disk has no room for %d checkpoints (%s): make room, or lower trainer.keep.",
                count,
                which,
            )
        if short:
            LOG.warning(short)

    def memory_words(self, device: torch.device) -> tuple[str, str | None]:
        """The memory that is needed, of what is there; and what to do where that is too little."""
        room = memory.room(str(device))
        most = None if room is None else room + _held(str(device))
        what = "memory" if self.device == "cpu" else f"{self.device} memory"
        rest = "" if self.batches else " besides what a batch takes"
        of = "" if most is None else f", of {as_size(most)}"
        words = f"about {as_size(self.memory)} of {what} at most{rest}{of}"
        return words, SHORT if most is not None and most < self.memory else None


def as_size(count: int) -> str:
    """Bytes as people read them.

    Example:
        >>> as_size(1_500), as_size(2_340_000_000)
        ('0.0 MB', '2.3 GB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 999_950_000 else f"{count / 1e6:,.1f} MB"


def _at_a_time(keep: int, *, rollback: bool) -> tuple[int, str]:
    """How many checkpoints a run has at most, and which these are."""
    goal = "the one that a rollback goes to, " if rollback else ""
    which = f"trainer.keep={keep}, the best, {goal}and the one being written"
    return keep + 2 + rollback, which


def room_for(size: int, keep: int | None, *, rollback: bool = False) -> str:
    """What the checkpoints of a run take here, where its trainer says how many it keeps.

    With ``rollback`` one more of ``size`` bytes is kept, to go back to.

    Raises:
        StorageError: The disk has not so much room.
    """
    if keep is None:
        return ""
    count, which = _at_a_time(keep, rollback=rollback)
    free = operations.free(Path.cwd())
    needed = count * size
    if free < needed:
        raise StorageError(
            f"{count} checkpoints of {size / 1e6:,.1f} MB ({which}) need {needed / 1e6:,.1f} MB, "
            f"but {Path.cwd()} has {free / 1e6:,.1f} MB free. Make room, lower trainer.keep, or "
            "run on another disk."
        )
    return f", {count} at a time: {needed / 1e6:,.1f} MB, of {free / 1e6:,.1f} MB free"


def recorded_estimate(
    record: Mapping[str, Any] | None, device: torch.device
) -> ResourceEstimate | None:
    """The need of a run that is gone on with, where it was measured on a device of this kind.

    Example:
        >>> from dataclasses import asdict
        >>> need = ResourceEstimate(checkpoint=1, memory=2, batches=True, device="cpu")
        >>> recorded_estimate(asdict(need), torch.device("cpu")) == need
        True
        >>> recorded_estimate(asdict(need), torch.device("cuda:0")) is None
        True
    """
    kinds = {field.name: field.type for field in fields(ResourceEstimate)}
    if not record or {name: type(value) for name, value in record.items()} != kinds:
        return None  # not one that a run writes
    return ResourceEstimate(**record) if record["device"] == device.type else None


def estimate_resources(trainer: Trainer) -> ResourceEstimate:
    """Measures what a run will need without a step of it, by ``textmill.preflight.step_memory``."""
    task, device = trainer.task, str(trainer.task.device)
    state = optimizer_bytes(trainer.optimizer)
    shares = trainer.updates.ranks.size if trainer.config.data_parallelism == "fsdp" else 1
    learning = weight_bytes(task.module, trained=True)
    held, step, code = _held(device), _step(trainer), 0
    if step is not None and task.device.type == "cpu":
        # Pages of torch's own code and of its libraries that the first pass has brought in.
        code = max(0, _held(device) - held - step.tried)
    average = learning if trainer.config.ema is not None else 0
    return ResourceEstimate(
        checkpoint=_checkpoint_bytes(trainer) + state,
        memory=held
        + code
        + (state + average) // shares
        + (learning if step is None else step.whole),
        batches=step is not None,
        device=task.device.type,
    )


def _step(trainer: Trainer) -> StepBytes | None:
    """What a step holds; None where it is not known: of ready batches, or with too little room."""
    task, data = trainer.task, trainer.data.data
    if not (isinstance(data, RowBatches) and isinstance(data.batches, EpochBatches)):
        return None
    if isinstance(trainer, LinearTrainer):
        solving = trainer.solving_bytes
        return None if solving is None else StepBytes(whole=solving, tried=0)
    if is_sharded(task.module):  # by the recipe: one rank alone cannot compute with it
        return None
    room = memory.room(str(task.device))
    if room is not None and room < 3 * weight_bytes(task.module):  # the trial has a copy
        return None
    if trainer.config.fast.keep_memory:
        keep_memory()
    numbers, config = trainer.updates.autocast, trainer.config
    try:
        with fast.using(trainer.config.fast):
            return step_bytes(
                task,
                data.batches,
                numbers=numbers,
                accumulate=config.accumulate,
                checkpointing=config.activation_checkpointing,
            )
    except Exception:  # step 1 meets it again, and says which rows it was
        return None


def _held(device: str) -> int:
    """Bytes held now: of a CPU by the process, of another device by torch."""
    if device.startswith("cuda"):
        return torch.cuda.memory_allocated(device)
    return memory.resident()


def _checkpoint_bytes(trainer: Trainer) -> int:
    """Bytes of a checkpoint as it would be now: the optimizer has no state yet."""
    tensors, document = split_parts(0, {**trainer.parts, "optimizer": _Empty()})
    with tempfile.TemporaryDirectory(prefix="textmill-need-") as folder:
        trainer.task.text.save(Path(folder))
        text = size_of(Path(folder))
    return sum(map(tensors_size, tensors.values())) + len(document) + text + CHECKPOINT_REST


class _Empty:
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        return


MOST = 1 << 44
"""Bytes where the system does not say what it has."""
MADE = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})


@contextmanager
def within_memory(room: int | None = None) -> Iterator[None]:
    """Refuses, while it lasts, to make tensors or modules that are larger than memory.

    Without it the process is killed, or torch raises an error of its allocator. The room is in
    bytes, by default those of the machine.

    Raises:
        UserError: One tensor, or all parameters together, would take more.

    Example:
        >>> with within_memory(1_000_000):
        ...     nn.Embedding(9, 10**12)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        textmill.errors.UserError: a table of 9 x 1,000,000,000,000 numbers takes 36,000.0 GB of ...
    """
    most = (MOST if (found := host_room()) is None else found) if room is None else room
    held, seen = 0, set[int]()

    def count(module: nn.Module, name: str, value: Tensor | None) -> None:
        nonlocal held
        if value is None or value.is_meta or id(value) in seen:  # shared by two modules
            return
        seen.add(id(value))
        held += value.numel() * value.element_size()
        if held > most:
            what = f"the parameters up to {type(module).__name__}.{name}"
            raise _too_large(what, held, most, verb="take")

    hook = register_module_parameter_registration_hook(count)
    try:
        with _Sized(most):
            yield
    finally:
        hook.remove()


class _Sized(TorchFunctionMode):
    """Looks at the size of what is made before it is made."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    @override
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func in MADE:
            first = args[0] if args else given.get("size", ())
            sizes = first if isinstance(first, tuple | list) else args
            if all(isinstance(size, int) for size in sizes):
                dtype = given.get("dtype") or torch.get_default_dtype()
                size = math.prod(sizes) * dtype.itemsize
                if size > self.most and str(given.get("device")) != "meta":
                    what = f"a table of {' x '.join(f'{n:,}' for n in sizes)} numbers"
                    raise _too_large(what, size, self.most, verb="takes")
        return func(*args, **given)


def _too_large(what: str, size: int, most: int, *, verb: str) -> UserError:
    return UserError(
        f"{what} {verb} {as_size(size)} of memory, and there are {as_size(most)}. Make the model "
        "smaller: its sizes are settings of model."
    )
