"""Lightning's Trainer with the length, the precision and the selection of a recipe."""

from typing import Any

from textmill.errors import UserError
from textmill.interop.lightning.data_module import RecipeData
from textmill.models.layers.precision import Numbers
from textmill.training.trainer_config import TrainerConfig

PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}
"""Lightning's names of the precisions."""


def as_trainer(data: Any, **arguments: Any) -> Any:
    """Makes Lightning's Trainer from the settings ``trainer`` of the recipe in the data module.

    The arguments are the Trainer's, and replace those from the recipe.
    """
    if not isinstance(data, RecipeData):
        found = type(data).__name__
        raise UserError(f"as_trainer takes what as_datamodule(recipe) has made; found a {found}.")
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

    trainer = data.prepared.trainer
    wanted = trainer_arguments(trainer.config, trainer.updates.arithmetic.numbers, given=arguments)
    selection = trainer.selection
    keeps = arguments.get("enable_checkpointing") is not False and "callbacks" not in arguments
    if selection is not None and keeps:
        config, mode = selection.config, "max" if selection.sign > 0 else "min"
        best = ModelCheckpoint(monitor=f"valid/{config.metric}", mode=mode)
        wanted["callbacks"] = [best]
        if config.patience is not None:
            named: dict[str, Any] = {"monitor": best.monitor, "mode": mode}
            named |= {"patience": config.patience, "min_delta": config.min_delta}
            wanted["callbacks"].append(EarlyStopping(**named))
    return Trainer(**{**wanted, **arguments})


def trainer_arguments(
    settings: TrainerConfig, numbers: Numbers, *, given: Any = ()
) -> dict[str, Any]:
    """The arguments of Lightning's Trainer for settings of textmill's, without those ``given``."""
    until, evaluate = settings.until, settings.evaluate_every
    made: dict[str, Any] = {
        "max_steps": until.steps or -1,
        "max_epochs": until.epochs or -1,
        "max_time": until.time,
        "accumulate_grad_batches": settings.accumulate,
        "precision": PRECISIONS[numbers],
        "num_sanity_val_steps": 0,
        "check_val_every_n_epoch": 1,
    }
    if settings.report_every.unit == "steps":
        made["log_every_n_steps"] = settings.report_every.count
    if evaluate.unit == "epochs":
        made["check_val_every_n_epoch"] = evaluate.count
    elif evaluate.unit == "steps":
        every = evaluate.count * settings.accumulate  # Lightning counts batches
        made |= {"val_check_interval": every, "check_val_every_n_epoch": None}
    elif "val_check_interval" not in given and "check_val_every_n_epoch" not in given:
        raise UserError(
            f"trainer.evaluate_every is {evaluate}, and Lightning evaluates after so many batches "
            "or epochs. Give as_trainer val_check_interval or check_val_every_n_epoch."
        )
    return made
