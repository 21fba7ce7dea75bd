"""Planning a recipe with the library's defaults: what every command starts from."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.saved import refuse_changed
from textmill.config.ingredient import EVALUATION_DATA, BuiltFrom, IngredientTable
from textmill.config.planning.key import plan_parts
from textmill.config.planning.overrides import Overrides
from textmill.config.planning.plan import ALWAYS, Plan, make_plan
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe
from textmill.config.registry import find_name
from textmill.config.sources.include import included, is_includable
from textmill.config.sources.open_recipe import Source, differing, open_recipe
from textmill.config.sources.script import table_of_module
from textmill.config.values.raw_values import Entries
from textmill.errors import PlanError, Problem, UserError
from textmill.exported.formats import ExportSettings
from textmill.recipes import defaults, registries
from textmill.recipes.holdout import check_held_out, holdout_words, holds_out, with_held_out
from textmill.recipes.multitask import (
    GIVEN,
    TaskRecipe,
    is_multitask,
    joined_plan,
    planned_each,
    shared_names,
    split,
    wire_tasks,
)
from textmill.recipes.rows_file import file_words
from textmill.run_folder.folder import RunFolder, is_run_folder, refuse_lightning, wrote_in
from textmill.runtime.devices import Env, Experiment

BESIDE = ("characters", "affixes", "pieces", "dictionary", "dense", "ngrams")
"""What can stand beside words, and by default does not."""

FACTOR = 5.0
"""How many times as fast low-rank adapters learn as all weights. MiniLM on 600 rows of SNIPS in 4
epochs: 74.0 % with the recipe's rate, 100 % with 5 and 10 times that, 99.7 % with 20; wider models
have 2e-4 to 1e-3 by it, as is usual for them."""


@dataclass(frozen=True)
class Planned:
    """A recipe and its plan."""

    source: Source
    plan: Plan
    run: Path | None = None
    """The run folder that is gone on with, where the recipe was named by one."""
    tasks: Mapping[str, "Planned"] = field(default_factory=dict)
    """Those of the tasks that are trained together, by name."""
    named: Mapping[str, TaskRecipe] = field(default_factory=dict)
    """What names them."""

    @property
    def table(self) -> IngredientTable:
        return self.source.table

    @property
    def script(self) -> Path | None:
        return self.table.path

    @property
    def name(self) -> str:
        """What the recipe is called: of a run gone on with, what it was called then."""
        run = self.run
        if run is None and self.source.yaml is not None and is_run_folder(self.source.yaml.parent):
            run = self.source.yaml.parent  # textmill train RUN/config.yaml repeats that run
        return str(RunFolder(run).info["recipe"]) if run else self.table.name

    @property
    def include(self) -> list[str]:
        """The modules without which the recipe's names mean nothing: ``--include`` brings them."""
        found = dict.fromkeys([*included(), *self.source.include])
        experiment = registries.experiments.loaded(self.name) if self.script is None else None
        parts = [*plan_parts(self.plan), *([] if experiment is None else [experiment])]
        local = self.table.files
        for part in parts:
            module = sys.modules.get(str(part.__module__))
            if module is not None and find_name(part) and is_includable(module, local):
                found[module.__name__] = None
        return list(found)

    def alone(self, name: str) -> "Planned":
        """One of the tasks, with the settings of what it shares among its own."""
        task, whole = self.tasks[name], self.plan.settings
        shared = {n: whole[n] for n in shared_names(self.table) if n in whole}
        settings = {**shared, **task.plan.settings}
        return replace(task, plan=replace(task.plan, settings=settings))

    def start(
        self,
        folder: Path,
        entry_point: str,
        device: str,
        provided: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        overrides: tuple[str, ...] = (),
    ) -> Session:
        """What builds the recipe's ingredients for a run in a folder; nothing is built yet."""
        xp = Experiment(folder, self.name, key, overrides)
        always = {"env": Env.detect(device), "xp": xp, "entry_point": entry_point}
        session = self.plan.start({**always, **(provided or {})})
        if self.tasks:
            session.tasks = {
                n: t.plan.start({**always, **(provided or {})}) for n, t in self.tasks.items()
            }
            wire_tasks(session, self.table, self.named)
        return session


def library_defaults() -> IngredientTable:
    """The ingredients a recipe need not name."""
    return table_of_module(defaults)


def plan_recipe(
    recipe: str | Path | Recipe,
    words: Overrides = (),
    *,
    configs: Sequence[str | Path | Entries] = (),
    targets: Sequence[str],
    allow_code: bool = False,
    draft: bool = False,
) -> Planned:
    """Plans a script, an experiment, a YAML file, a Recipe, or the recipe of a run's folder.

    With ``allow_code`` code that a run folder names may be executed; an incomplete recipe is no
    error of a ``draft``, whose plan has its problems. ``configs`` are files, or what a stage sets.

    Raises:
        PlanError: With every problem found; not of a draft.
    """
    source, run = open_named(recipe, configs, allow_code=allow_code)
    if not is_multitask(source.table):
        return _planned(source, run, file_words(words), targets=targets, draft=draft)
    if any(isinstance(config, Entries) for config in configs):
        text = "stages are of one task: a stage's weights fill the module of the next."
        raise PlanError([Problem(text, None)])
    defaults = library_defaults()
    named, rest, left = split(source, file_words(words), defaults, draft=draft)
    provided = shared_names(source.table)
    tasks, problems = planned_each(named, partial(_of_task, provided=provided, draft=draft))
    how: dict[str, Any] = {"targets": [*targets, *provided], "provided": GIVEN}
    whole = _planned(rest, run, left, draft=True, **how)
    problems += whole.plan.problems
    if problems and not draft:
        raise PlanError(problems)
    by_name = {each.name: each for each in named}
    plan = joined_plan(whole.plan, {n: each.plan for n, each in tasks.items()}, by_name)
    return Planned(source, plan, run, tasks, by_name)


def _of_task(named: TaskRecipe, *, provided: Sequence[str], draft: bool) -> Planned:
    """Plans one of several tasks, for what it learns from and is measured on."""
    targets = [] if named.like else ["task", "train_data"]
    how: dict[str, Any] = {"targets": targets, "also": EVALUATION_DATA, "provided": provided}
    return _planned(named.source, None, [*named.words], draft=draft, **how)


def _planned(
    source: Source,
    run: Path | None,
    said: Sequence[str],
    *,
    targets: Sequence[str],
    draft: bool,
    also: Sequence[str] = (),
    provided: Sequence[str] = (),
) -> Planned:
    defaults = library_defaults()
    own = {name: each for name, each in defaults.ingredients.items() if name not in provided}
    make = partial(
        make_plan,
        defaults=replace(defaults, ingredients=own),
        layers=source.layers,
        targets=targets,
        also=also,
        draft=draft,
        always=(*ALWAYS, *provided),
        closed=source.closed,
    )
    plan, table, implied = make(source.table, words=said), source.table, list[str]()
    rate = rate_of_adapters(plan, source.table)
    if rate:
        implied.append(f"optimizer.lr={rate:.15g}")
    if holds_out(plan):
        table = with_held_out(source.table, plan, source.layers, said)
    implied += holdout_words(plan, said)
    if implied or table is not source.table:
        plan = make(table, words=[*implied, *said])
    if rate:
        plan.notes.append(f"Adapters (lora) learn faster than all weights: {implied[0]}.")
    if not draft:
        check_held_out(plan)
        _refuse_unused(plan)
    typed = {word.partition("=")[0] for word in said}
    left_out = {name: node for name, node in source.left_out.items() if name not in typed}
    plan.notes[:0] = differing(left_out, plan.settings)
    return Planned(source, plan, run)


def _refuse_unused(plan: Plan) -> None:
    """Refuses what stands beside words where the task would read it, and the model not take it."""
    module, task = plan.nodes.get("module"), plan.nodes.get("task")
    if module is None or task is None or not isinstance(module.value, BuiltFrom):
        return  # of the recipe's own a module may know it otherwise
    given = [
        n for n in BESIDE if n in plan.nodes and plan.nodes[n].value is not vars(defaults).get(n)
    ]
    problems = [
        Problem(
            f"{name}: the model {plan.nodes['model'].type_name} takes none, so it would be of no "
            f"use. Leave {name} out, or choose another model.",
            None,
        )
        for name in given
        if name in task.needs and name not in module.needs
    ]
    if problems:
        raise PlanError(problems)


def open_named(
    recipe: str | Path | Recipe, configs: Sequence[str | Path | Entries], *, allow_code: bool
) -> tuple[Source, Path | None]:
    """The recipe, and the run folder where it was named by one."""
    opened = partial(open_recipe, configs=configs, allow_code=allow_code, is_run=wrote_in)
    run = run_named(recipe)
    if run is not None:
        refuse_lightning(run)
        refuse_changed(run, code=allow_code)
        return opened(run / "config.yaml"), run
    if not isinstance(recipe, Recipe) and Path(recipe).is_dir():
        raise UserError(
            f"{recipe} is a folder, but not one that textmill train has written (no run.json in "
            "it). Wanted a script.py, a file.yaml, an experiment, or a run folder."
        )
    return opened(recipe), None


def run_named(recipe: str | Path | Recipe) -> Path | None:
    """The run folder, where a recipe is named by one."""
    if isinstance(recipe, Recipe) or not is_run_folder(Path(recipe)):
        return None
    return Path(recipe)


def exports_of(plan: Plan) -> tuple[ExportSettings, ...]:
    """The formats that ``trainer.export`` names; a trainer of the recipe's own may have none."""
    trainer = plan.nodes.get("trainer")
    named = (trainer.settings.get("export") if trainer else None) or ()
    return tuple(map(ExportSettings.of, named))


def seed_of(plan: Plan) -> int:
    """The run's seed; a trainer of the recipe's own may have none."""
    seed = plan.settings.get("trainer", {}).get("seed")
    return seed if isinstance(seed, int) else 1


def rate_of_adapters(plan: Plan, table: IngredientTable) -> float | None:
    """The rate if ``lora`` is set beside a recipe without it, and no rate is set; else None."""
    found = {name: plan.nodes[name].config for name in ("model", "optimizer") if name in plan.nodes}
    own = {name: table.ingredients[name].value for name in found if name in table.ingredients}
    if len(own) < 2 or type(found["optimizer"]) is not type(own["optimizer"]):
        return None
    if _adapters(own["model"]) != [None] or None in (_adapters(found["model"]) or [None]):
        return None
    rate: float | None = getattr(own["optimizer"], "lr", None)
    if rate is None or "optimizer.lr" in plan.given or "optimizer" in plan.swaps:
        return None
    return FACTOR * rate


def _adapters(model: Any) -> list[Any]:
    """What is set of ``lora`` in a model or its encoder; empty if there is no such setting."""
    parts: list[Any] = [model, getattr(model, "encoder", None)]
    return [part.lora for part in parts if hasattr(part, "lora")]
