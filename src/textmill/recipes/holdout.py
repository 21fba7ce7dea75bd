"""``train_data.holdout``: what it makes of a recipe's validation data, and of its test data."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textmill.config.ingredient import EVALUATION_DATA, Ingredient, IngredientTable, Like
from textmill.config.planning.plan import Plan
from textmill.config.values.raw_values import Entries
from textmill.config.values.yaml_files import typed_place
from textmill.data.text_lines import TextLines
from textmill.data.text_pairs import TextPairs
from textmill.errors import Place, PlanError, Problem

PATH = "valid_data.path"


def holds_out(plan: Plan) -> bool:
    """Whether rows of the training data are held out of it."""
    return _share(plan, "train_data") > 0


def with_held_out(
    table: IngredientTable, plan: Plan, layers: Sequence[Entries], words: Sequence[str]
) -> IngredientTable:
    """The recipe with ``valid_data`` of the rows that ``train_data`` leaves.

    A file that the recipe itself has for ``valid_data`` is not read: whoever sets a share later
    means it. One that is named beside the share is an error.
    """
    found = dict(table.ingredients)
    if not _is_held_out(plan):
        if (place := _named(layers, words)) is not None:
            text = (
                f"{PATH} names a file, but train_data.holdout={_share(plan, 'train_data')} holds "
                "rows out for valid_data: leave one of them out."
            )
            raise PlanError([Problem(text, place)])
        old = found.get("valid_data")
        own = dict(old.value.settings) if old and isinstance(old.value, Like) else {}
        own = {name: value for name, value in own.items() if name != "path"}
        value = Like("train_data", {**own, "shuffle": False, "held_out": True})
        found["valid_data"] = Ingredient("valid_data", value, old.place if old else None)
    return replace(table, ingredients=found)


def holdout_words(plan: Plan, words: Sequence[str]) -> list[str]:
    """What follows from a share, as words: the labels' column; and that a test file is whole.

    Of each label a row is kept for training, where a row has one label. Settings that a run has
    written name the file of both sides: one that the words name for the training data is of both.
    """
    if not holds_out(plan):  # without training data, nothing of a file is held out for another
        alone = EVALUATION_DATA if "train_data" not in plan.nodes else ()
        return [
            f"{n}.holdout=0" for n in alone if _share(plan, n) and not _config(plan, n).held_out
        ]
    whole = ["test_data.holdout=0"] if _share(plan, "test_data") else []
    named = [word for word in words if word.startswith("train_data.path=")]
    if named and _is_held_out(plan):
        whole.append(f"{PATH}={named[-1].partition('=')[2]}")
    labels, data = plan.nodes.get("labels"), plan.nodes.get("train_data")
    said = {} if labels is None else labels.settings
    column, known = said.get("column"), data.settings.get("columns", ()) if data else ()
    if said.get("multiple") is not False or column not in known:
        return whole
    return [*whole, f"train_data.stratify={column}"]


def check_held_out(plan: Plan) -> None:
    """Refuses a plan in which rows are held out for nothing, or of nothing."""
    for name in ("valid_data", "test_data"):
        if "train_data" in plan.nodes and _share(plan, name) and not holds_out(plan):
            text = f"{name}.holdout holds nothing out: the share is that of train_data.holdout."
            raise PlanError([Problem(text, None)])
    if "trainer" in plan.nodes and holds_out(plan) and not _is_held_out(plan):
        found = "is something else" if "valid_data" in plan.nodes else "is none"
        text = (
            f"train_data.holdout={_share(plan, 'train_data')} holds rows out for valid_data, but "
            f"valid_data {found}: leave one of them out."
        )
        raise PlanError([Problem(text, None)])


def _share(plan: Plan, name: str) -> float:
    config = _config(plan, name)
    return 0.0 if config is None else float(config.holdout)


def _is_held_out(plan: Plan) -> bool:
    config = _config(plan, "valid_data")
    return config is not None and bool(config.held_out and config.holdout)


def _config(plan: Plan, name: str) -> Any:
    config = plan.nodes[name].config if name in plan.nodes else None
    kinds = TextPairs.Config | TextLines.Config
    return config if isinstance(config, kinds) else None


def _named(layers: Sequence[Entries], words: Sequence[str]) -> Place | None:
    """Where a person names the file of ``valid_data``, if anywhere."""
    for word in reversed(words):
        if word.startswith(f"{PATH}="):
            return Place(typed_place(word))
    for layer in reversed(layers):
        node = layer.entries.get("valid_data")
        if isinstance(node, Entries) and "path" in node.entries:
            return node.entries["path"].place
    return None
