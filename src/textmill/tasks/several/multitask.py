"""Several tasks that are trained together on modules with shared parts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from textmill.checkpoint.writing import PART_NAME
from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.metrics.metric import Direction, Metric
from textmill.tasks import registries
from textmill.tasks.evaluation import Evaluation
from textmill.tasks.task import Task

MEAN = "mean"
"""The value that is the mean of what each task is selected by."""


@dataclass(frozen=True, kw_only=True)
class TaskSource:
    """A task, the data that it learns from, and the data that it is measured on."""

    task: Task
    train_data: Iterable[Any] | None
    """None: it is only measured."""
    valid_data: Iterable[Any] | None = None
    test_data: Iterable[Any] | None = None
    name: str = ""
    """Before the names of its losses and values, as ``tags/loss``; of a run's only source empty."""
    selected: str = "auto"
    """The value that counts in the mean of all; ``auto`` is the task's own."""

    @property
    def metric(self) -> str:
        return self.task.selected if self.selected == "auto" else self.selected


@registries.tasks.register("multitask")
class Multitask(Component):
    """What the loop asks of a task, of several that are trained together.

    Their modules are one, by the names of the sources: what they share is in it once, and is
    trained, counted and saved once. Values are named by their source, as ``tags/loss``;
    ``trainer.selection.metric`` names one of them, or ``mean``: the mean of what each task of its
    own would be selected by, where a value whose lower is better counts as negative. A source that
    is only measured does not count in it.

    It brings the data of its sources, so a trainer needs no other. It is not a ``Task``, and its
    ``text`` is not a ``TextProcessor``: what answers when the run has ended is each task alone.
    """

    class Config(BaseConfig):
        """Settings of several tasks that are trained together."""

        share: tuple[str, ...] = ("encoder",)
        """Parts of the modules, by the last word of their names, whose parameters are one in all
        tasks: those of the first. Empty shares nothing but what the modules share already."""
        steps: Literal["one", "all"] = "one"
        """Of whose loss a step is: ``one`` draws a task for each step; ``all`` adds up the mean
        losses of all tasks, each times its weight."""
        weights: Mapping[str, float] = setting(factory=dict)
        """How often a task is drawn beside the others, or what its loss counts, by name; else 1."""
        size_power: float = 1.0
        """A task is drawn by its weight times its batches to this power: 1 in proportion to them, 0
        all as often (Sanh et al. 2019; Raffel et al. 2020)."""
        last_size_power: float | None = None
        """The power at the run's end, towards which it goes in a straight line: 0.2 lets small
        tasks come more often in the end (Stickland and Murray 2019); null keeps it."""

        def __post_init__(self) -> None:
            require(self, "task", not_negative=["size_power"])
            if wrong := {n: w for n, w in self.weights.items() if not 0 < w < math.inf}:
                raise UserError(f"task.weights must be positive numbers, but are {wrong}.")

    config: Config

    def __init__(self, config: Config, *, sources: Sequence[TaskSource]) -> None:
        self.config, self.sources = config, sources
        _check(sources, config.weights)
        self.tasks = {source.name: source.task for source in sources}
        self._measured = {s.name: s for s in sources if s.valid_data is not None}
        self.learnt = {s.name: s.task for s in sources if s.train_data is not None}
        share_parameters({n: t.module for n, t in self.learnt.items()}, config.share)
        self.module = nn.ModuleDict({name: task.module for name, task in self.learnt.items()})
        self.text = self  # which saves those of the tasks
        self.selected = MEAN

    @property
    def device(self) -> torch.device:
        return next(iter(self.tasks.values())).device

    @property
    def parts(self) -> dict[str, Any]:
        return {
            part_name(part, name): value
            for name, task in self.learnt.items()
            for part, value in task.parts.items()
        }

    @property
    def alike(self) -> bool:
        """Whether the sizes of the sources do not matter to how often they are drawn."""
        return self.config.size_power == 0 and not self.config.last_size_power

    def draws(self, sizes: Mapping[str, int], progress: float) -> list[float]:
        """How often each source is drawn, by its batches, at a share of the run from 0 to 1."""
        power, last = self.config.size_power, self.config.last_size_power
        power += progress * (0.0 if last is None else last - power)
        return [self.weight(name) * size**power for name, size in sizes.items()]

    def weight(self, name: str) -> float:
        return self.config.weights.get(name, 1.0)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Those of the tasks; a parameter that several have is in the first of their groups."""
        found, seen = list[dict[str, Any]](), set[nn.Parameter]()
        for group in (g for task in self.learnt.values() for g in task.parameter_groups()):
            new = [p for p in group["params"] if p not in seen]
            seen.update(new)
            found += [{**group, "params": new}] if new else []
        return found

    def initialize(self) -> list[str]:
        return list(dict.fromkeys(line for t in self.learnt.values() for line in t.initialize()))

    def rolled_back(self) -> None:
        for task in self.learnt.values():
            task.rolled_back()

    def save(self, folder: Path) -> None:
        """Saves the text processor of each task in a folder of its name."""
        for name, task in self.learnt.items():
            (folder / name).mkdir()
            task.text.save(folder / name)

    def directions(self) -> dict[str, Direction]:
        """Those of the values that a checkpoint is selected by, of sources with ``valid_data``."""
        found = {name: source.task.directions() for name, source in self._measured.items()}
        selects = {n: s.metric for n, s in self._measured.items() if n in self.learnt}
        known = bool(selects) and all(metric in found[name] for name, metric in selects.items())
        return {**_by_name(found), **({MEAN: "higher"} if known else {})}

    def metrics(self) -> dict[str, Metric]:
        return _by_name({name: source.task.metrics() for name, source in self._measured.items()})

    def reduce(self, metrics: Mapping[str, Metric]) -> dict[str, float]:
        found = {}
        for name, source in self._measured.items():
            start = f"{name}/"
            own = {k.removeprefix(start): m for k, m in metrics.items() if k.startswith(start)}
            found[name] = source.task.reduce(own)
        return _by_name(found)


def share_parameters(modules: Mapping[str, nn.Module], names: Iterable[str]) -> None:
    """Makes parts of several modules one: their parameters are those of the first module's part.

    A part is found by the last word of its name, as ``encoder`` in ``text.encoder``; a module that
    has none keeps what it has. Adapters inside a part are shared with it; buffers stay each
    module's own.

    Raises:
        UserError: No two modules have a part of that name, or theirs are of other sizes.
    """
    for name in names:
        found = {
            task: part
            for task, module in modules.items()
            for path, part in module.named_modules()
            if path.rpartition(".")[2] == name and f".{name}." not in f".{path}"[: -len(name)]
        }
        if len(found) < 2:
            raise UserError(
                f"task.share names '{name}', but a part of that name is in "
                f"{', '.join(found) or 'no task'}: two need one to share it. Leave it out of "
                "task.share, or give the models a part of that name."
            )
        (first, shared), *others = found.items()
        own = dict(shared.named_parameters())
        for task, part in others:
            theirs = dict(part.named_parameters())
            shapes = {
                n: (p.shape, theirs[n].shape if n in theirs else None) for n, p in own.items()
            }
            shapes |= {n: (None, p.shape) for n, p in theirs.items() if n not in own}
            if wrong := [n for n, (one, other) in shapes.items() if one != other]:
                one, other = (_shown(shape) for shape in shapes[wrong[0]])
                raise UserError(
                    f"task.share: the {name} of {task} is not of the size of that of {first}: "
                    f"{wrong[0]} is {other}, and {one} there. Give both the same settings (and "
                    "inputs: characters or affixes beside the words make it larger)."
                )
            for path in theirs:
                owner, _, last = path.rpartition(".")
                setattr(part.get_submodule(owner), last, own[path])


def joined(found: Mapping[str, Evaluation], metrics: Mapping[str, str]) -> Evaluation:
    """One evaluation of several: values by ``source/value``, and each row says its source.

    Where each source that ``metrics`` names has its value, the mean of those is one, too.
    """
    made = {name: _named(evaluation, name) for name, evaluation in found.items()}
    first, *others = made.values()
    for other in others:
        mappings = ("values", "directions", "details", "errors")
        both = {of: {**getattr(first, of), **getattr(other, of)} for of in mappings}
        rows, remarks = [*first.rows, *other.rows], (*first.remarks, *other.remarks)
        first = replace(first, rows=rows, remarks=remarks, **both)
    names = [f"{name}/{metric}" for name, metric in metrics.items()]
    if not names or any(name not in first.directions for name in names):
        return first
    signs = {"higher": 1, "lower": -1}
    total = sum(signs[first.directions[name]] * first.values[name] for name in names)
    values = {**first.values, MEAN: total / len(names)}
    squares = sum(first.errors.get(name, 0.0) ** 2 for name in names)
    errors = {**first.errors, MEAN: math.sqrt(squares) / len(names)}
    return replace(
        first, values=values, errors=errors, directions={**first.directions, MEAN: "higher"}
    )


def part_name(part: str, source: str) -> str:
    """The name under which a source's part is saved, ``data`` or ``data.tags``."""
    return f"{part}.{source}" if source else part


def _check(given: Sequence[TaskSource], weights: Mapping[str, float]) -> None:
    names, module = [source.name for source in given], nn.ModuleDict()
    good = [
        name
        for name in names
        if PART_NAME.fullmatch(name) and "." not in name and not hasattr(module, name)
    ]
    if len({*good}) < len(names):
        raise UserError(
            f"Tasks are told apart by their names, but these are {names}. Give each another: "
            "small letters, digits, '_' and '-' after a first small letter, and none that torch's "
            "modules have themselves, as train."
        )
    if unknown := [name for name in weights if name not in names]:
        raise UserError(f"task.weights names '{unknown[0]}'; the tasks are {', '.join(names)}.")
    if all(source.train_data is None for source in given):
        raise UserError("No task has train_data: there is nothing to learn from.")


def _named(found: Evaluation, source: str) -> Evaluation:
    return Evaluation(
        values=_by_name({source: found.values}),
        directions=_by_name({source: found.directions}),
        details=_by_name({source: found.details}),
        rows=[{"source": source, **row} for row in found.rows],
        remarks=tuple(f"{source}: {remark}" for remark in found.remarks),
        errors=_by_name({source: found.errors}),
    )


def _by_name(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}/{key}": value for name, of in found.items() for key, value in of.items()}


def _shown(shape: torch.Size | None) -> str:
    return "missing" if shape is None else f"[{', '.join(map(str, shape))}]"
