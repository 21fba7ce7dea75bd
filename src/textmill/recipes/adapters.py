"""Low-rank adapters beside a recipe that has none: its learning rate is meant for all weights."""

from typing import Any

from textmill.config.ingredient import IngredientTable
from textmill.config.planning.plan import Plan

FACTOR = 5.0
"""How many times as fast adapters learn. MiniLM on 600 rows of SNIPS in 4 epochs: 74.0 % with the
recipe's rate, 100 % with 5 and 10 times that, 99.7 % with 20; wider models have 2e-4 to 1e-3 by it,
as is usual for them."""


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
