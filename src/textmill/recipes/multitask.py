"""Recipes of several tasks: the recipe of each, what they share, and the sessions that build them.

``pos.recipe=tagging/pretrained`` names a task and its recipe; settings are ``pos.train_data.path``
and so on. What the recipe of several tasks itself defines beside its trainer (a tokenizer) all of
them have; settings of any other ingredient that stand at the top (``model.encoder.path``) are those
of each task that has it, and weaker than its own. ``news.like=pos`` is the task ``pos`` on other
data, and is only measured.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from textmill.config.ingredient import DATA, IngredientTable
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.config.planning.wiring import owner_of
from textmill.config.sources.open_recipe import Source, table_of_experiment
from textmill.config.values.raw_values import Entries, Scalar
from textmill.config.values.yaml_files import parse_word, typed_place
from textmill.errors import Place, PlanError, Problem, UserError
from textmill.run_folder.folder import WRITTEN_FOLDERS
from textmill.tasks.several.multitask import Multitask, TaskSource
from textmill.text.cells import joined_text

KINDS = ("recipe", "like")
"""Settings that make a name that of a task: its recipe, or the task that it is, too."""
OWN = ("task", "module", "optimizer", "lr_scheduler", "trainer", "reporters", "callbacks")
"""Ingredients of the recipe of several tasks, and of no task."""
GIVEN = ("sources", "train_data")
"""What it gets from the tasks: each with its data, and the texts of all."""


@dataclass(frozen=True)
class TaskRecipe:
    """One of the tasks that a recipe names."""

    name: str
    source: Source
    words: Mapping[str, str]
    """The settings of the command line that are the task's, each with the word that was typed."""
    recipe: str
    like: str | None
    """The task that it is, on other data."""
    columns: tuple[str, ...]
    """What the tokenizer of the recipe reads."""
    tops: frozenset[str]
    """The ingredients whose settings at the top are those of the task, too."""


def is_multitask(table: IngredientTable) -> bool:
    """Whether a recipe is of several tasks."""
    task = table.ingredients.get("task")
    return task is not None and owner_of(task.value) is Multitask


def split(
    source: Source, words: Sequence[str], defaults: IngredientTable, *, draft: bool
) -> tuple[list[TaskRecipe], Source, list[str]]:
    """The tasks that settings name, and what is left for the recipe itself."""
    typed = {word: _entries(word) for word in words}
    kinds = dict[str, tuple[str, Scalar]]()
    for layer in (*source.layers, *typed.values()):
        for name, node in layer.entries.items():
            for kind in KINDS:
                named = node.entries.get(kind) if isinstance(node, Entries) else None
                if isinstance(named, Scalar) and name not in source.table.ingredients:
                    kinds[name] = (kind, named)
    if not kinds and not draft:
        text = (
            f"{source.table.name} trains several tasks, and none is named. Name each with its "
            "recipe and its data: pos.recipe=tagging/bilstm pos.train_data.path=train.conll"
        )
        raise PlanError([Problem(text)])
    found = [_task_recipe(name, kinds, source, typed, defaults) for name in kinds]
    gone = {*kinds}.union(*(each.tops for each in found))
    layers = tuple(_only(layer, {*layer.entries} - gone) for layer in source.layers)
    left = [word for word, tree in typed.items() if not {*tree.entries} & gone]
    return found, replace(source, layers=layers), left


def _task_recipe(
    name: str,
    kinds: Mapping[str, tuple[str, Scalar]],
    source: Source,
    typed: Mapping[str, Entries],
    defaults: IngredientTable,
) -> TaskRecipe:
    """A task with what files and words say of it: at the top, of the task it is like, of itself."""
    kind, named = kinds[name]
    if name in (*WRITTEN_FOLDERS, "evaluations"):
        text = f"a task cannot be called {name}: a run folder has another folder of that name."
        raise PlanError([Problem(text, named.place)])
    owners, like = [name], None
    if kind == "like":
        like, recipes = named.text, {n: each for n, (k, each) in kinds.items() if k == "recipe"}
        if like not in recipes:
            text = f"{name}.like is '{like}', which has no recipe of its own: {', '.join(recipes)}."
            raise PlanError([Problem(text, named.place)])
        owners, named = [like, name], recipes[like]
    table = table_of_experiment(named.text, str(named.place))
    if is_multitask(table):
        raise PlanError([Problem(f"'{named.text}' is of several tasks itself.", named.place)])
    shared = shared_names(source.table)
    own = {n: each for n, each in table.ingredients.items() if n not in shared}
    tops = frozenset({*own, *defaults.ingredients, *DATA} - {*OWN, *shared})
    if like is not None:  # the rest is of the task that it is
        tops &= {*DATA}
    layers, words = list[Entries](), dict[str, str]()
    for layer in source.layers:
        said = [_only(layer, tops)]
        own_parts = (layer.entries.get(owner) for owner in owners)
        said += [_only(e, {*e.entries} - {*KINDS}) for e in own_parts if isinstance(e, Entries)]
        layers += [part for part in said if part.entries]
    words |= {word: word for word, tree in typed.items() if tops & {*tree.entries}}
    for owner in owners:
        inner = {
            w.removeprefix(f"{owner}."): w for w, tree in typed.items() if owner in tree.entries
        }
        words |= {i: word for i, word in inner.items() if i.partition("=")[0] not in KINDS}
    made = replace(source, table=replace(table, ingredients=own), layers=tuple(layers))
    reads = getattr(table.ingredients.get("tokenizer"), "value", None)
    columns = tuple(getattr(reads, "columns", ("text",)))
    return TaskRecipe(name, made, words, named.text, like, columns, tops)


def _entries(word: str) -> Entries:
    """A word as entries; one that cannot be read has none, which the recipe's own plan says."""
    try:
        return parse_word(word).tree()
    except UserError:
        return Entries({}, Place(word))


def _only(entries: Entries, keys: Collection[str]) -> Entries:
    return replace(entries, entries={k: n for k, n in entries.entries.items() if k in keys})


def shared_names(table: IngredientTable) -> list[str]:
    """The ingredients of a recipe of several tasks that each task has."""
    return [name for name in table.ingredients if name not in OWN]


def joined_plan(whole: Plan, tasks: Mapping[str, Plan], named: Mapping[str, TaskRecipe]) -> Plan:
    """The plan of all: settings of a task stand under its name."""
    heads = {
        name: {"recipe": each.recipe} if each.like is None else {"like": each.like}
        for name, each in named.items()
    }
    settings = {name: {**heads[name], **task.settings} for name, task in tasks.items()}
    notes = [f"{name}: {note}" for name, task in tasks.items() for note in task.notes]
    given = {f"{name}.{key}" for name, task in tasks.items() for key in task.given}
    return replace(
        whole,
        tasks=dict(tasks),
        settings={**settings, **whole.settings},
        notes=[*whole.notes, *dict.fromkeys(notes)],
        given=frozenset({*whole.given, *given}),
    )


def planned_each(
    named: Sequence[TaskRecipe], plan: Callable[[TaskRecipe], Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """What ``plan`` makes of each task, and what is wrong with any."""
    found, problems = dict[str, Any](), list[Problem]()
    for each in named:
        try:
            found[each.name] = made = plan(each)
        except PlanError as error:
            wrong = [*error.problems]
        else:
            wrong = [*made.plan.problems]
            if made.plan.swaps:
                swapped = ", ".join(made.plan.swaps)
                wrong.append(Problem(f"{swapped}: a task of several takes no import path."))
        places = {typed_place(inner): Place(typed_place(w)) for inner, w in each.words.items()}
        for problem in wrong:
            place = places.get(str(problem.place), problem.place)
            problems.append(Problem(f"{each.name}: {problem.message}", place))
    return found, problems


def wire_tasks(session: Session, table: IngredientTable, named: Mapping[str, TaskRecipe]) -> None:
    """Lets the sessions of a run and of its tasks have what each takes of the other."""
    for name, own in session.tasks.items():
        own.later |= {key: partial(session.get, key) for key in shared_names(table)}
        if (like := named[name].like) is not None:
            own.later["task"] = partial(session.tasks[like].get, "task")
    session.later["sources"] = lambda: [
        _source_of(name, own, named[name]) for name, own in session.tasks.items()
    ]
    session.later["train_data"] = lambda: AllTexts(session.tasks, named)


def _source_of(name: str, own: Session, recipe: TaskRecipe) -> TaskSource:
    trainer = recipe.source.table.ingredients.get("trainer")
    selection = getattr(trainer and trainer.value, "selection", None)
    selected = getattr(selection, "metric", "auto")
    try:
        data = {key: own.get(key) if own.has(key) else None for key in DATA}
        return TaskSource(name=name, task=own.get("task"), selected=selected, **data)
    except Exception as error:
        error.add_note(f"of the task '{name}'")
        raise


class AllTexts:
    """The texts of all tasks to train on, in the column ``text``: what a shared tokenizer reads.

    Of each task they are the columns that the tokenizer of its own recipe would read.
    """

    def __init__(self, sessions: Mapping[str, Session], named: Mapping[str, TaskRecipe]) -> None:
        self.sessions, self.named = sessions, named

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for name, own in self.sessions.items():
            for row in own.get("train_data") if own.has("train_data") else ():
                for column in self.named[name].columns:
                    yield {"text": joined_text(row[column])}
