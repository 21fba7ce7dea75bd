"""A folder of Hydra's configs, composed and resolved by Hydra itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

_OPTUNA = {
    "_target_": "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper",
    "direction": "minimize",
    "n_trials": 20,
    "max_failure_rate": 0.0,
    "sampler": {"_target_": "optuna.samplers.TPESampler", "seed": None},
    "storage": None,
    "study_name": None,
    "n_jobs": 1,
    "params": {},
}
"""``hydra/sweeper=optuna``, whose own plugin needs Optuna below 3: textmill reads its settings."""


class ConfigError(UserError):
    """A config that cannot be composed, resolved or built; nothing was run."""


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
        """The folder above the configs: what ``src.models.…`` is imported from."""
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

        Args:
            run_folder: What ``${hydra:runtime.output_dir}`` stands for.
            began: What ``${now:…}`` tells; None: a word that is always the same.

        Raises:
            ConfigError: A name leads to nothing, or a value is missing.
        """
        from omegaconf import OmegaConf

        with refusals(self.name), self._as_hydra_has_it(run_folder, began):
            config = self._config.copy()
            OmegaConf.set_struct(config, False)
            del config["hydra"]
            return _plain(config)

    @contextmanager
    def _as_hydra_has_it(self, run_folder: str, began: datetime | None) -> Iterator[None]:
        """Lets ``${hydra:…}`` and ``${now:…}`` answer; Lightning must not find them later."""
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

    Args:
        folder: The folder of configs.
        name: The config in it, with or without ``.yaml``.
        words: Overrides: ``trainer=cpu``, ``model.lr=2e-5``, ``+a.b=1``.

    Raises:
        ConfigError: Hydra cannot compose it.
        MissingExtraError: Hydra is not installed.
        UserError: There is no such folder.
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
