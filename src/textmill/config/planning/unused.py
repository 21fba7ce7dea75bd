"""What a recipe and its settings say in vain, and what they do not say, once all is planned."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from textmill.config.component import Config, Given
from textmill.config.foreign_names import setting_here
from textmill.config.planning.overrides import Names
from textmill.config.planning.wiring import IngredientNode, dotted_settings
from textmill.config.registry import suggest
from textmill.config.values.raw_values import Entries
from textmill.config.values.raw_values import Node as Written
from textmill.errors import Place, Problem


class Unused:
    """Compares what was said with the ingredients that a plan reached.

    Args:
        names: The names of the recipe, with what files and words say.
        nodes: The ingredients of the plan.
        used: Their names, and those of ingredients that others are like.
    """

    def __init__(
        self, names: Names, nodes: Mapping[str, IngredientNode], used: Collection[str]
    ) -> None:
        self.names, self.nodes, self.used = names, nodes, used
        self.unfilled = {name for node in nodes.values() for name in node.wiring.unfilled}
        """Names that something here would take, and nobody defines."""

    def _settings(self) -> Iterator[tuple[str, Written, Place | None]]:
        """What is said of other names than those that are used or switched off."""
        for layer in (*self.names.layers, self.names.typed):
            for name, node in layer.entries.items():
                if name not in self.used and name not in self.names.off:
                    yield name, node, layer.key_places.get(name) or node.place

    def unknown(self) -> Iterator[Problem]:
        """Settings for names that no ingredient has."""
        for name, node, place in self._settings():
            if name in self.names.always:
                yield Problem(f"'{name}' is provided by the run and has no settings.", place)
            elif name not in self.names.known:
                keys = node.entries if isinstance(node, Entries) else ()
                guess = self.names.nearest(name, keys, dotted_settings(self.nodes.values()))
                text = self.names.no_ingredient(name, setting_here(name) or guess)
                yield Problem(text.strip(), place)

    def unreached(self) -> list[str]:
        """Settings of ingredients that the plan does not need."""
        return [
            f"{name} is not used here; its settings ({place}) change nothing."
            for name, _, place in self._settings()
            if name in self.names.known and name not in self.names.always
        ]

    def missing(self, needed: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
        """One problem for each name that is needed, with who needs it, and that nobody defines."""
        table = self.names.table
        for name, users in needed.items():
            needs = "needs" if len(set(users)) == 1 else "need"
            by = f", and {', '.join(dict.fromkeys(users))} {needs} it" if users else ""
            own = [user for user in users if user in table.ingredients]
            place = self.nodes[own[0]].ingredient.place if own else None
            free = [key for key in table.ingredients if key not in self.nodes]
            guess = suggest(name, free)
            text = f"no '{name}' is specified{by}. {guess}Define {name} in the recipe."
            if name in self.names.off:
                text = f"'{name}' is switched off by {name}=null{by}. Leave that out."
            bound = table.objects.get(name)
            yield Problem(bound) if bound else Problem(text, place)

    def untaken(self) -> Iterator[str]:
        """Configs that the recipe binds, and neither mentions itself nor gives to anybody."""
        table = self.names.table
        free = {*self.names.known, *self.unfilled} - set(table.ingredients)
        for name, ingredient in table.ingredients.items():
            if name in self.nodes or name in self.names.off or name in table.mentioned:
                continue
            if isinstance(ingredient.value, Config | Given):
                where = f" ({ingredient.place})" if ingredient.place else ""
                yield f"{name}{where} is taken by nothing here. {suggest(name, free)}".strip()
