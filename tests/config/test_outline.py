"""A recipe in a line for each ingredient."""

from dataclasses import dataclass

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.help import outline
from textmill.config.recipe import Recipe, like
from textmill.training.optimizers import AdamW, Muon, Optimizer


@dataclass(frozen=True)
class Search:
    beam: int = 1
    deep: bool = False


class Stack(Component):
    class Config(BaseConfig):
        size: int
        names: tuple[str, ...] = ()
        search: Search = Search()
        inner: Optimizer.Config = AdamW.Config()
        other: Optimizer.Config | None = None


def module(optimizer: object) -> None:
    """Made by a function."""


def shown(**ingredients):
    return [line.strip() for line in outline(Recipe("A recipe.", **ingredients))]


def test_structures_have_dotted_names_and_another_type_its_name():
    config = Stack.Config(
        size=2, names=("a", "b"), search=Search(deep=True), inner=AdamW.Config(lr=0.5),
        other=Muon.Config(betas=(0.5, 0.9)),
    )  # fmt: skip
    assert shown(model=config) == [
        "model  Stack: size=2 names=[a, b] search.deep=true inner.lr=0.5 other.type=muon "
        "other.betas=[0.5, 0.9]"
    ]


def test_what_follows_and_what_is_rebound_and_functions_are_named():
    lines = shown(
        train_data=Stack.Config(size=1).given(), valid_data=like("train_data", size=3),
        test_data=like("train_data"), module=module,
    )  # fmt: skip
    assert lines == [
        "train_data  Stack: size=1", "valid_data  like train_data: size=3",
        "test_data   like train_data", "module      module",
    ]  # fmt: skip
