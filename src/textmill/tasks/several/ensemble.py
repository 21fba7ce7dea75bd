"""An ensemble: finished runs as members of one task, which answers with the mean of theirs."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component, runtime_parameters
from textmill.config.component import Config as BaseConfig
from textmill.config.registry import Registry
from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.models.registries import models
from textmill.tasks import registries
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.tagging import TagHead
from textmill.text.features.labels import shown
from textmill.text.processors.column_processor import WEIGHTS, ColumnsText
from textmill.text.processors.ensemble import EnsembleText
from textmill.text.processors.text_processor import TextProcessor

Settings = dict[str, Any]


@models.register("ensemble")
class EnsembleModel(Component, nn.Module):
    """The models of an ensemble's members, under one name each in the checkpoint."""

    class Config(BaseConfig):
        models: tuple[Settings, ...]
        """The model of each member, as the ``config.yaml`` of its run has it."""

    def __init__(self, config: Config, *, members: Sequence[Mapping[str, Any]]) -> None:
        nn.Module.__init__(self)
        self.config = config
        pairs = zip(config.models, members, strict=True)
        self.members = nn.ModuleList(built(models, *pair) for pair in pairs)

    @override
    def forward(self, *texts: Tensor, **beside: Tensor) -> Any:
        raise UserError("An ensemble is called by its task, which gives each member its columns.")


def _of_answering(name: str) -> Any:
    """What the first member's task has; it is asked with the scores of all."""
    return property(lambda self: getattr(self.answering, name))


@registries.tasks.register("ensemble")
class Ensemble(ColumnsTask):
    """Answers with the mean of its members' probabilities, or of their numbers.

    Each member reads a row by its own text processor, so runs may have other tokenizers and models;
    they have the same kind of task and the same labels. ``textmill ensemble`` makes it of finished
    runs; loss and metrics are those of the first member's task.
    """

    class Config(ColumnsTask.Config):
        tasks: tuple[Settings, ...]
        """The task of each member, as the ``config.yaml`` of its run has it."""

    text: EnsembleText
    module: EnsembleModel

    def __init__(
        self, config: Config, *, module: EnsembleModel, members: Sequence[Mapping[str, Any]]
    ) -> None:
        super().__init__(config, module=module)
        parts = zip(config.tasks, members, module.members, strict=True)
        tasks = [built(registries.tasks, own, {**has, "module": m}) for own, has, m in parts]
        self._take(tasks)

    def _take(self, tasks: Sequence[ColumnsTask]) -> None:
        refuse_others(tasks)
        self.members = tuple(tasks)
        self.text = EnsembleText([task.text for task in tasks])
        # The first member's task of scores that are the mean of all members'.
        self.answering: Any = copy.copy(tasks[0])
        vars(self.answering)["scores"] = self.scores

    @override
    def use_text(self, text: TextProcessor) -> None:
        super().use_text(text)
        for member, own in zip(self.members, self.text.members, strict=True):
            member.use_text(own)
        self._take(self.members)

    @override
    def check_lengths(self) -> None:
        for member in self.members:
            member.check_lengths()

    def join(self) -> None:
        """Takes the mean of the members' transitions between labels; once, when it is made."""
        heads = [getattr(member, "head", None) for member in self.members]
        if all(isinstance(head, TagHead) for head in heads):
            self.answering.head.join(heads)

    @override
    def scores(self, batch: ColumnBatch) -> Any:
        made = []
        for number, member in enumerate(self.members):
            parts = (self.text.of_member(p, number) for p in (batch.columns, batch.lengths))
            columns, lengths = parts
            made.append(member.scores(ColumnBatch(columns=columns, lengths=lengths)))
        return self.members[0].averaged(self.members, made)

    loss = _of_answering("loss")
    answers = _of_answering("answers")
    answer_metrics = _of_answering("answer_metrics")
    measure = _of_answering("measure")
    remarks = _of_answering("remarks")
    selected = _of_answering("selected")
    counts_unseen = _of_answering("counts_unseen")
    exported_forward = _of_answering("exported_forward")
    exported_outputs = _of_answering("exported_outputs")


def built(registry: Registry, settings: Settings, ingredients: Mapping[str, Any]) -> Any:
    """A component by its settings, of those ingredients that it takes."""
    config = registry.get(str(settings.get("type"))).Config.from_dict(settings)
    taken = runtime_parameters(config)
    return config.build(**{name: made for name, made in ingredients.items() if name in taken})


def refuse_others(tasks: Sequence[Any]) -> None:
    """Refuses members that do not answer alike: of another kind of task, or with other labels."""
    first, *others = tasks
    if getattr(type(first), "averaged", ColumnsTask.averaged) is ColumnsTask.averaged:
        raise UserError(
            f"A {type(first).__name__} cannot be a member of an ensemble. Members are runs that "
            "classify or tag texts, find intents and slots, or estimate numbers."
        )
    for number, task in enumerate(others, start=2):
        if type(task) is not type(first):
            raise UserError(
                f"Member {number} is a {type(task).__name__}, but member 1 is a "
                f"{type(first).__name__}. The members of an ensemble have one kind of task."
            )
        own, wanted = _targets(task.text), _targets(first.text)
        if own != wanted:
            raise UserError(
                f"Member {number} learnt other answers than member 1, or in another order: "
                f"{_shown(own)}, not {_shown(wanted)}. Train the members with the same labels, "
                "as labels.names declares them."
            )


def _targets(text: ColumnsText) -> dict[str, list[Any]]:
    """What there is to answer: by the column, its labels; of words, also how many there may be."""
    found = {}
    for role, column in text.targets.items():
        if role in WEIGHTS:  # which are no answers
            continue
        names = [name for fitted in column.fitted.values() for name in fitted]
        found[column.name] = names or [role, getattr(column, "span", None)]
    return found | ({"words": [text.limits.get(text.leading)]} if text.leading else {})


def _shown(targets: Mapping[str, list[Any]]) -> str:
    return "; ".join(f"{name}: {shown([*map(str, names)])}" for name, names in targets.items())
