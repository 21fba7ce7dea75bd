"""A run of textmill whose training is Lightning's and whose settings are Hydra's."""

import hashlib
import importlib
import json
import logging
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.sources.own_files import files_below, own_files
from textmill.errors import UserError, worded
from textmill.interop.hydra.config import ComposedConfig, ConfigError, compose_config
from textmill.interop.lightning.package import older_name, refuse_no_lightning
from textmill.run_folder.folder import (
    RunFolder,
    command_line,
    git_state,
    hardware,
    remember_place,
    versions,
)
from textmill.runs.resume import Run, same_again, warn_of_versions
from textmill.runs.run_lock import clean, entered, recorded

LOG = logging.getLogger("textmill")

CODE = "code"
"""The folder in a run that keeps the project's own code: a record, never executed."""
LENGTH = ("max_epochs", "max_steps", "max_time", "min_epochs", "min_steps")
"""The arguments of a Trainer that say how long a run is."""

_OBSERVERS = frozenset({"extras", "hydra", "logger", "optimized_metric", "paths", "tags", "test"})
"""Sections that see a run, or say where things are, and do not decide what it computes."""
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


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """While the block runs, what lies in a folder can be imported; after it, nothing of it stays.

    Two projects may each have a package ``src``, which one process must not mix. ``PROJECT_ROOT``,
    where the template's paths begin, is the folder unless a person has set it.
    """
    before, place, named = set(sys.modules), str(root), "PROJECT_ROOT" in os.environ
    os.environ.setdefault("PROJECT_ROOT", place)
    sys.path.insert(0, place)
    importlib.invalidate_caches()

    def lies_in(module: ModuleType) -> bool:
        homes = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        return any(home and Path(home).is_relative_to(root) for home in homes)

    try:
        yield
    finally:
        sys.path.remove(place)
        if not named:
            del os.environ["PROJECT_ROOT"]
        for name in [n for n in sys.modules.keys() - before if lies_in(sys.modules[n])]:
            del sys.modules[name]


class HydraRun:
    """One training that a config describes: its settings, its key and its folder.

    Raises:
        ConfigError: A ``_target_`` cannot be imported, or there is no model or no trainer.
    """

    def __init__(self, composed: ComposedConfig) -> None:
        self.composed = composed
        keyed = composed.resolved("RUN")  # stands for the run folder, which the key names
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
        """Twelve hex digits that name what the run computes: settings, and the code they reach."""

    def folder(self, run_dir: str | Path | None, *, again: bool) -> RunFolder:
        """The folder that is named, or the one of the key."""
        if run_dir is None:
            return RunFolder.place(self.name, self.key, again=again)
        folder = RunFolder(Path(run_dir))
        folder = folder.free() if again else folder
        if folder.has_other(self.key):
            raise UserError(
                f"{run_dir} holds another run (key {folder.info['key']}, this one has {self.key}). "
                f"Choose another {worded('--run-dir', 'run_dir')}."
            )
        return folder

    def is_finished(self, folder: RunFolder, *, extend: bool) -> bool:
        """Whether the run is at its end; refuses one of another length unless it may ``extend``."""
        before = folder.info.get("length")
        if not folder.finished and not has_checkpoints(folder.path):
            return False  # it failed before it had any, and may be another as well
        if before is not None and before != self.length and not extend:
            shown = " ".join(f"trainer.{n}={before.get(n, 'null')}" for n in LENGTH if n in before)
            state = "finished" if folder.finished else "not finished"
            raise UserError(
                f"this run exists with another length: {folder.path} ({shown}, {state}). To go on "
                f"with it: {worded('the same command with --extend', 'extend=True')}. To train "
                f"anew: {same_again()}."
            )
        return folder.finished and before == self.length

    def write(self, folder: RunFolder, settings: Mapping[str, Any], began: datetime) -> None:
        """Writes everything that says what this run is."""
        warn_of_versions(folder)
        root, run = self.composed.root, folder.identity
        files = files_below(root, own_files(self.code))
        code = folder.write_sources(
            {f"{CODE}/{path.relative_to(root).as_posix()}": data for path, data in files.items()}
        )
        folder.write_config(None, settings, {}, swaps={}, run=run, code=code)
        start: dict[str, Any] = {"command": command_line(), "versions": versions()}
        start |= {"git": git_state(root), "hardware": hardware()}
        tags = settings.get("tags")
        folder.write_info(
            recipe=self.name,
            key=self.key,
            id=run,
            trained_by="lightning",
            config=str(self.composed.folder / f"{self.composed.name}.yaml"),
            words=list(self.composed.words),
            began=began.isoformat(timespec="seconds"),
            tags=list(map(str, tags)) if isinstance(tags, list) else None,
            length=self.length,
            starts=[*(folder.info.get("starts") or []), start],
            finished=False,
            stopped=None,
            failed=None,
        )
        remember_place(folder.path)
        LOG.info("Run folder: %s", folder.path)


def _targets(node: Any, key: str) -> Iterator[Any]:
    """What each ``_target_`` names, imported."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, Mapping):
        return
    for name, item in node.items():
        yield from _targets(item, f"{key}{name}.")
    if isinstance(word := node.get("_target_"), str):
        try:
            yield pkgutil.resolve_name(word)
        except Exception as error:  # whatever a module of a person's own raises
            why = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{key}_target_={word}: {why}; nothing was run.") from error


def key_of(settings: Mapping[str, Any], code: Sequence[Any], root: Path) -> str:
    """Twelve hex digits of the settings that decide, and of the project's own files they reach.

    A path into the project counts from its folder: a project that was moved has the same keys.
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


def train_hydra(
    configs: str | Path,
    name: str,
    words: Sequence[str] = (),
    *,
    run_dir: str | Path | None = None,
    again: bool = False,
    extend: bool = False,
    multirun: bool = False,
) -> Run:
    """Trains what a folder of Hydra's configs describes, by Lightning, in a run folder of textmill.

    The same call goes on with a run that was interrupted, and returns the result of one that is
    finished. What the configs name by ``_target_`` is imported, also from the folder above them.

    Args:
        configs: The folder of configs.
        name: The config in it: ``train.yaml``.
        words: Overrides as Hydra reads them: ``trainer=cpu``, ``model.lr=2e-5``.
        run_dir: The run folder; by default ``runs/<task_name>/<key>``.
        again: Trains anew although the run exists, in the next free folder.
        extend: Goes on with a run that exists though its length was another.
        multirun: Trains each combination of values that the words have, as ``model.lr=0.1,0.2``; or
            what Optuna proposes, with ``hparams_search=optuna`` of the template, which needs no
            ``multirun``. The best run is returned.

    Raises:
        ConfigError: Something is wrong with the config; nothing was built.
        MissingExtraError: Lightning or Hydra is not installed.
        RunStoppedError: A signal came; the run goes on from the end of the epoch before.

    Example:
        >>> train_hydra("configs", "train.yaml", ["trainer=cpu"])  # doctest: +SKIP
    """
    refuse_no_lightning("textmill train --hydra")
    from textmill.interop.hydra.search import search, sweeps_in

    with importable(Path(configs).resolve().parent), older_name():
        plain, sweeps = sweeps_in(words)
        composed = compose_config(configs, name, plain)
        if not (multirun or composed.is_multirun):
            if sweeps:
                raise UserError(
                    f"{' '.join(sweeps)}: several values, which are several runs. Add "
                    f"{worded('-m', 'multirun=True')} to train all, or quote what is one value."
                )
            return train_composed(composed, run_dir=run_dir, again=again, extend=extend)
        base = HydraRun(composed)

        def train(one: ComposedConfig, place: Path) -> Run:
            return train_composed(one, run_dir=place, extend=extend)

        return search(base, sweeps, train, run_dir=run_dir, again=again)


def train_composed(
    composed: ComposedConfig,
    *,
    run_dir: str | Path | None = None,
    again: bool = False,
    extend: bool = False,
) -> Run:
    """Trains as :func:`train_hydra` what is composed already, where its code can be imported."""
    from textmill.interop.hydra import fit as lightning_fit

    run = HydraRun(composed)
    folder = run.folder(run_dir, again=again)
    if run.is_finished(folder, extend=extend):
        LOG.info("This run is finished: %s", folder.path)
        return Run(folder.path, folder.result)

    def began() -> datetime:
        saved = folder.info.get("began")
        return datetime.fromisoformat(saved) if isinstance(saved, str) else datetime.now()

    if (
        not lightning_fit.is_main()
    ):  # a process that a strategy of Lightning's has started beside the first
        settings = composed.resolved(str(folder.path), began=began())
        return Run(folder.path, lightning_fit.fit(run, folder, settings, extend=extend))
    with entered(folder.path):
        if run.is_finished(folder, extend=extend):  # by the process that had it until now
            return Run(folder.path, folder.result)
        clean(folder, key=run.key)
        since = began()
        settings = composed.resolved(str(folder.path), began=since)
        with recorded(folder):
            extended = bool(folder.info) and folder.info.get("length") != run.length
            writes = partial(run.write, folder, settings, since)
            result = lightning_fit.fit(run, folder, settings, extend=extended, begins=writes)
        folder.write_info(finished=True, result=result)
    return Run(folder.path, result)
