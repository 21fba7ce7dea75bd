"""The fit itself: Lightning's Trainer fits and tests what a config describes."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch import seed_everything as seed_lightning
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from lightning.pytorch.utilities.model_helpers import is_overridden
from omegaconf import OmegaConf

from textmill.checkpoint.layout import is_checkpoint, step_of
from textmill.checkpoint.manifest import Manifest
from textmill.errors import TextmillError, UserError, raised_at
from textmill.interop.hydra.checkpoints import FolderCheckpointIO, GoingOn, refuse_no_checkpoint
from textmill.interop.hydra.config import HydraRun, refusals
from textmill.interop.hydra.reporting import ReportingLogger, split_and_name
from textmill.metrics.reporters import Reporters, RunInfo
from textmill.metrics.reporters.console import Console
from textmill.metrics.reporters.jsonl import JsonLines
from textmill.run_folder.folder import RunFolder
from textmill.runs.report.reporter import Html
from textmill.runtime.devices import Experiment
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
PASSED = ("callbacks", "logger", "plugins", "resume_from_checkpoint")
"""Arguments in a trainer's section that its constructor does not get as they are."""


def is_main() -> bool:
    """Whether this process is the first of those that Lightning's strategy has, or the only one."""
    return int(getattr(rank_zero_only, "rank", 0) or 0) == 0


def fit(
    run: HydraRun,
    folder: RunFolder,
    settings: Mapping[str, Any],
    *,
    extended: bool = False,
    begins: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Builds, fits and tests, or goes on with that; returns the result.

    ``extended`` says that the run was given another length; ``begins`` is called once all is built:
    a config that cannot be built leaves nothing.
    """
    io = FolderCheckpointIO(folder.path, writes=is_main())
    xp = Experiment(folder=folder.path, recipe=run.name, key=run.key)
    own = [JsonLines.Config().build(xp=xp), Console.Config().build(), Html.Config().build(xp=xp)]
    reporters = Reporters(own if io.store.writes else [])
    with StopSignals() as stop, _warnings_logged():
        try:
            info = RunInfo(recipe=run.name, folder=folder.path)
            going_on = GoingOn(io, reporters, info, stop=stop, extended=extended)
            return _fitted(run, folder, settings, going_on, begins)
        except TextmillError:
            raise
        except Exception as error:
            refused = isinstance(error, MisconfigurationException)
            if refused or "lightning" in Path(raised_at(error)).parts:
                raise UserError(f"Lightning cannot train this: {error}") from error
            error.add_note(f"in the fit of {folder.path}, by the project's own code")
            raise
        finally:
            reporters.close()


@contextmanager
def _warnings_logged() -> Iterator[None]:
    """Logs warnings as textmill's lines; those of Lightning itself go to the log file alone."""
    logger = logging.getLogger("lightning.pytorch")
    level, shown = logger.level, warnings.showwarning

    def tell(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any
    ) -> None:
        old = issubclass(category, DeprecationWarning | FutureWarning | PendingDeprecationWarning)
        text = str(message).partition("\n")[0] or category.__name__
        LOG.warning("%s", text, extra={"to_file": old or "lightning" in Path(filename).parts})

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = tell  # type: ignore[assignment]  # it takes more
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.setLevel(level)
            warnings.showwarning = shown


def _built(
    run: HydraRun, folder: RunFolder, settings: Mapping[str, Any], going_on: GoingOn
) -> tuple[LightningModule, LightningDataModule | None, Trainer]:

    def instance(section: Any, **given: Any) -> Any:
        with refusals(run.composed.name):
            return instantiate(OmegaConf.create(section), **given)

    def checked(name: str, made: Any, kind: type[Any]) -> Any:
        if not isinstance(made, kind):
            raise UserError(
                f"{name}: wanted a {kind.__name__}, found a {type(made).__qualname__} "
                f"({settings[name]['_target_']}). A class inherits from "
                f"lightning.pytorch.{kind.__name__}."
            )
        return made

    def several(section: Any) -> list[Any]:
        """The callbacks, loggers or plugins: one described, or several."""
        if isinstance(section, Mapping):
            section = [section] if "_target_" in section else [*section.values()]
        return [instance(each) for each in section or () if each and "_target_" in each]

    seed_lightning(run.seed, workers=True, verbose=False)
    data = None
    if run.data:
        data = checked(run.data, instance(settings[run.data]), LightningDataModule)
    model = checked("model", instance(settings["model"]), LightningModule)
    logger = ReportingLogger(going_on.reporters)
    callbacks: list[Callback] = [going_on, *several(settings.get("callbacks"))]
    options: dict[str, Any] = {"enable_progress_bar": False, "enable_model_summary": False}
    options |= {"default_root_dir": str(folder.path), **settings["trainer"]}
    if not any(isinstance(each, Checkpoint) for each in callbacks):
        options["enable_checkpointing"] = False  # the run's own are enough
    trainer = instance(
        {name: value for name, value in options.items() if name not in PASSED},
        callbacks=callbacks,
        logger=[logger, *several(settings.get("logger"))],
        plugins=[*several(options.get("plugins")), going_on.io],
        _convert_="partial",
    )
    logger.trainer, logger.seconds = checked("trainer", trainer, Trainer), going_on.seconds
    return model, data, trainer


def _fitted(
    run: HydraRun,
    folder: RunFolder,
    settings: Mapping[str, Any],
    going_on: GoingOn,
    begins: Callable[[], None],
) -> dict[str, Any]:
    io = going_on.io
    newest = io.store.newest_good()
    going_on.resumes = newest is not None
    model, data, trainer = _built(run, folder, settings, going_on)
    asked = settings.get("ckpt_path") or settings["trainer"].get("resume_from_checkpoint")
    weights: str | None = str(asked) if asked else None
    if weights is not None and newest is None:
        refuse_no_checkpoint(Path(weights))
    begins()
    if newest is not None:
        path, manifest = newest
        io.forget_after(manifest.step)
        going_on.saved_step, weights = manifest.step, str(path)
        LOG.info("Going on from step %s.", f"{manifest.step:,}")
    if settings.get("train", True):
        trainer.fit(model, datamodule=data, ckpt_path=weights)
        weights = None
    result: dict[str, Any] = {"steps": trainer.global_step, "epochs": trainer.current_epoch}
    chosen = next((c for c in trainer.checkpoint_callbacks if getattr(c, "monitor", None)), None)
    best = None
    if isinstance(chosen, ModelCheckpoint):
        name = split_and_name(str(chosen.monitor), "valid")[1]
        better = "higher" if chosen.mode == "max" else "lower"
        if io.store.writes:
            folder.write_info(selected_by={"metric": name, "better": better})
        if chosen.best_model_path and chosen.best_model_score is not None:
            best = Path(chosen.best_model_path)
            step = Manifest.read(best).step if is_checkpoint(best) else step_of(best)
            result["best"] = {"step": step, name: float(chosen.best_model_score)}
    elif io.store.writes:
        LOG.info("The last weights are used: no ModelCheckpoint in callbacks has a monitor.")
    if _is_tested(settings, model, data):
        last = io.own_path(trainer.global_step)
        used = best or weights or (last if last.is_dir() else None)
        tested = None if used is None else str(used)
        values = trainer.test(model, datamodule=data, ckpt_path=tested, verbose=False)
        result["test"] = {
            split_and_name(n, "test")[1]: float(v) for each in values for n, v in each.items()
        }
    if io.store.writes:
        going_on.reporters.end(result)
    return result


def _is_tested(
    settings: Mapping[str, Any], model: LightningModule, data: LightningDataModule | None
) -> bool:
    """What ``test`` of the config says; by default, whether there is what a test needs."""
    if settings.get("test") is not None:
        return bool(settings["test"])
    return is_overridden("test_step", model, LightningModule) and (
        is_overridden("test_dataloader", model, LightningModule)
        or (data is not None and is_overridden("test_dataloader", data, LightningDataModule))
    )
