"""Stand-ins for the plugins of Hydra that the template names: their settings are read here.

The Optuna sweeper wants Optuna below 3, and colorlog colours a log that textmill writes itself.
"""

from typing import Any

SAMPLERS = ("tpe", "random", "cmaes", "nsgaii", "motpe", "grid")

SWEEPER: dict[str, Any] = {
    "_target_": "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper",
    "defaults": [{"sampler": "tpe"}],
    "direction": "minimize",
    "storage": None,
    "study_name": None,
    "n_trials": 20,
    "n_jobs": 1,
    "max_failure_rate": 0.0,
    "search_space": None,
    "params": None,
    "custom_search_space": None,
}
"""The settings of ``hydra/sweeper=optuna``, with the plugin's defaults, but for n_jobs,
which is 2 there: runs are made one at a time."""


def register_stand_ins() -> None:
    """Lets configs name what the plugins would bring; the real ones, where installed, win."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store("optuna", SWEEPER, group="hydra/sweeper", provider="textmill")
    for name in SAMPLERS:
        sampler = {"_target_": f"optuna.samplers.{name}", "seed": None}
        store.store(name, sampler, group="hydra/sweeper/sampler", provider="textmill")
    for group in ("hydra/hydra_logging", "hydra/job_logging"):
        store.store("colorlog", {"version": 1}, group=group, provider="textmill")
