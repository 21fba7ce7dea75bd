"""Any task of textmill under Lightning's Trainer: the module, its data and a trainer to match."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.interop.lightning.data_module import as_datamodule as as_datamodule
    from textmill.interop.lightning.task_module import as_module as as_module
    from textmill.interop.lightning.trainer import as_trainer as as_trainer

__getattr__, __dir__ = on_first_use(__name__)
