"""A run of textmill whose training is Lightning's and whose settings are Hydra's."""

import importlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import ModuleType

from textmill.errors import UserError, worded
from textmill.interop.hydra.config import ComposedConfig, HydraRun, compose_config
from textmill.interop.lightning import refuse_no_lightning
from textmill.runs.resume import Run
from textmill.runs.run_lock import clean, entered, recorded

LOG = logging.getLogger("textmill")
OLD, NEW = "pytorch_lightning", "lightning.pytorch"
"""The older name of Lightning that projects import, and the package."""


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """Lets modules in a folder be imported while the block runs, and forgets them after it.

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


@contextmanager
def older_name() -> Iterator[None]:
    """Lets ``pytorch_lightning`` be ``lightning.pytorch`` while the block runs.

    They are two packages with the same classes, and a Trainer of one refuses a module of the other.
    """

    def below(package: str) -> dict[str, ModuleType]:
        names = [n for n in sys.modules if n == package or n.startswith(f"{package}.")]
        return {name.removeprefix(package): sys.modules[name] for name in names}

    def put_aside() -> dict[str, ModuleType]:
        return {OLD + name: sys.modules.pop(OLD + name) for name in below(OLD)}

    aside = put_aside()
    sys.modules.update({OLD + name: module for name, module in below(NEW).items()})
    try:
        yield
    finally:
        put_aside()
        sys.modules.update(aside)


def train_hydra(
    configs: str | Path,
    name: str,
    words: Sequence[str] = (),
    *,
    run_dir: str | Path | None = None,
    again: bool = False,
    multirun: bool = False,
) -> Run:
    """Trains what a folder of Hydra's configs describes, by Lightning, in a run folder of textmill.

    The same call goes on with a run that was interrupted, and returns the result of a finished one.
    What the configs name by ``_target_`` is imported, also from the folder above them.

    Args:
        configs: The folder of configs.
        name: The config in it: ``train.yaml``.
        words: Overrides as Hydra reads them: ``trainer=cpu``, ``model.lr=2e-5``.
        run_dir: The run folder; by default ``runs/<task_name>/<key>``.
        again: Trains anew although the run exists, in the next free folder.
        multirun: Trains each combination of values that the words have, as ``model.lr=0.1,0.2``; or
            what Optuna proposes, with ``hparams_search=optuna`` of the template, which needs no
            ``multirun``. The best run is returned.

    Raises:
        ConfigError: Something is wrong with the config; nothing was built.
        RunStoppedError: A signal came; the run goes on from the end of the epoch before.
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
            return train_composed(composed, run_dir, again=again)
        return search(HydraRun(composed), sweeps, train_composed, run_dir=run_dir, again=again)


def train_composed(
    composed: ComposedConfig, run_dir: str | Path | None, *, again: bool = False
) -> Run:
    """Trains a config whose code can be imported, as :func:`train_hydra` does."""
    from textmill.interop.hydra import fit as lightning_fit

    run = HydraRun(composed)
    folder = run.folder(run_dir, again=again)
    if run.is_finished(folder):
        LOG.info("This run is finished: %s", folder.path)
        return Run(folder.path, folder.result)

    def began() -> datetime:
        saved = folder.info.get("began")
        return datetime.fromisoformat(saved) if isinstance(saved, str) else datetime.now()

    # A strategy of Lightning's may have started this process beside the first.
    if not lightning_fit.is_main():
        settings = composed.resolved(str(folder.path), began=began())
        return Run(folder.path, lightning_fit.fit(run, folder, settings))
    with entered(folder.path):
        if run.is_finished(folder):  # by the process that had it until now
            return Run(folder.path, folder.result)
        clean(folder, key=run.key)
        since = began()
        settings = composed.resolved(str(folder.path), began=since)
        with recorded(folder):
            extended = bool(folder.info) and folder.info.get("length") != run.length
            writes = partial(run.write, folder, settings, since)
            result = lightning_fit.fit(run, folder, settings, extended=extended, begins=writes)
        folder.write_info(finished=True, result=result)
    return Run(folder.path, result)
