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

from weft.config.planning.overrides import Overrides, words_of
from weft.config.planning.session import Session
from weft.config.recipe import Recipe
from weft.errors import UserError
from weft.recipes.planning import Planned, plan_recipe, run_named
from weft.run_folder.folder import RunFolder
from weft.run_folder.pretrained import PretrainedOfRun, pretrained_of
from weft.runs.train import build_trainer, refuse_before_start, start_session
from weft.runtime.devices import Env
from weft.training.loop import Trainer

__all__ = ["Prepared", "prepare", "refuse_ranks"]

LOG = logging.getLogger("weft")


@dataclass(frozen=True, eq=False)
class Prepared:
    """What weft's loop would begin with, for another loop to take."""

    planned: Planned
    session: Session
    trainer: Trainer
    """weft's own, which is not called: it has the task, the data and the optimizer, checked."""
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

    The arguments are those of :func:`weft.runs.train.train`.

    Raises:
        PlanError: Something is wrong with the recipe; it lists everything.
        UserError: The recipe trains by itself, or is a run; or there are several processes.

    Example:
        >>> prepare("classification/docnn/local").trainer.task  # doctest: +SKIP
        <weft.tasks.classification.DocumentClassification object at 0x7f1c>
    """
    run = run_named(recipe)
    if run is not None:
        raise UserError(
            f"{run} is a run, which weft trains on: weft.train({str(run)!r}). To begin anew with "
            f"its settings under Lightning, name its file: {run / 'config.yaml'}."
        )
    env = Env.detect(device)
    refuse_ranks(env.world_size)
    planned = plan_recipe(
        recipe, overrides, configs=configs, targets=["trainer"], allow_code=allow_code
    )
    refuse_before_start(planned)
    # What reading writes; of a recipe that is refused its bad rows, which the error names.
    folder = RunFolder(Path(tempfile.mkdtemp(prefix="weft-lightning-")))
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
        if not isinstance(trainer, Trainer):
            raise UserError(
                f"{planned.name} has a trainer of its own, {type(trainer).__name__}, whose loop is "
                "its own too: Lightning cannot take its place. Train it with weft.train."
            )
        for line in trainer.initial.begin():
            LOG.info(line)
    return Prepared(planned, session, trainer, built, facts, pretrained)


def refuse_ranks(world_size: int) -> None:
    """Refuses several processes: weft's own loop divides a batch among them, Lightning's does not.

    Raises:
        UserError: There are several.
    """
    if world_size > 1:
        raise UserError(
            f"Lightning trains a task of weft in one process, and there are {world_size}: give its "
            "Trainer devices=1, or train in several by weft's own loop, weft train --nproc "
            f"{world_size}."
        )
