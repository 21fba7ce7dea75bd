"""One ingredient with all that the layers say of it: followed, typed, and its settings filled."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from textmill.config.code_names import CodeNames, UnknownCodeError, type_word
from textmill.config.component import Given
from textmill.config.ingredient import BuiltFrom, Ingredient, Like, as_config, dependencies_of
from textmill.config.merge import Settings, leaves, without_type
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.planning.overrides import Names
from textmill.config.planning.read_back import lost
from textmill.config.planning.wiring import IngredientNode, Wiring, add_dependencies, wire
from textmill.config.registry import find_name, for_ingredient, suggest
from textmill.config.values.annotations import hints
from textmill.config.values.raw_values import Entries, Scalar, Value, is_null, shown
from textmill.config.values.raw_values import Node as Written
from textmill.config.values.typed_values import INVALID
from textmill.config.values.yaml_files import typed_place
from textmill.errors import Place, Problem, SeveralError, UserError, worded


class Resolver:
    """Resolves ingredients by name, each once."""

    def __init__(self, names: Names, closed: Collection[str] = ()) -> None:
        self.names = names
        self.settings = Settings(CodeNames(names.table.module, closed))
        self.problems: list[Problem] = self.settings.problems
        self.notes: list[str] = self.settings.notes
        self.resolved: dict[str, IngredientNode] = {}
        self.changed: set[str] = set()  # ingredients that are of another type than the recipe says

    def node(self, name: str) -> IngredientNode:
        """The ingredient with its settings resolved; each is resolved once."""
        if name not in self.resolved:
            ingredient = self.names.known[name]
            # A like() that follows itself stops here.
            self.resolved[name] = IngredientNode(ingredient, MISSING)
            self.resolved[name] = self.resolve(name, ingredient)
        return self.resolved[name]

    def resolve(self, name: str, ingredient: Ingredient) -> IngredientNode:
        """Follows like(), then the layers' type, then their settings."""
        value, base, own = ingredient.value, {}, list[Entries]()
        if isinstance(value, Like):
            model = self.like(name, value, ingredient.place)
            if model is None:
                return IngredientNode(ingredient, MISSING)
            base = model.settings
            if value.of_other_rows:
                base = base | {"path": MISSING} if "path" in base else base
                value = replace(value, settings={"shuffle": False} if "shuffle" in base else {})
            own = self.own_settings(name, value, model, ingredient.place)
            if value.name in self.changed:
                self.changed.add(name)
            value = model.value
        value, layers, changed = self.typed_value(name, value, [*own, *self.layers_of(name)])
        if changed or name in self.names.swaps:
            self.changed.add(name)
        node = IngredientNode(ingredient, value)
        if isinstance(value, BuiltFrom):
            node.wiring = self.built_from(name, value)
        else:
            node.wiring = wire(name, value, self.names.defined)
        self.problems += [Problem(text, ingredient.place) for text in node.wiring.problems]
        self.fill(node, {} if changed else base, layers)
        return node

    def like(self, name: str, value: Like, place: Place | None) -> IngredientNode | None:
        """Resolves the ingredient that a follower names."""
        if value.name not in self.names.known or value.name in self.names.off:
            guess = suggest(value.name, self.names.known)
            text = f"{name} is like '{value.name}', which is no ingredient. {guess}"
            if value.name in self.names.off:
                text = f"{name} is like '{value.name}', which is switched off: {name}=null too."
            self.problems.append(Problem(text.strip(), place))
            return None
        model = self.node(value.name)
        if model.value is MISSING:
            text = f"{name} is like '{value.name}', which follows it in a circle or is not known."
            self.problems.append(Problem(text, place))
            return None
        return model

    def own_settings(
        self, name: str, value: Like, model: IngredientNode, place: Place | None
    ) -> list[Entries]:
        """What like(...) sets; of a model that a layer made another type, only what that has."""
        items = dict(value.settings)
        if value.name in self.changed:
            known = _setting_names(name, model.value)
            for key in [key for key in items if key not in known]:
                where = f" ({place})" if place else ""
                self.notes.append(
                    f"{name}.{key}={items.pop(key)}{where} is discarded: {name} is like "
                    f"{value.name}, which is of another type now and has no '{key}'."
                )
        values = {key: Value(item, place) for key, item in items.items()}
        return [Entries(values, place or Place(name))] if values else []

    def layers_of(self, name: str) -> list[Entries]:
        """What files and the command line say of the ingredient, the weakest first."""
        found: list[Entries] = []
        swapped = self.names.swaps.get(name)
        from_files = [layer.entries[name] for layer in self.names.layers if name in layer.entries]
        if swapped is not None and from_files and str(swapped[1]).startswith(typed_place()):
            set_there = (leaf for node in from_files for leaf in leaves(node, name))
            dropped = [f"{path} ({place})" for path, place in set_there]
            self.notes.append(f"{name}={swapped[0]} ({swapped[1]}) discards {', '.join(dropped)}.")
            from_files = []
        typed = [self.names.typed.entries[name]] if name in self.names.typed.entries else []
        for node in [*from_files, *typed]:
            if isinstance(node, Entries):
                found.append(node)
            elif not is_null(node):
                self.refuse_word(name, node)
        return found

    def refuse_word(self, name: str, node: Written) -> None:
        """Notes a plain value where settings of an ingredient belong."""
        if isinstance(node, Scalar) and node.text.startswith("@"):
            text = (
                f"{name}: the import path '{node.text}' is not read from a file. "
                f"{worded('Type it on the command line', 'Give it in the overrides')}, or write it "
                f"in the recipe: {name}={node.text}"
            )
        else:
            word = node.text if isinstance(node, Scalar) else "..."
            text = (
                f"{name} is an ingredient: wanted its settings, found {shown(node)}. "
                f"Another one is chosen with {name}.type={word}."
            )
        self.problems.append(Problem(text, node.place))

    def typed_value(
        self, name: str, value: Any, layers: list[Entries]
    ) -> tuple[Any, list[Entries], bool]:
        """The value after every layer's ``type``, the layers that count, and whether it changed."""
        kept: list[Entries] = []
        changed = False
        if isinstance(value, BuiltFrom) or "type" in _setting_names(name, value):
            return value, layers, False
        for layer in layers:
            if "type" not in layer.entries:
                kept.append(layer)
                continue
            entry = self.entry(name, value, layer.entries["type"])
            if entry is not None and not _same(entry, value):
                kinds = as_config(value), as_config(entry)
                kept = self.settings.retyped(kinds, kept, name, layer)
                value, changed = entry, True
            kept.append(without_type(layer))
        return value, kept, changed

    def entry(self, name: str, value: Any, node: Written) -> Any:
        """The registered object that ``type`` names, or None with the problem noted."""
        filed = find_name(_owner(value))
        registry = for_ingredient(name) or (filed[0] if filed else None)
        word = node.text if isinstance(node, Scalar) else str(getattr(node, "value", shown(node)))
        if word == type_word(_owner(value)):
            return value
        try:
            if word.startswith("@"):
                found = self.settings.names.find(word, node.place)
                if isinstance(found, type) and as_config(found) is not None:
                    return found
                raise UnknownCodeError(f"'{word}' is no component; wanted a class with a Config.")
            if registry is not None:
                return registry.get(word)
            text = f"nothing is registered that could be '{name}'; remove the type."
        except UserError as error:
            text = str(error)
            if self.settings.names.is_closed(node.place):
                self.settings.unknown.append((name, word))
        self.problems.append(Problem(f"{name}.type: {text}", node.place))
        return None

    def built_from(self, name: str, value: BuiltFrom) -> Wiring:
        """The wiring of an ingredient that another ingredient's Config builds."""
        source = self.node(value.name)
        wiring = Wiring()
        wiring.dependencies[value.name] = (value.name, Parameter(value.name))
        config = as_config(source.value)
        if config is None and callable(source.value):
            config = as_config(hints(source.value).get("return"))
        if config is None and source.value is not MISSING:
            wiring.problems.append(
                f"{name} is built from {value.name}, whose type is not known: annotate what "
                f"{value.name} returns with a component's Config, or define {name}."
            )
            return wiring
        if config is not None:
            renamed = source.value.names if isinstance(source.value, Given) else {}
            add_dependencies(wiring, dependencies_of(config), renamed, self.names.defined)
        return wiring

    def fill(self, node: IngredientNode, base: Mapping[str, Any], layers: list[Entries]) -> None:
        """Resolves the settings of one ingredient."""
        parameters = [
            Parameter(p.name, p.annotation, base.get(p.name, p.default), p.doc, p.in_key)
            for p in node.wiring.settings
        ]
        node.wiring.settings = parameters
        self.refuse_dependencies(node, layers)
        self.settings.code = node.ingredient.place
        found = self.settings.fields(parameters, layers, node.name)
        place = layers[-1].place if layers else node.ingredient.place
        for name, value in found.items():
            if value is MISSING:
                self.settings.required(f"{node.name}.{name}", parameters, name, place)
        node.settings = found
        config = as_config(node.value)
        # A script is executed again where its run is loaded, and makes what it made; else only
        # what the file says is there.
        again = self.names.table.source or config is None or isinstance(config, type)
        for parameter in parameters if again else settings_of(type(config)):
            value = found.get(parameter.name, MISSING)
            text = lost(value, parameter, f"{node.name}.{parameter.name}", self.settings.names)
            if text is not None:
                self.problems.append(Problem(text, node.ingredient.place))
        if config is None:
            return
        node.kind = config if isinstance(config, type) else type(config)
        node.type_name = type_word(node.kind.owner)
        if not any(value is MISSING or value is INVALID for value in found.values()):
            node.config = self.config(node, found, place)

    def config(self, node: IngredientNode, found: Mapping[str, Any], place: Place | None) -> Any:
        """The Config with all its settings, which may refuse them."""
        try:
            return node.kind(**found)
        except (ValueError, TypeError, UserError) as error:
            for each in error.errors if isinstance(error, SeveralError) else (error,):
                text = str(each)
                named = text.startswith(f"{node.name}.")
                self.problems.append(Problem(text if named else f"{node.name}: {text}", place))
            return None

    def refuse_dependencies(self, node: IngredientNode, layers: list[Entries]) -> None:
        """Notes settings under the name of a dependency: they belong to that ingredient."""
        for index, layer in enumerate(layers):
            given = [key for key in layer.entries if key in node.wiring.dependencies]
            for key in given:
                text = (
                    f"{node.name}.{key} is the ingredient '{key}', no setting of {node.name}; "
                    f"its settings are written {key}.name=value."
                )
                self.problems.append(Problem(text, layer.place_of(key)))
            if given:
                rest = {key: item for key, item in layer.entries.items() if key not in given}
                layers[index] = Entries(rest, layer.place, key_places=layer.key_places)


def _setting_names(name: str, value: Any) -> list[str]:
    return (
        [p.name for p in wire(name, value, lambda _: True).settings] if value is not MISSING else []
    )


def _owner(value: Any) -> Any:
    """The component that an ingredient's value stands for, else the value."""
    config = as_config(value)
    return getattr(config, "owner", None) if config is not None else value


def _same(entry: Any, value: Any) -> bool:
    first, second = as_config(entry), as_config(value)
    if first is None or second is None:
        return entry is value
    return getattr(first, "owner", first) is getattr(second, "owner", second)
