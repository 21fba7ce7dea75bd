"""Any task of textmill under Lightning's Trainer: the module, its data and a trainer to match."""

import importlib
from typing import TYPE_CHECKING, Any

from textmill.config.public_names import public_name, public_names
from textmill.errors import MissingExtraError

if TYPE_CHECKING:
    from textmill.interop.lightning.data_module import as_datamodule as as_datamodule
    from textmill.interop.lightning.task_module import as_module as as_module
    from textmill.interop.lightning.trainer import as_trainer as as_trainer


def refuse_no_lightning(what: str) -> None:
    """Raises MissingExtraError if Lightning is not installed."""
    try:
        importlib.import_module("lightning.pytorch")
    except ModuleNotFoundError as error:
        raise MissingExtraError("lightning", extra="lightning", what=what) from error


def __getattr__(name: str) -> Any:
    if name in public_names(__name__):
        refuse_no_lightning(f"{__name__}.{name}")
    return public_name(__name__, name)


def __dir__() -> list[str]:
    return [*public_names(__name__)]
