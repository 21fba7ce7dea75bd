"""The older names of Lightning: the package ``pytorch_lightning``, arguments of its Trainer."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from typing_extensions import override

from textmill.errors import MissingExtraError

OLD, NEW = "pytorch_lightning", "lightning.pytorch"


def refuse_no_lightning(what: str) -> None:
    """Refuses what needs Lightning where it is not installed.

    Raises:
        MissingExtraError: It is not.
    """
    try:
        importlib.import_module(NEW)
    except ModuleNotFoundError as error:
        raise MissingExtraError("lightning", extra="lightning", what=what) from error


class _Alias(MetaPathFinder, Loader):
    """Finds ``pytorch_lightning.x`` as ``lightning.pytorch.x``: one class, whatever its name."""

    def __init__(self) -> None:
        self.specs: dict[str, ModuleSpec | None] = {}

    @override
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != OLD and not name.startswith(f"{OLD}."):
            return None
        try:
            module = importlib.import_module(as_lightning(name))
        except ModuleNotFoundError:
            return None
        self.specs[name] = module.__spec__
        return ModuleSpec(name, self, is_package=hasattr(module, "__path__"))

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(as_lightning(spec.name))

    @override
    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = self.specs[module.__spec__.name]  # the import put the alias's there


def as_lightning(name: str) -> str:
    """A dotted name with ``pytorch_lightning`` as it is called now.

    Example:
        >>> as_lightning("pytorch_lightning.callbacks.EarlyStopping")
        'lightning.pytorch.callbacks.EarlyStopping'
        >>> as_lightning("pytorch_lightning_bolts.x")
        'pytorch_lightning_bolts.x'
    """
    return NEW + name[len(OLD) :] if name == OLD or name.startswith(f"{OLD}.") else name


@contextmanager
def older_names() -> Iterator[None]:
    """While the block runs, ``pytorch_lightning`` is ``lightning.pytorch``, installed or not.

    The two packages have the same classes twice, and a Trainer of one refuses a module of the
    other.
    """
    finder, aside = _Alias(), _taken()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken()
        sys.modules.update(aside)


def _taken() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == OLD or name.startswith(f"{OLD}.")]
    return {name: sys.modules.pop(name) for name in names}


def _off(value: Any) -> bool:
    return value not in (0, False, None)


_RENAMED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "checkpoint_callback": ("enable_checkpointing", bool),
    "distributed_backend": ("strategy", str),
    "progress_bar_refresh_rate": ("enable_progress_bar", _off),
    "reload_dataloaders_every_epoch": ("reload_dataloaders_every_n_epochs", int),
    "replace_sampler_ddp": ("use_distributed_sampler", bool),
    "terminate_on_nan": ("detect_anomaly", bool),
    "weights_summary": ("enable_model_summary", _off),
}
"""Arguments of older versions, with what they are called now and how a value is turned."""

_DEVICES = {"gpus": "gpu", "tpu_cores": "tpu", "num_processes": "cpu"}
_GONE = frozenset(
    {
        "amp_backend", "amp_level", "auto_select_gpus", "flush_logs_every_n_steps", "ipus",
        "log_gpu_memory", "move_metrics_to_cpu", "prepare_data_per_node", "process_position",
        "track_grad_norm", "weights_save_path",
    }
)  # fmt: skip
"""Arguments that Lightning 2 has dropped, and that no result depends on."""


def modern_trainer(section: Mapping[str, Any]) -> tuple[dict[str, Any], str | None, list[str]]:
    """The arguments of a Trainer of any version as Lightning 2 has them.

    Returns:
        The arguments; what ``resume_from_checkpoint`` named; a line for each that was changed.

    Example:
        >>> modern_trainer({"gpus": 0, "resume_from_checkpoint": None, "max_epochs": 5})
        ({'max_epochs': 5, 'accelerator': 'cpu', 'devices': 1}, None, ['trainer.gpus=0: accelerator\
=cpu devices=1'])
    """
    found, notes, checkpoint = dict(section), [], None
    for name in [*found]:
        value = found[name]
        if name == "resume_from_checkpoint":
            checkpoint = found.pop(name)
        elif name in _DEVICES:
            del found[name]
            devices = {"accelerator": _DEVICES[name], "devices": value}
            if not _off(value):
                devices = {"accelerator": "cpu", "devices": 1} if name == "gpus" else {}
            found |= devices
            shown = " ".join(f"{n}={v}" for n, v in devices.items()) or "left out"
            notes.append(f"trainer.{name}={value}: {shown}")
        elif name in _RENAMED:
            now, turn = _RENAMED[name]
            found[now] = turn(found.pop(name))
            notes.append(f"trainer.{name}={value}: {now}={found[now]}")
        elif name in _GONE:
            del found[name]
            notes.append(f"trainer.{name}={value}: left out, Lightning has it no more")
    return found, checkpoint, notes
