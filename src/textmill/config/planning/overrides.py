"""The names of a recipe and the words of a command line: settings, bare names, swaps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from textmill.config.code_names import UnknownCodeError, import_named
from textmill.config.foreign_names import setting_here
from textmill.config.ingredient import (
    EVALUATION_DATA,
    BuiltFrom,
    Ingredient,
    IngredientTable,
    Like,
    is_ingredient,
)
from textmill.config.registry import suggest
from textmill.config.values.raw_values import Entries, Node, Scalar, is_null, merged
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import Word, parse_word, typed_place
from textmill.errors import Place, Problem, UserError

Overrides: TypeAlias = Sequence[str] | Mapping[str, Any]
"""Settings that go over a recipe's: words of a command line, or values by their dotted names."""


def words_of(overrides: Overrides) -> list[str]:
    """Settings as words of a command line, the values in JSON, which YAML reads."""
    if isinstance(overrides, str):
        return [overrides]
    if not isinstance(overrides, Mapping):
        return list(overrides)
    words = []
    for name, value in overrides.items():
        if isinstance(value, Mapping) and value and "." not in name:  # an ingredient's settings
            words += words_of({f"{name}.{key}": inner for key, inner in value.items()})
        else:
            words.append(f"{name}={json.dumps(plain(value), ensure_ascii=False)}")
    return words


class Names:
    """Which ingredients exist, after what the command line swaps and switches off."""

    def __init__(
        self,
        table: IngredientTable,
        defaults: IngredientTable,
        layers: Sequence[Entries],
        always: tuple[str, ...],
    ) -> None:
        self.table, self.layers, self.always = table, layers, always
        self.known = {**defaults.ingredients, **table.ingredients}
        self.typed = Entries({}, Place(typed_place()))
        self.swaps: dict[str, tuple[str, Place]] = {}
        self.off: set[str] = set()
        self.meant: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        for name, path in table.swaps.items():
            self.swap(name, path, Place(table.name))

    def defined(self, name: str) -> bool:
        """Whether somebody defines the ingredient or the run provides it."""
        if name in self.off:
            return False
        if name in self.always:
            return True
        found = self.known.get(name)
        if found is not None and isinstance(found.value, BuiltFrom):
            return self.defined(found.value.name)
        return found is not None

    def all(self) -> list[str]:
        """All names an ingredient can have here."""
        return [*self.known, *(name for name in self.always if name not in self.known)]

    def read_words(self, words: Sequence[str]) -> list[Word]:
        """Files the words under their ingredients; returns the bare ones."""
        bare: list[Word] = []
        for text in words:
            try:
                word = parse_word(text)
            except UserError as error:
                self.problems.append(Problem(str(error)))
                continue
            name, node = word.path[0], word.node
            if len(word.path) == 1 and isinstance(node, Scalar) and node.text.startswith("@"):
                self.swap(name, node.text, word.place)
            elif self.named(name):
                self.type_word(word.tree())
            else:
                bare.append(word)
        self.offer_data()
        self.switch_off()
        return bare

    def offer_data(self) -> None:
        """``test_data.path=…`` of a recipe that has none: rows that are read as those it has."""
        for name in EVALUATION_DATA:
            spoken = [n.entries[name] for n in (*self.layers, self.typed) if name in n.entries]
            if name in self.known or not spoken or is_null(spoken[-1]):
                continue
            models = [n for n in ("valid_data", "train_data") if n in self.known and n != name]
            if models:
                value = Like(models[0], {}, of_other_rows=True)
                self.known[name] = Ingredient(name, value, spoken[-1].place)

    def named(self, name: str) -> bool:
        """Whether the name is one an ingredient has, or would have if it were defined."""
        offered = name in EVALUATION_DATA and "train_data" in self.known
        return name in self.known or name in self.always or name in self.swaps or offered

    def type_word(self, tree: Entries) -> None:
        joined = merged(self.typed, tree)
        assert isinstance(joined, Entries)
        self.typed = joined

    def switch_off(self) -> None:
        """``valid_data=null``: the ingredient is as if nobody had defined it."""
        for layer in (*self.layers, self.typed):
            for name, node in layer.entries.items():
                if name in self.known:
                    empty = isinstance(node, Scalar) and node.text == ""  # a head without settings
                    (self.off.add if is_null(node) and not empty else self.off.discard)(name)

    def swap(self, name: str, path: str, place: Place) -> None:
        """``module=@my_package.models.deep``: the ingredient is what the import path names."""
        try:
            value = import_named(path)
        except UnknownCodeError as error:
            self.problems.append(Problem(f"{name}: {error}", place))
            return
        if not is_ingredient(value):
            wanted = "wanted a function, a class, a component or a Config"
            self.problems.append(
                Problem(f"{name}: '{path}' is a {type(value).__name__}; {wanted}.", place)
            )
            return
        self.swaps[name] = (path, place)
        self.known[name] = Ingredient(name, value, place)

    def place_bare_words(
        self, bare: Sequence[Word], dotted: Sequence[str], further: Sequence[str] = ()
    ) -> Iterator[tuple[str, Node]]:
        """Finds the setting that each bare word means; its ingredient, and the word as settings."""
        for word in bare:
            ends = outermost(dotted, word) or outermost(further, word)
            if len(ends) == 1:
                self.notes.append(f"{word.place.source.partition(': ')[2]} sets {ends[0]}")
                self.meant[word.dotted] = ends[0]
                tree = word.tree(tuple(ends[0].split(".")))
                self.type_word(tree)
                yield from tree.entries.items()
            elif ends:
                listed = ", ".join(ends)
                text = (
                    f"'{word.dotted}' can mean more than one setting: {listed}. Write one of them."
                )
                self.problems.append(Problem(text, word.place))
            else:
                self.unknown_word(word, list(dict.fromkeys([*dotted, *further])))

    def unknown_word(self, word: Word, dotted: Sequence[str]) -> None:
        lasts = {name.rpartition(".")[2]: name for name in dotted}
        value = word.node.text if isinstance(word.node, Scalar) else ""
        here = setting_here(word.path[0], value) or setting_here(word.path[-1], value)
        if len(word.path) == 1:
            guess = here or suggest(word.dotted, [*lasts, *self.all()])
            text = f"no setting is named '{word.dotted}'. {guess}"
        else:
            guess = here or self.nearest(word.path[0], [word.path[1]], dotted)
            text = self.no_ingredient(word.path[0], guess or suggest(word.dotted, dotted))
        self.problems.append(Problem(text.strip(), word.place))

    def no_ingredient(self, name: str, guess: str) -> str:
        listed = "" if guess else f"Known: {', '.join(sorted(self.all()))}."
        return f"'{name}' is no ingredient of this recipe. {guess}{listed}"

    def nearest(self, name: str, settings: Iterable[str], dotted: Iterable[str]) -> str:
        """The ingredient of the nearest name; of several, one that has such a setting, or any."""
        known = {".".join(found.split(".")[:2]) for found in dotted}
        with_settings = dict.fromkeys(found.partition(".")[0] for found in dotted)
        suits = suggest(
            name, with_settings, lambda one: any(f"{one}.{key}" in known for key in settings)
        )
        return suits or suggest(name, self.all())


def outermost(names: Iterable[str], word: Word) -> list[str]:
    """The names that end in the word, without those of parts whose whole has such a one, too."""
    ends = [name for name in names if name.endswith(f".{word.dotted}")]
    owners = {name: f"{name.rpartition('.')[0]}." for name in ends}
    return [
        name
        for name in ends
        if not any(name.startswith(owners[other]) for other in ends if other != name)
    ]
