"""Preparing a recipe for Lightning, and writing what Lightning trained as a run."""

import logging
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.planning.overrides import Overrides, words_of
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe
from textmill.errors import UserError
from textmill.preflight.data_preview import data_summary
from textmill.recipes.planning import Planned, plan_recipe, run_named
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.pretrained import PretrainedOfRun, pretrained_of
from textmill.runs.run_lock import entered
from textmill.runs.train import begin_run, build_trainer, refuse_before_start, start_session
from textmill.runtime.devices import Env
from textmill.training.checkpoints import RunCheckpoints
from textmill.training.linear_trainer import LinearTrainer
from textmill.training.loop import Trainer
from textmill.training.progress import Progress
from textmill.training.selection import Selection

LOG = logging.getLogger("textmill")


@dataclass(frozen=True, eq=False)
class Prepared:
    """What textmill's loop would begin with, for another loop."""

    planned: Planned
    session: Session
    trainer: Trainer
    """textmill's own, which is not called: it has the checked task, data and optimizer."""
    built: Mapping[str, Any]
    """Sizes that came from the data, as a run records them."""
    facts: Mapping[str, Any]
    """Facts for ``run.json``."""
    pretrained: PretrainedOfRun


def prepare(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
) -> Prepared:
    """Plans a recipe and builds all that training needs, with its first weights."""
    run = run_named(recipe)
    if run is not None:
        raise UserError(
            f"{run} is a run, which textmill trains on: textmill.train({str(run)!r}). To begin "
            f"anew with its settings under Lightning, name its file: {run / 'config.yaml'}."
        )
    env = Env.detect(device)
    refuse_ranks(env.world_size)
    planned = plan_recipe(
        recipe, overrides, configs=configs, targets=["trainer"], allow_code=allow_code
    )
    if planned.tasks:
        raise UserError(
            f"{planned.name} trains several tasks, each step with batches of one or all, which "
            "Lightning's loop does not do. Train it with textmill.train."
        )
    refuse_before_start(planned)
    # Reading writes here: if the data is refused, its bad rows, which the error names.
    folder = RunFolder(Path(tempfile.mkdtemp(prefix="textmill-lightning-")))
    try:
        session = start_session(planned, folder, env=env, overrides=tuple(words_of(overrides)))
        with pretrained_of(folder) as pretrained:
            trainer, built, facts = build_trainer(session, planned.plan, folder)
            if not isinstance(trainer, Trainer) or isinstance(trainer, LinearTrainer):
                raise UserError(
                    f"{planned.name} is trained by a loop of its own, {type(trainer).__name__}: "
                    "Lightning cannot take its place. Train it with textmill.train."
                )
            for line in trainer.initial.begin():
                LOG.info(line)
        made = Prepared(planned, session, trainer, built, facts, pretrained)
    except BaseException:
        with suppress(OSError):  # it is not empty
            folder.path.rmdir()
        raise
    weakref.finalize(made, shutil.rmtree, folder.path, ignore_errors=True)
    return made


def refuse_ranks(world_size: int) -> None:
    """Refuses several processes: Lightning would not divide a batch among them, as we do."""
    if world_size > 1:
        raise UserError(
            f"Lightning trains a task of textmill in one process, and there are {world_size}: "
            "give its Trainer devices=1, or train in several by textmill's own loop, "
            f"textmill train --nproc {world_size}."
        )


def save_run(prepared: Prepared, place: Path, progress: Progress, *, selection: Selection) -> Path:
    """Writes a new run folder with the weights of a prepared recipe as they are now.

    It also has the optimizer, the place in the data and the evaluations: if the recipe is not at
    its end, ``textmill train`` goes on with it.
    """
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UserError(f"{place} exists already, and nothing is overwritten. Name another folder.")
    folder, trainer = RunFolder(place), prepared.trainer
    trainer.clock.now = trainer.clock.seen = trainer.clock.closed = progress
    if trainer.selection is not None:
        trainer.selection.load_state_dict(selection.state_dict())
    checkpoints = RunCheckpoints(
        place,
        keep=trainer.config.keep,
        task=trainer.task,
        clock=trainer.clock,
        selection=trainer.selection,
        nonfinite=trainer.updates.nonfinite,
        ranks=trainer.updates.ranks,
    )
    groups = trainer.optimizer.param_groups
    with entered(place):
        models = PretrainedOfRun(folder)
        models.found = prepared.pretrained.found
        session = prepared.session
        facts = {"data_summary": data_summary(session, trainer), "pretrained": models.keep()}
        facts |= prepared.facts
        begin_run(prepared.planned, folder, session, built=prepared.built, facts=facts)
        # torch's schedulers add this to the groups, and textmill's do not.
        rates = [group.pop("initial_lr", None) for group in groups]
        try:
            checkpoints.record(trainer.parts, best=selection.is_best(progress.steps))
        finally:
            for group, rate in zip(groups, rates, strict=True):
                group.update({} if rate is None else {"initial_lr": rate})
        result = {"steps": progress.steps, "epochs": progress.epochs}
        folder.write_info(finished=trainer.ended(progress), result=result)
    return place
