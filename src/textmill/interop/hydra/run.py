"""A run of textmill whose training is Lightning's and whose settings are Hydra's."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.sources.own_files import files_below, own_files
from textmill.errors import UserError, worded
from textmill.interop.hydra.config import ComposedConfig, ConfigError, compose_config
from textmill.interop.hydra.key import LENGTH, key_of, length_of
from textmill.interop.hydra.search import HydraSearch, sweeps_in
from textmill.interop.hydra.targets import PASSED, Targets, importable
from textmill.interop.lightning.older_names import modern_trainer, older_names, refuse_no_lightning
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

DATA = ("datamodule", "data")
"""What a config calls its data; newer templates have the second."""
IGNORED = ("extras",)
"""Sections of the template that its own ``train.py`` obeys, and nothing here."""
CODE = "code"
"""The folder in a run that keeps the project's own code: a record, never executed."""
PLACEHOLDER = "RUN"
"""Stands for the run folder in the key, and for the project's folder in paths."""


class HydraRun:
    """One training that a config describes: its settings, its key and its folder.

    Args:
        composed: The config.
    """

    def __init__(self, composed: ComposedConfig) -> None:
        self.composed = composed
        self.keyed = composed.resolved(PLACEHOLDER)
        self.data = next((name for name in DATA if self.keyed.get(name)), None)
        targets = self._checked()
        self.code = [targets.found[key] for key in sorted(targets.found)]

    def _checked(self) -> Targets:
        """Everything that the config calls, all of it compared with how it is called."""
        targets = Targets(self.composed.written, {"trainer": (*PASSED, "default_root_dir")})
        for name, value in self.keyed.items():
            section = value
            if name == "trainer" and isinstance(value, Mapping):
                section, _, _ = modern_trainer(value)
            targets.look(section, name)
        problems = [*targets.problems]
        for name in ("model", "trainer"):
            section = self.keyed.get(name)
            if not isinstance(section, Mapping) or "_target_" not in section:
                written = ", ".join(self.keyed)
                why = f"wanted a section with a _target_. The config has: {written or 'nothing'}."
                problems.append(self.composed.written.problem(name, why))
        if problems:
            raise ConfigError(self.composed.name, problems)
        return targets

    @property
    def name(self) -> str:
        """What the run is called: the config's ``task_name``, else the config itself."""
        return str(self.keyed.get("task_name") or self.composed.name)

    @property
    def seed(self) -> int:
        """The config's ``seed``; 1 where it names none."""
        seed = self.keyed.get("seed")
        return seed if isinstance(seed, int) else 1

    @cached_property
    def key(self) -> str:
        """Twelve hex digits that name what the run computes: settings, and the code they reach."""
        return key_of(self.keyed, self.code, self.composed.root)

    def refuse_no_device(self) -> None:
        """Refuses an accelerator that is not here, before anything is written.

        Raises:
            ConfigError: It is not.
        """
        import torch

        asked = str(modern_trainer(self.keyed["trainer"])[0].get("accelerator"))
        cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
        if not {"gpu": cuda or mps, "cuda": cuda, "mps": mps}.get(asked, True):
            why = f"there is no {asked} here. To train on the processor: trainer.accelerator=cpu"
            problem = self.composed.written.problem("trainer.accelerator", why, asked)
            raise ConfigError(self.composed.name, [problem])

    def folder(self, run_dir: str | Path | None, *, again: bool) -> RunFolder:
        """The folder that is named, or the one of the key.

        Raises:
            UserError: The folder that is named has another run.
        """
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

    def began(self, folder: RunFolder) -> datetime:
        """When the run began: now, if it is not there yet."""
        began = folder.info.get("began")
        return datetime.fromisoformat(began) if isinstance(began, str) else datetime.now()

    def settings(self, folder: RunFolder, began: datetime) -> dict[str, Any]:
        """All settings, with the run folder in them, as of when the run began."""
        return self.composed.resolved(str(folder.path), began=began)

    def is_finished(self, folder: RunFolder, *, extend: bool) -> bool:
        """Whether the run is at its end; one of another length is named, not repeated.

        Raises:
            UserError: It has steps of another length, and is not to ``extend``.
        """
        before, now = folder.info.get("length"), length_of(self.keyed)
        if not folder.finished and not has_checkpoints(folder.path):
            return False  # it failed before it had any, and may be another as well
        if before is not None and before != now and not extend:
            shown = " ".join(f"trainer.{n}={before.get(n, 'null')}" for n in LENGTH if n in before)
            state = "finished" if folder.finished else "not finished"
            raise UserError(
                f"this run exists with another length: {folder.path} ({shown}, {state}). To go on "
                f"with it: {worded('the same command with --extend', 'extend=True')}. To train "
                f"anew: {same_again()}."
            )
        return folder.finished and before == now

    def write(self, folder: RunFolder, settings: Mapping[str, Any], began: datetime) -> None:
        """Writes everything that says what this run is."""
        warn_of_versions(folder)
        root, run = self.composed.root, folder.identity
        files = files_below(root, own_files(self.code))
        code = folder.write_sources(
            {f"{CODE}/{path.relative_to(root).as_posix()}": data for path, data in files.items()}
        )
        folder.write_config(None, settings, {}, swaps={}, run=run, code=code)
        start = {
            "command": command_line(),
            "versions": versions(),
            "git": git_state(root),
            "hardware": hardware(),
        }
        tags = settings.get("tags")
        folder.write_info(
            recipe=self.name,
            key=self.key,
            id=run,
            trained_by="lightning",
            config=str(self.composed.written.folder / f"{self.composed.name}.yaml"),
            words=list(self.composed.written.words),
            began=began.isoformat(timespec="seconds"),
            tags=list(map(str, tags)) if isinstance(tags, list) else None,
            length=length_of(self.keyed),
            starts=[*(folder.info.get("starts") or []), start],
            finished=False,
            stopped=None,
            failed=None,
        )
        remember_place(folder.path)
        LOG.info("Run folder: %s", folder.path)

    def notes(self) -> list[str]:
        """What the config asks for that is done otherwise here, a line each."""
        found = [
            f"{name}: the template's own, and of no effect here"
            for name in IGNORED
            if self.keyed.get(name)
        ]
        if "seed" not in self.keyed:
            found.append(f"seed={self.seed}, as the config names none")
        return found + modern_trainer(self.keyed["trainer"])[2]


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
        ConfigError: Something is wrong with the config; it lists everything, nothing was built.
        MissingExtraError: Lightning or Hydra is not installed.
        RunStoppedError: A signal came; the run goes on from where it was saved last.

    Example:
        >>> train_hydra("configs", "train.yaml", ["trainer=cpu"])  # doctest: +SKIP
    """
    refuse_no_lightning("textmill train --hydra")
    with importable(Path(configs).resolve().parent), older_names():
        plain, sweeps = sweeps_in(words)
        composed = compose_config(configs, name, plain)
        if not (multirun or composed.is_multirun):
            if sweeps:
                raise UserError(
                    f"{' '.join(sweeps)}: several values, which are several runs. Add "
                    f"{worded('-m', 'multirun=True')} to train all, or quote what is one value."
                )
            return train_composed(composed, run_dir=run_dir, again=again, extend=extend)
        search, base = HydraSearch.of(composed, plain, sweeps), HydraRun(composed)
        folder = search.folder(base.name, base.key, run_dir=run_dir, again=again)

        def train(one: ComposedConfig, place: Path) -> Run:
            return train_composed(one, run_dir=place, extend=extend)

        return search.run(folder.path, train)


def train_composed(
    composed: ComposedConfig,
    *,
    run_dir: str | Path | None = None,
    again: bool = False,
    extend: bool = False,
) -> Run:
    """Trains as :func:`train_hydra` what is composed already, where its code can be imported."""
    from textmill.interop.hydra.fit import Described, fit, is_main

    run = HydraRun(composed)
    folder = run.folder(run_dir, again=again)
    if run.is_finished(folder, extend=extend):
        LOG.info("This run is finished: %s", folder.path)
        return Run(folder.path, folder.result)
    run.refuse_no_device()
    described = partial(Described, name=run.name, key=run.key, seed=run.seed, data=run.data)
    if not is_main():  # a process that a strategy of Lightning's has started beside the first
        there = described(folder, run.settings(folder, run.began(folder)))
        return Run(folder.path, fit(there, extend=extend))
    with entered(folder.path):
        if run.is_finished(folder, extend=extend):  # by the process that had it until now
            return Run(folder.path, folder.result)
        clean(folder, key=run.key)
        for note in run.notes():
            LOG.info(note)
        began = run.began(folder)
        settings = run.settings(folder, began)
        with recorded(folder):
            extended = bool(folder.info) and folder.info.get("length") != length_of(run.keyed)
            writes = partial(run.write, folder, settings, began)
            result = fit(described(folder, settings), extend=extended, begins=writes)
        folder.write_info(finished=True, result=result)
    return Run(folder.path, result)
