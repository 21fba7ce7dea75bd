"""Hydra's configs, composed and resolved by Hydra itself, and the run that they describe."""

import hashlib
import json
import logging
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.config.sources.own_files import files_below, own_files
from textmill.errors import MissingExtraError, UserError, worded
from textmill.run_folder.folder import RunFolder
from textmill.runs.resume import same_again, warn_of_versions

if TYPE_CHECKING:
    from omegaconf import DictConfig

LOG = logging.getLogger("textmill")
CODE = "code"
"""The folder in a run that keeps the project's own code: a record, never executed."""
LENGTH = ("max_epochs", "max_steps", "max_time", "min_epochs", "min_steps")
"""The arguments of a Trainer that say how long a run is."""

_OBSERVERS = frozenset({"extras", "hydra", "logger", "optimized_metric", "paths", "tags", "test"})
"""Sections that only observe a run or name places: they do not change what it computes."""
_TRAINER = frozenset(
    {
        *LENGTH, "accelerator", "benchmark", "default_root_dir", "detect_anomaly", "devices",
        "enable_checkpointing", "enable_model_summary", "enable_progress_bar", "logger",
        "log_every_n_steps", "num_nodes", "num_sanity_val_steps", "profiler",
        "resume_from_checkpoint", "strategy",
    }
)  # fmt: skip
_ANYWHERE = frozenset({"num_workers", "persistent_workers", "pin_memory", "prefetch_factor"})
_WATCHING = re.compile(r"(ProgressBar|ModelSummary|Monitor)$")
"""Names of the callbacks that only show something."""

_OPTUNA = {
    "_target_": "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper",
    "direction": "minimize",
    "n_trials": 20,
    "sampler": {"_target_": "optuna.samplers.TPESampler", "seed": None},
    "storage": None,
    "study_name": None,
    "n_jobs": 1,
    "params": {},
}
"""Settings of ``hydra/sweeper=optuna``; Hydra's own plugin for it needs Optuna below 3."""


class ConfigError(UserError):
    """A config cannot be composed, resolved or built; nothing was run."""


@dataclass(frozen=True)
class ComposedConfig:
    """A config as Hydra composed it, not yet resolved: the run folder may be a part of it."""

    folder: Path
    """The folder of configs."""
    name: str
    """The config's, without ``.yaml``."""
    words: tuple[str, ...]
    """The overrides."""
    _config: "DictConfig" = field(repr=False)

    @property
    def root(self) -> Path:
        """The folder above the configs, from which ``src.models.…`` is imported."""
        return self.folder.resolve().parent

    @property
    def sweeper(self) -> dict[str, Any]:
        """The settings of Hydra's sweeper, such as ``params`` and ``n_trials``, resolved."""
        with refusals(self.name):
            return _plain(self._config.hydra.sweeper)

    @property
    def is_multirun(self) -> bool:
        """Whether ``hydra.mode`` asks for several runs."""
        return "MULTIRUN" in str(self._config.hydra.mode)

    def resolved(self, run_folder: str, *, began: datetime | None = None) -> dict[str, Any]:
        """All settings as plain data, every ``${…}`` replaced.

        ``run_folder`` is ``${hydra:runtime.output_dir}``; ``began`` the time for ``${now:…}``, by
        default a word that is always the same.
        """
        from omegaconf import OmegaConf

        with refusals(self.name), self._as_hydra_has_it(run_folder, began):
            config = self._config.copy()
            OmegaConf.set_struct(config, False)
            del config["hydra"]
            return _plain(config)

    @contextmanager
    def _as_hydra_has_it(self, run_folder: str, began: datetime | None) -> Iterator[None]:
        """Makes ``${hydra:…}`` and ``${now:…}`` work; Lightning must not find them later."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.core.singleton import Singleton
        from omegaconf import OmegaConf, open_dict, read_write

        def now(form: str) -> str:
            return "NOW" if began is None else began.strftime(form)

        OmegaConf.register_new_resolver("now", now, replace=True)
        config = self._config.copy()  # it is made read-only
        with read_write(config), open_dict(config):
            config.hydra.runtime.output_dir = run_folder
        HydraConfig.instance().set_config(config)
        try:
            yield
        finally:
            Singleton._instances.pop(HydraConfig, None)


def _plain(config: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf

    found: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    return {str(name): value for name, value in found.items()}


@contextmanager
def refusals(name: str) -> Iterator[None]:
    """Turns Hydra's and OmegaConf's errors into a :class:`ConfigError` with their text."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException, ValueError) as error:  # Hydra raises it, too
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = "\n  ".join(line for line in lines if not line.startswith("object_type="))
        raise ConfigError(f"Hydra refuses the config {name}; nothing was run.\n  {text}") from error


def compose_config(folder: str | Path, name: str, words: Sequence[str]) -> ComposedConfig:
    """Composes a config as ``python train.py`` with ``@hydra.main`` would.

    Its name may be without ``.yaml``; words are overrides: ``trainer=cpu``, ``+a.b=1``.
    """
    try:
        from hydra import compose, initialize_config_dir
        from hydra.core.config_store import ConfigStore
    except ImportError:
        what = "textmill train --hydra"
        raise MissingExtraError("hydra-core", extra="lightning", what=what) from None
    if not Path(folder).is_dir():
        raise UserError(f"--hydra {folder}: wanted a folder of Hydra's configs; there is none.")
    store = ConfigStore.instance()
    store.store("optuna", _OPTUNA, group="hydra/sweeper", provider="textmill")
    for group in ("hydra/hydra_logging", "hydra/job_logging"):  # of a plugin the template names
        store.store("colorlog", {"version": 1}, group=group, provider="textmill")
    name, place = name.removesuffix(".yaml"), str(Path(folder).resolve())
    with refusals(name), initialize_config_dir(place, job_name=name, version_base="1.3"):
        config = compose(name, overrides=list(words), return_hydra_config=True)
    return ComposedConfig(Path(folder), name, tuple(words), config)


class HydraRun:
    """One training that a config describes: its settings, its key and its folder."""

    def __init__(self, composed: ComposedConfig) -> None:
        self.composed = composed
        keyed = composed.resolved("RUN")  # in place of the run folder, which the key names
        for name in ("model", "trainer"):
            if not isinstance(keyed.get(name), Mapping) or "_target_" not in keyed[name]:
                raise ConfigError(
                    f"the config {composed.name} has no section {name} with a _target_; nothing "
                    f"was run. It has: {', '.join(keyed) or 'nothing'}."
                )
        self.name = str(keyed.get("task_name") or composed.name)
        self.data = next((name for name in ("datamodule", "data") if keyed.get(name)), None)
        seed = keyed.get("seed")
        self.seed = seed if isinstance(seed, int) else 1
        self.length = {n: v for n in LENGTH if (v := keyed["trainer"].get(n)) is not None}
        self.code = [*_targets(keyed, "")]
        self.key = key_of(keyed, self.code, composed.root)
        """Twelve hex digits of the settings and of the code that they reach."""

    def folder(self, run_dir: str | Path | None, *, again: bool) -> RunFolder:
        folder = RunFolder.place(self.name, self.key, run_dir, again=again)
        if run_dir is not None and folder.has_other(self.key):
            raise UserError(
                f"{run_dir} holds another run (key {folder.info['key']}, this one has {self.key}). "
                f"Choose another {worded('--run-dir', 'run_dir')}."
            )
        return folder

    def is_finished(self, folder: RunFolder) -> bool:
        """Whether the run is at the end that is asked for; refuses one that is longer already."""
        before = folder.info.get("length") or {}
        if folder.finished and before != self.length:
            for name in ("max_epochs", "max_steps"):
                if 0 <= self.length.get(name, -1) < before.get(name, -1):
                    raise UserError(
                        f"{folder.path} is longer already (trainer.{name}={before[name]}, "
                        f"finished). Ask for that length, or train anew: {same_again()}."
                    )
        return folder.finished and before == self.length

    def write(self, folder: RunFolder, settings: Mapping[str, Any], began: datetime) -> None:
        warn_of_versions(folder)
        root, run = self.composed.root, folder.identity
        files = files_below(root, own_files(self.code))
        code = folder.write_sources(
            {f"{CODE}/{path.relative_to(root).as_posix()}": data for path, data in files.items()}
        )
        folder.write_config(None, settings, {}, swaps={}, run=run, code=code)
        tags = settings.get("tags")
        facts = {
            "recipe": self.name,
            "key": self.key,
            "id": run,
            "trained_by": "lightning",
            "config": str(self.composed.folder / f"{self.composed.name}.yaml"),
            "words": list(self.composed.words),
            "began": began.isoformat(timespec="seconds"),
            "tags": list(map(str, tags)) if isinstance(tags, list) else None,
            "length": self.length,
        }
        folder.write_start(root, facts)
        LOG.info("Run folder: %s", folder.path)


def _targets(node: Any, key: str) -> Iterator[Any]:
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, Mapping):
        return
    for name, item in node.items():
        yield from _targets(item, f"{key}{name}.")
    if isinstance(word := node.get("_target_"), str):
        try:
            yield pkgutil.resolve_name(word)
        except Exception as error:  # a person's own module may raise anything
            why = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{key}_target_={word}: {why}; nothing was run.") from error


def key_of(settings: Mapping[str, Any], code: Sequence[Any], root: Path) -> str:
    """Twelve hex digits of the settings that decide the result, and of the project's own code.

    Paths into the project count from its folder, so a project that was moved has the same keys.
    """
    kept = {name: value for name, value in settings.items() if name not in _OBSERVERS}
    kept["trainer"] = {n: v for n, v in kept["trainer"].items() if n not in _TRAINER}

    def deciding(value: Any) -> Any:
        if isinstance(value, Mapping):
            named = {str(k): v for k, v in value.items() if k not in _ANYWHERE}
            return {k: deciding(v) for k, v in named.items() if not watches(v)}
        if isinstance(value, list):
            return [deciding(item) for item in value]
        return value.replace(str(root), ".") if isinstance(value, str) else value

    def watches(value: Any) -> bool:
        target = value.get("_target_", "") if isinstance(value, Mapping) else ""
        return bool(_WATCHING.search(str(target)))

    files = {file.name: file.sha256 for file in own_files(code)}
    text = json.dumps({"settings": deciding(kept), "code": files}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
