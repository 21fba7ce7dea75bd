"""A recipe up to where its training begins: everything read, built and checked, and no step."""

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
from textmill.recipes.planning import Planned, plan_recipe, run_named
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.pretrained import PretrainedOfRun, pretrained_of
from textmill.runs.train import build_trainer, refuse_before_start, start_session
from textmill.runtime.devices import Env
from textmill.training.linear_trainer import LinearTrainer
from textmill.training.loop import Trainer

LOG = logging.getLogger("textmill")


@dataclass(frozen=True, eq=False)
class Prepared:
    """What textmill's loop would begin with, for another loop to take."""

    planned: Planned
    session: Session
    trainer: Trainer
    """textmill's own, which is not called: it has the task, the data and the optimizer, checked."""
    built: Mapping[str, Any]
    """Sizes that came from the data, as a run records them."""
    facts: Mapping[str, Any]
    """What the data was found to be."""
    pretrained: PretrainedOfRun


def prepare(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
) -> Prepared:
    """Plans a recipe and builds all that training needs, with the weights that it begins with.

    The arguments are those of :func:`textmill.runs.train.train`.

    Raises:
        PlanError: Something is wrong with the recipe; it lists everything.
        UserError: The recipe trains by itself, or is a run; or there are several processes.

    Example:
        >>> prepare("classification/docnn/local").trainer.task  # doctest: +SKIP
        <textmill.tasks.classification.DocumentClassification object at 0x7f1c>
    """
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
    refuse_before_start(planned)
    # What reading writes; of a recipe that is refused its bad rows, which the error names.
    folder = RunFolder(Path(tempfile.mkdtemp(prefix="textmill-lightning-")))
    try:
        made = _prepared(planned, folder, env, tuple(words_of(overrides)))
    except BaseException:
        with suppress(OSError):  # it has something in it
            folder.path.rmdir()
        raise
    weakref.finalize(made, shutil.rmtree, folder.path, ignore_errors=True)
    return made


def _prepared(planned: Planned, folder: RunFolder, env: Env, words: tuple[str, ...]) -> Prepared:
    session = start_session(planned, folder, env=env, overrides=words)
    with pretrained_of(folder) as pretrained:
        trainer, built, facts = build_trainer(session, planned.plan, folder, {})
        if isinstance(trainer, LinearTrainer):
            raise UserError(
                f"{planned.name} is solved in one step, by scikit-learn: Lightning has nothing to "
                "repeat. Train it with textmill.train."
            )
        if not isinstance(trainer, Trainer):
            raise UserError(
                f"{planned.name} has a trainer of its own, {type(trainer).__name__}, whose loop is "
                "its own too: Lightning cannot take its place. Train it with textmill.train."
            )
        for line in trainer.initial.begin():
            LOG.info(line)
    return Prepared(planned, session, trainer, built, facts, pretrained)


def refuse_ranks(world_size: int) -> None:
    """Refuses several processes: our own loop divides a batch among them, Lightning's does not.

    Raises:
        UserError: There are several.
    """
    if world_size > 1:
        raise UserError(
            f"Lightning trains a task of textmill in one process, and there are {world_size}: "
            "give its "
            "Trainer devices=1, or train in several by textmill's own loop, textmill train --nproc "
            f"{world_size}."
        )
