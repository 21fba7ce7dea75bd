"""Training a recipe: from its name to a finished run folder."""

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weft.config.key import local_modules, run_key
from weft.config.plan import Plan
from weft.config.session import Session
from weft.errors import RunStoppedError, UserError
from weft.recipes.changes import allowed_changes, record_changes
from weft.recipes.planning import Planned, plan_recipe
from weft.recipes.run_folder import RunFolder, command_line, git_state, versions
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.runtime.files import clean_leftovers
from weft.runtime.lock import Lock
from weft.runtime.logging import log_to_folder
from weft.runtime.seeds import fold, seed_all

__all__ = ["Run", "train"]

LOG = logging.getLogger("weft")

DATA = ("train_data", "valid_data", "test_data")
LENGTH = ("max_steps", "max_epochs", "max_time")


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    folder: Path
    """The run folder; ``weft.load`` takes it."""
    result: dict[str, Any] = field(default_factory=dict)
    """Steps, the best value and its step, and the values on ``test_data``."""


def train(
    recipe: str | Path,
    overrides: Sequence[str] = (),
    *,
    configs: Sequence[str | Path] = (),
    run_dir: str | Path | None = None,
    again: bool = False,
    allow_code: bool = False,
    device: str = "auto",
) -> Run:
    """Trains a recipe, or goes on training it: the same call resumes a run that was interrupted.

    Args:
        recipe: A script, the name of an experiment, a YAML file, or a run folder to go on with.
        overrides: Settings as on the command line, ``"optimizer.lr=1e-3"``.
        configs: YAML files of settings, later ones win.
        run_dir: The run folder; by default ``runs/<recipe>/<key>``.
        again: Trains anew although the run exists, in the next free folder.
        allow_code: Whether code that a run folder brings may be executed.
        device: ``auto``, or a device as torch names it.

    Returns:
        The run.

    Raises:
        PlanError: Something is wrong with the recipe; it lists everything, and nothing was run.
        RunStoppedError: A signal came; everything is saved.

    Example:
        >>> run = train("translation/demo", ["trainer.max_steps=400"])  # doctest: +SKIP
        >>> run.result["best"]  # doctest: +SKIP
        {'step': 400, 'bleu': 93.1}
    """
    planned = plan_recipe(
        recipe, overrides, configs=configs, targets=["trainer"], allow_code=allow_code
    )
    for note in planned.plan.notes:
        LOG.info(note)
    folder = choose_folder(planned, run_dir=run_dir, again=again)
    changes: dict[str, Any] = {}
    if planned.run is not None and not again:
        before = plan_recipe(recipe, targets=["trainer"], allow_code=allow_code)
        changes = allowed_changes(planned, before)
    if done := finished(folder, planned):
        return done
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the run folder {folder.path} cannot be made: {error.strerror}. "
            "Choose another one with --run-dir."
        ) from error
    with Lock(folder.path), log_to_folder(folder.path):
        if done := finished(folder, planned):  # by the process that had the folder until now
            return done
        LOG.info("Run folder: %s", folder.path)
        for place in (folder.path, folder.path / "predictions"):
            if place.is_dir():
                clean_leftovers(place)  # files that were half-written when a process was killed
        record_changes(folder, changes)
        return _fit(planned, folder, device=device, overrides=tuple(overrides))


def choose_folder(planned: Planned, *, run_dir: str | Path | None, again: bool) -> RunFolder:
    """The folder of the run: the one continued, the one named, or the one of its key."""
    if planned.run is not None and not again:
        return RunFolder(planned.run)
    if run_dir is not None:
        folder = RunFolder(Path(run_dir))
        if folder.info and folder.info["key"] != run_key(planned.plan):
            raise UserError(
                f"{run_dir} holds another run (key {folder.info['key']}, "
                f"this one has {run_key(planned.plan)}). Choose another --run-dir, "
                f"or go on with that run: weft train {run_dir}"
            )
        return folder
    return RunFolder.place(planned.name, run_key(planned.plan), again=again)


def finished(folder: RunFolder, planned: Planned) -> Run | None:
    """The result of a run that came to its end; a run of another length is named, not repeated."""
    info = folder.info
    if not info:
        return None
    before = info.get("length", {})
    now = length_of(planned.plan)
    if before != now and planned.run is None:
        raise UserError(_other_length(folder, planned, before, now))
    if folder.finished and before == now:
        LOG.info("This run is finished: %s", folder.path)
        return Run(folder.path, folder.result)
    return None


def _other_length(
    folder: RunFolder, planned: Planned, before: Mapping[str, Any], now: Mapping[str, Any]
) -> str:
    changed = [name for name in LENGTH if before.get(name) != now.get(name)]
    was, words = (
        " ".join(
            f"trainer.{name}={'null' if of.get(name) is None else of[name]}" for name in changed
        )
        for of in (before, now)
    )
    trust = " --allow-code" if planned.script is not None else ""
    state = "finished" if folder.finished else "not finished"
    shorter = folder.finished and all(
        before.get(name) and now.get(name) and now[name] < before[name] for name in changed
    )
    way = f"It is longer already. Its result: weft train {folder.path}{trust}"
    if not shorter:
        way = f"To go on with it: weft train {folder.path} {words}{trust}"
    return (
        f"this run exists with another length: {folder.path} ({was}, {state}).\n"
        f"  {way}\n"
        "  To train anew: the same command with --again"
    )


def length_of(plan: Plan) -> dict[str, Any]:
    """The settings that say how long a run is."""
    trainer = plan.settings.get("trainer", {})
    return {name: trainer[name] for name in LENGTH if name in trainer}


def _fit(planned: Planned, folder: RunFolder, *, device: str, overrides: tuple[str, ...]) -> Run:
    plan, key = planned.plan, run_key(planned.plan)
    xp = Experiment(folder=folder.path, recipe=planned.name, key=key, overrides=overrides)
    provided = {"env": Env.detect(device), "xp": xp, "entry_point": "train"}
    session = plan.start(provided)
    with recorded(folder, planned, key):
        data = build_data(session, plan, folder.path)
        compare(folder, data)
        seed_everything(seed_of(plan))
        trainer = session.get("trainer")
        write(folder, planned, session, data)
        trainer.fit()
        result = dict(getattr(trainer, "summary", {}))
        folder.write_info(finished=True, result=result)
    return Run(folder.path, result)


@contextmanager
def recorded(folder: RunFolder, planned: Planned, key: str) -> Iterator[None]:
    """Keeps in ``run.json`` what was started, and how it ended if it did not finish."""
    started = not folder.info
    try:
        yield
    except RunStoppedError as stop:
        folder.write_info(finished=False, stopped=str(stop))
        raise
    except BaseException:
        if started and not (folder.path / "checkpoints").exists():
            # Nothing was trained: a folder that only says so would be found by the next try.
            (folder.path / "run.json").unlink(missing_ok=True)
        raise


def build_data(session: Session, plan: Plan, folder: Path) -> dict[str, str]:
    """Builds the data first, so that every bad row is listed before anything else costs time."""
    fingerprints = {}
    for name in DATA:
        if name not in plan.order:
            continue
        data = session.get(name)
        if hasattr(data, "read"):
            data.read(ingredient=name, folder=folder)
        if hasattr(data, "fingerprint"):
            fingerprints[name] = data.fingerprint()
    return fingerprints


def compare(folder: RunFolder, data: dict[str, str]) -> None:
    """Refuses to go on with other data than the run began with."""
    before = folder.info.get("data", {})
    changed = [name for name in data if before.get(name, data[name]) != data[name]]
    if changed:
        raise UserError(
            f"{' and '.join(changed)} changed since {folder.path} was started: "
            "the files have other content. Restore them, or train anew with --again."
        )


def seed_of(plan: Plan) -> int:
    """The run's seed; a trainer of the recipe's own may have none."""
    return int(plan.settings.get("trainer", {}).get("seed", 1))


def seed_everything(seed: int) -> None:
    """Seeds torch, ``random`` and numpy, whose global generators a recipe's own code may use."""
    seed_all(seed, 0)
    random.seed(fold(seed, "random"))
    np.random.seed(fold(seed, "numpy") % 2**32)  # noqa: NPY002  # the global one is meant


def write(folder: RunFolder, planned: Planned, session: Session, data: dict[str, str]) -> None:
    """Writes everything that says what this run is."""
    plan, script = planned.plan, planned.script
    recipe = "recipe.py" if script is not None else planned.name
    folder.write_sources(script, local_modules(planned.table) if script else [])
    built = {k: v for k, v in session.built.items() if v != plan.settings.get(k)}
    folder.write_config(recipe, plan.settings, built)
    folder.write_info(
        recipe=planned.name,
        key=run_key(plan),
        command=command_line(),
        length=length_of(plan),
        versions=versions(),
        git=git_state(script.parent if script else Path.cwd()),
        data=data,
        finished=False,
    )
