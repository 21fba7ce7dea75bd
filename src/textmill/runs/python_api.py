"""Experiments from Python: by their names or as Recipes, over the same graph as the commands."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from torch import Tensor

from textmill.checkpoint.parts import check_fit
from textmill.config.foreign_names import setting_here
from textmill.config.ingredient import EVALUATION_DATA
from textmill.config.planning.overrides import Overrides
from textmill.config.recipe import Recipe
from textmill.config.registry import suggest
from textmill.config.sources.open_recipe import stages_of
from textmill.errors import UserError
from textmill.inference.load import NeedsCodeError, Predictor, load_run
from textmill.preflight.load_data import read_all
from textmill.recipes.planning import Planned, plan_recipe, run_named, seed_of
from textmill.run_folder.folder import RunFolder
from textmill.runs.load_run import evaluate, evaluate_on, load_by_code
from textmill.runs.resume import Run, choose_folder, refuse_other
from textmill.runs.train import train
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.evaluation import Evaluation
from textmill.tasks.task import Task
from textmill.training.initial_weights import Initial

LOG = logging.getLogger("textmill")

Mode = Literal["train", "evaluate", "train_and_evaluate"]


@dataclass(frozen=True)
class ExperimentRun(Run):
    """A run, with what was measured of its best weights."""

    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    """By the name of the data, ``valid_data`` and ``test_data``; empty in the mode ``train``."""


def run_experiment(
    recipe: str | Path | Recipe,
    mode: Mode = "train_and_evaluate",
    run_dir: str | Path | None = None,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
) -> ExperimentRun:
    """Trains an experiment, measures what was trained, or does both.

    It is ``textmill train`` and ``textmill evaluate`` in one call: training goes on where it was
    interrupted, a finished run is not trained again, and an evaluation is of the best weights.

    The arguments, but for the mode, are those of :func:`textmill.runs.train.train`.
    """
    if mode not in get_args(Mode):
        known = ", ".join(get_args(Mode))
        here = suggest(mode, get_args(Mode)) or setting_here("mode", mode)
        raise UserError(f"mode is {mode!r:.80}; wanted one of {known}. {here}".rstrip())
    asked: dict[str, Any] = {"configs": configs, "allow_code": allow_code}
    run = run_named(recipe)
    planned = None if run is not None else _plan_of_one(recipe, overrides, **asked)
    if mode != "evaluate":
        trained = train(recipe, overrides, run_dir=run_dir, device=device, **asked)
        if mode == "train":
            return ExperimentRun(trained.folder, trained.result)
        run_dir = trained.folder
    if run is not None:
        refuse_other(run, run_dir)
        if mode == "evaluate" and configs:
            listed = ", ".join(map(str, configs))
            raise UserError(
                f"{run} is a run, which is evaluated with its own settings, so configs={listed} "
                "cannot be. Name other data in overrides, as 'valid_data.path=dev.tsv'."
            )
        words = overrides if mode == "evaluate" else ()
        found = evaluate(run, words, device=device, allow_code=allow_code)
        return ExperimentRun(run, RunFolder(run).result, found)
    assert planned is not None, "only a run is not planned"
    folder = choose_folder(planned, run_dir=run_dir, again=False)
    if not folder.info:
        raise UserError(
            f"Nothing was trained in {folder.path}, so nothing can be evaluated. Train it first: "
            "mode 'train' or 'train_and_evaluate', with the same settings."
        )
    predictor = _trained(planned, folder.path, device=device)
    return ExperimentRun(folder.path, folder.result, _evaluated(planned, predictor, folder.path))


def train_model(  # PyText's four, beside those of train
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    run_dir: str | Path | None = None,
    allow_code: bool = False,
    device: str = "auto",
    dist_init_url: str | None = None,
    device_id: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> tuple[Predictor, dict[str, Any]]:
    """Trains a recipe; returns a predictor with the best weights, and their value.

    The first arguments are those of :func:`textmill.runs.train.train`. The last four are for
    processes that a caller starts: each calls this with its ``rank`` of ``world_size`` and the
    number of its CUDA device, and ``dist_init_url`` says how they find each other:
    ``tcp://host:port``, or a file that all see, as ``file:///tmp/ranks``. Rank 0 writes.

    Returns:
        The predictor, whose ``task.module`` is the trained module; and the best value by its name,
        with its ``step``. Without ``valid_data`` nothing is selected: the dictionary is empty, and
        the weights are the last ones.
    """
    asked: dict[str, Any] = {"configs": configs, "allow_code": allow_code}
    planned = _plan_of_one(recipe, overrides, **asked)
    if world_size == 1:
        run = train(recipe, overrides, run_dir=run_dir, device=device, **asked)
    else:
        env = Env.of(device, device_id=device_id, rank=rank, world_size=world_size)
        with Ranks(env, url=dist_init_url) as ranks:
            run = train(recipe, overrides, run_dir=run_dir, ranks=ranks, **asked)
    return _trained(planned, run.folder, device=device), dict(run.result.get("best") or {})


def create_task(
    recipe: str | Path | Recipe,
    overrides: Overrides = (),
    *,
    model_state: Mapping[str, Tensor] | str | Path | None = None,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
) -> Task:
    """Makes the task of a recipe as training starts with it: data read, text fitted, module built.

    ``model_state`` are weights to load: a ``state_dict``, which must fit the module exactly; or the
    path of a run, a checkpoint or a run's ``modules``, of which everything that matches is taken.
    The other arguments are those of :func:`textmill.runs.train.train`. Nothing stays on the disk.

    Returns:
        The task. Its ``module`` has the weights of the run's seed, then what the task reads at a
        fresh start, such as ``embedding.vectors``, then ``model_state``;
        ``trainer.initialize_from`` is not applied. Its ``text`` encodes and decodes.
    """
    planned = plan_recipe(
        recipe, overrides, configs=configs, targets=["task"], allow_code=allow_code
    )
    seed = seed_of(planned.plan)
    with tempfile.TemporaryDirectory(prefix="textmill-task-") as folder:
        session = planned.start(Path(folder), "test", device)
        seed_everything(fold(seed, "data"))
        read_all(session, Path(folder))
        seed_everything(fold(seed, "weights"))
        task: Task = session.get("task")
        task.module.to(session.get("env").device)
        for line in task.initialize():
            LOG.info(line)
    if isinstance(model_state, str | Path):
        for line in Initial(str(model_state), {}, task=task).load():
            LOG.info(line)
    elif model_state is not None:
        if problems := check_fit(task.module, dict(model_state)):
            lines = "".join(f"\n  {problem}" for problem in problems)
            raise UserError(f"model_state is not the state of this module:{lines}")
        task.module.load_state_dict(model_state)
    return task


def _plan_of_one(recipe: str | Path | Recipe, overrides: Overrides, **asked: Any) -> Planned:
    """The plan of a recipe that makes one run; others are refused before they are trained."""
    planned = plan_recipe(recipe, overrides, targets=["trainer"], **asked)
    if planned.tasks or stages_of(recipe):
        raise UserError(
            f"{planned.name} makes several runs, by its tasks or stages, and one is asked for. "
            "Call textmill.train, and textmill.evaluate with the folder of each."
        )
    return planned


def _trained(planned: Planned, folder: Path, *, device: str) -> Predictor:
    """Loads the best weights: by data alone, else by the recipe's code, which the caller named."""
    try:
        return load_run(folder, device=device)
    except NeedsCodeError:
        return load_by_code(folder, "best", partial(planned.start, folder, "predict", device))


def _evaluated(planned: Planned, predictor: Predictor, folder: Path) -> dict[str, Evaluation]:
    task = predictor.task
    session = planned.start(folder, "evaluate", str(task.device), task.text.ingredients)
    found = {}
    for name in EVALUATION_DATA:
        if session.has(name) and (data := session.get(name)) is not None:
            found[name] = evaluate_on(name, data, task, folder)
    if not found:
        raise UserError(
            f"{planned.name} has neither valid_data nor test_data, so nothing can be evaluated. "
            "Give it one of them."
        )
    return found
