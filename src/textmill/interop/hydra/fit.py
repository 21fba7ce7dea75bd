"""The fit itself: what a config describes is built, fitted and tested by Lightning's Trainer."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
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
from textmill.interop.hydra.checkpoints import FolderCheckpointIO, refuse_no_checkpoint
from textmill.interop.hydra.logged_names import split_and_name
from textmill.interop.hydra.logger import ReportingLogger
from textmill.interop.hydra.monitored import ReturnedLoss, not_logged
from textmill.interop.hydra.resume import GoingOn
from textmill.interop.hydra.targets import PASSED
from textmill.interop.lightning.older_names import modern_trainer
from textmill.metrics.reporters import Reporters, RunInfo
from textmill.metrics.reporters.console import Console
from textmill.metrics.reporters.jsonl import JsonLines
from textmill.run_folder.folder import RunFolder
from textmill.runs.html_reporter import Html
from textmill.runtime.devices import Experiment
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
FOUND_BY_LIGHTNING = ("last", "hpc")
"""Names of checkpoints that are no paths."""
DEFAULTS = {"enable_progress_bar": False, "enable_model_summary": False}
"""Arguments of the Trainer that are otherwise than Lightning's where a config has none."""


def is_main() -> bool:
    """Whether this process is the first of those that Lightning's strategy has, or the only one."""
    return int(getattr(rank_zero_only, "rank", 0) or 0) == 0


@dataclass(frozen=True)
class Described:
    """What a config describes, and where its run is."""

    folder: RunFolder
    """The run's."""
    settings: Mapping[str, Any]
    """The resolved config."""
    name: str
    """What the run is called."""
    key: str
    """The run's key."""
    seed: int
    """What all random generators begin with."""
    data: str | None
    """The section of the data; None where the module has its own."""


def fit(
    described: Described, *, extend: bool, begins: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Builds, fits and tests, or goes on with that; gives the result.

    Args:
        described: What is fitted.
        extend: Whether the run was given another length.
        begins: Called once all is built: what cannot be has left nothing until then.

    Raises:
        UserError: Lightning refuses what it is given, or a class cannot be built.
        RunStoppedError: A signal came.
    """
    with StopSignals() as stop, _told(), _refused():
        fitting = _Fitting(described, stop)
        try:
            return fitting.result(extend=extend, begins=begins or (lambda: None))
        except Exception as error:
            if isinstance(error, TextmillError | MisconfigurationException):
                raise
            if "lightning" in Path(raised_at(error)).parts:  # a callback's, with none of another's
                raise MisconfigurationException(str(error)) from error
            error.add_note(f"in the fit of {described.folder.path}, by the project's own code")
            raise
        finally:
            fitting.reporters.close()


@contextmanager
def _refused() -> Iterator[None]:
    """Lightning's own refusals, in its words."""
    try:
        yield
    except MisconfigurationException as error:
        raise UserError(f"Lightning cannot train this: {error}") from error


@contextmanager
def _refused_monitors(trainer: Trainer) -> Iterator[None]:
    """Says what to do where a callback has no use for what the module logs."""
    try:
        yield
    except (MisconfigurationException, RuntimeError) as error:
        missing = not_logged(trainer)
        if not any(name in str(error) for name in missing):
            raise
        first = missing[0]
        raise UserError(
            f"callbacks monitor {', '.join(missing)}, which the module does not log. In its "
            f"validation_step: self.log({first!r}, ...); a loss may be returned instead. Or leave "
            f"the callbacks out: ~callbacks. It logs: {_logged(trainer) or 'nothing'}."
        ) from error


def _logged(trainer: Trainer) -> str:
    return ", ".join(sorted(trainer.callback_metrics))


@contextmanager
def _told() -> Iterator[None]:
    """Lets what Lightning says go where textmill's lines go; its hints go to the log alone."""
    logger = logging.getLogger("lightning.pytorch")
    level, shown = logger.level, warnings.showwarning

    def tell(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any
    ) -> None:
        old = issubclass(category, DeprecationWarning | FutureWarning | PendingDeprecationWarning)
        said = str(message).partition("\n")[0] or category.__name__
        LOG.warning("%s", said, extra={"to_file": old or "lightning" in Path(filename).parts})

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = tell  # type: ignore[assignment]  # it takes more
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.setLevel(level)
            warnings.showwarning = shown


class _Fitting:
    """The objects of one fit."""

    def __init__(self, described: Described, stop: StopSignals) -> None:
        self.run, self.stop = described, stop
        self.folder, self.settings = described.folder, described.settings
        self.io = io = FolderCheckpointIO(self.folder.path, writes=is_main())
        self.config: Any = OmegaConf.create(dict(self.settings))
        xp = Experiment(folder=self.folder.path, recipe=described.name, key=described.key)
        self.reporters = Reporters(
            [JsonLines.Config().build(xp=xp), Console.Config().build(), Html.Config().build(xp=xp)]
            if io.store.writes
            else []
        )

    def result(self, *, extend: bool, begins: Callable[[], None]) -> dict[str, Any]:
        """Fits and tests."""
        seed_lightning(self.run.seed, workers=True, verbose=False)
        data = self._built(self.run.data, LightningDataModule) if self.run.data else None
        model = self._built("model", LightningModule)
        newest = self.io.store.newest_good()
        trainer, going_on = self._trainer(resumes=newest is not None, extend=extend)
        asked = self.settings.get("ckpt_path") or modern_trainer(self.settings["trainer"])[1]
        weights: str | None = str(asked) if asked else None
        if weights not in (None, *FOUND_BY_LIGHTNING) and newest is None:
            refuse_no_checkpoint(Path(weights))
        begins()
        if newest is not None:
            if newest.reason:
                LOG.warning("%s", newest.reason)
            self.io.forget_after(newest.manifest.step)
            going_on.saved_step = newest.manifest.step
            weights = str(newest.path)
            LOG.info("Going on from step %s.", f"{newest.manifest.step:,}")
        if self.settings.get("train", True):
            with _refused_monitors(trainer):
                trainer.fit(model, datamodule=data, ckpt_path=weights)
            weights = None
        result: dict[str, Any] = {"steps": trainer.global_step, "epochs": trainer.current_epoch}
        best, path = _best(trainer)
        result |= {"best": best} if best else {}
        if self._is_tested(model, data):
            own = self.io.own_path(trainer.global_step)
            used = path or weights or (str(own) if own.is_dir() else None)
            tested = trainer.test(model, datamodule=data, ckpt_path=used, verbose=False)
            result["test"] = {
                split_and_name(n, "test")[1]: float(v) for each in tested for n, v in each.items()
            }
        if self.io.store.writes:
            self._select(trainer)
            self.reporters.end(result)
        return result

    def _is_tested(self, model: LightningModule, data: LightningDataModule | None) -> bool:
        """Whether the config asks for a test, or says nothing, and there is what is needed."""
        asked = self.settings.get("test")
        if asked is not None:
            return bool(asked)
        loads = [
            is_overridden("test_dataloader", model, LightningModule),
            data is not None and is_overridden("test_dataloader", data, LightningDataModule),
        ]
        return is_overridden("test_step", model, LightningModule) and any(loads)

    def _built(self, name: str, kind: type) -> Any:
        """What a section describes.

        Raises:
            UserError: Its class refuses its arguments, or it is of another kind.
        """
        found = self._instance(self.config[name], name)
        if not isinstance(found, kind):
            raise UserError(
                f"{name}: wanted a {kind.__name__}, found a {type(found).__qualname__} "
                f"({self.settings[name]['_target_']}). A class inherits from "
                f"lightning.pytorch.{kind.__name__}."
            )
        return found

    def _instance(self, node: Any, name: str, **given: Any) -> Any:
        try:
            return instantiate(node, **given)
        except InstantiationException as error:
            cause = error.__cause__
            if cause is None:
                raise UserError(f"{name}: {error}") from error
            at = "" if isinstance(cause, MisconfigurationException) else raised_at(cause)
            said = f"{type(cause).__name__}: {cause}"
            raise UserError(f"{name} cannot be built: {said}{f' ({at})' if at else ''}") from cause

    def _several(self, name: str) -> list[Any]:
        """The callbacks, or loggers: one described, or several by their names."""
        section = self.settings.get(name)
        if not section or not isinstance(section, Mapping):
            return []
        if "_target_" in section:
            return [self._instance(self.config[name], name)]
        wanted = [key for key, value in section.items() if value and "_target_" in value]
        return [self._instance(self.config[name][key], f"{name}.{key}") for key in wanted]

    def _trainer(self, *, resumes: bool, extend: bool) -> tuple[Trainer, GoingOn]:
        """The Trainer with all that makes its fit a run of textmill."""
        options, _, _ = modern_trainer(self.settings["trainer"])
        info = RunInfo(recipe=self.run.name, folder=self.folder.path)
        going_on = GoingOn(
            self.io, self.reporters, info, stop=self.stop, resumes=resumes, extended=extend
        )
        callbacks: list[Callback] = [going_on, ReturnedLoss(), *self._several("callbacks")]
        logger = ReportingLogger(self.reporters, writes=self.io.store.writes)
        own = [self._instance(OmegaConf.create(p), "trainer.plugins") for p in _plugins(options)]
        if not any(isinstance(each, Checkpoint) for each in callbacks):
            options["enable_checkpointing"] = False  # the run's own are enough
        options = {**DEFAULTS, "default_root_dir": str(self.folder.path), **options}
        trainer = self._instance(
            OmegaConf.create({k: v for k, v in options.items() if k not in PASSED}),
            "trainer",
            callbacks=callbacks,
            logger=[logger, *self._several("logger")],
            plugins=[*own, self.io],
            _convert_="partial",
        )
        if not isinstance(trainer, Trainer):
            raise UserError(f"trainer: wanted a Trainer, found a {type(trainer).__qualname__}.")
        logger.trainer, logger.seconds = trainer, going_on.seconds
        return trainer, going_on

    def _select(self, trainer: Trainer) -> None:
        """Keeps by what the best weights were chosen, or says that nothing was."""
        chosen = _selecting(trainer)
        if chosen is not None:
            better = "higher" if chosen.mode == "max" else "lower"
            name = split_and_name(str(chosen.monitor), "valid")[1]
            self.folder.write_info(selected_by={"metric": name, "better": better})
            return
        logged = sorted(n for n in trainer.callback_metrics if split_and_name(n)[0] == "valid")
        if logged:
            LOG.info(
                "The last weights are used: no ModelCheckpoint in callbacks has a monitor, such as "
                "%s.",
                logged[0],
            )


def _plugins(options: Mapping[str, Any]) -> list[Any]:
    found = options.get("plugins") or []
    return list(found) if isinstance(found, list) else [found]


def _selecting(trainer: Trainer) -> ModelCheckpoint | None:
    """The callback that selects the best weights, as Lightning's ``ckpt_path="best"`` has it."""
    found = [
        c for c in trainer.checkpoint_callbacks if isinstance(c, ModelCheckpoint) and c.monitor
    ]
    return found[0] if found else None


def _best(trainer: Trainer) -> tuple[dict[str, Any] | None, str | None]:
    """The step and value of the best weights, and where they are."""
    chosen = _selecting(trainer)
    if chosen is None or not chosen.best_model_path or chosen.best_model_score is None:
        return None, None
    place = Path(chosen.best_model_path)
    step = Manifest.read(place).step if is_checkpoint(place) else step_of(place)
    name = split_and_name(str(chosen.monitor), "valid")[1]
    return {"step": step, name: float(chosen.best_model_score)}, str(place)
