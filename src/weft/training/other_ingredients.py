"""Tensors whose rows stand for what was fitted: labels, slots, characters, affixes, kinds."""

import inspect
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from weft.config.component import Component
from weft.models.crf import LinearChainCrf
from weft.text.paths import TextPath

__all__ = [
    "OtherIngredient",
    "belonging",
    "built_without",
    "changed",
    "ids_of",
    "standing_for",
]

NAMED = ("known", "kinds", "names")
"""Where a fitted thing that is no sequence keeps the names of its ids, in their order."""
PLACES = ("prefixes", "suffixes")
"""What else decides which of its ids stands for what."""


@dataclass(frozen=True)
class OtherIngredient:
    """An ingredient that another run had otherwise, and what it decides here."""

    name: str
    said: str
    """How it differs, in words."""
    tensors: tuple[str, ...]
    """What is not to be taken."""


def belonging(module: nn.Module, text: TextPath, taken: Collection[str]) -> dict[str, list[str]]:
    """The tensors with rows of each fitted ingredient but the tokenizer, of those taken.

    Args:
        module: The module here.
        text: Its text path.
        taken: Names of tensors here.

    Returns:
        Names of tensors by that of the ingredient; none where it decides nothing of them.
    """
    names = {name for name, made in text.ingredients.items() if ids_of(made)} - {"tokenizer"}
    found = {name: standing_for(module, name, text.ingredients[name]) for name in sorted(names)}
    kept = {name: [key for key in keys if key in taken] for name, keys in found.items()}
    return {name: keys for name, keys in kept.items() if keys}


def changed(
    belong: dict[str, list[str]], here: TextPath, there: TextPath | None
) -> list[OtherIngredient]:
    """The ingredients whose ids stand for something else in another text path."""
    if there is None:
        return []
    found = []
    for name, keys in belong.items():
        said = _difference(here.ingredients[name], there.ingredients.get(name))
        if said is not None:
            found.append(OtherIngredient(name, said, tuple(keys)))
    return found


def standing_for(module: nn.Module, name: str, made: Any) -> list[str]:
    """The names of a module's tensors with a row for each id of an ingredient.

    They are below a submodule of the ingredient's name, or in the layers of what is built with it:
    an encoder, which is not, has no labels though it be as wide. A tensor too many begins anew; one
    too few would begin as something else.

    Example:
        >>> model = nn.ModuleDict({"scores": nn.Linear(4, 2), "crf": LinearChainCrf(["N", "V"])})
        >>> standing_for(model, "labels", ["N", "V"])
        ['scores.weight', 'scores.bias', 'crf.transitions']
        >>> standing_for(model, "labels", ["N", "V", "X"])
        []
    """
    state = {key: v for key, v in module.state_dict().items() if isinstance(v, Tensor) and v.dim()}
    size = _size(made)
    rows = [key for key, value in state.items() if len(value) == size]
    if named := [key for key in rows if name in key.split(".")[:-1]]:
        return named
    apart = built_without(module, name)
    found = {key for key in rows if not key.startswith(apart)}
    found |= {f"{key}.transitions".lstrip(".") for key in _fields(module, made)}
    if not isinstance(made, Sequence):
        tables = [key for key, m in module.named_modules() if isinstance(m, nn.Embedding)]
        found |= {key for key in rows if key.rpartition(".")[0] in tables}
    return [key for key in state if key in found]


def built_without(module: nn.Module, name: str) -> tuple[str, ...]:
    """How the names of tensors begin that are in components built without an ingredient.

    Example:
        >>> from types import SimpleNamespace
        >>> from weft.models.classifier import Classifier
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0))
        >>> model = Classifier.Config().build(tokenizer=tokenizer, labels=range(7))
        >>> built_without(model, "labels")
        ('text.embedding.', 'text.encoder.', 'text.pooling.')
    """
    return tuple(
        f"{inner}."
        for inner, m in module.named_modules()
        if inner and isinstance(m, Component) and not _takes(m, name)
    )


def _fields(module: nn.Module, made: Any) -> Iterator[str]:
    """The names of random fields of these labels: they have two rows more."""
    fields = ((n, m) for n, m in module.named_modules() if isinstance(m, LinearChainCrf))
    names = tuple(made) if isinstance(made, Sequence) else ()
    yield from (name for name, field in fields if field.names == names)


def _takes(module: Component, name: str) -> bool:
    """Whether a component may have been built with an ingredient."""
    given = inspect.signature(type(module).__init__).parameters.values()
    return any(one.name == name or one.kind is one.VAR_KEYWORD for one in given)


def ids_of(made: Any) -> list[Any]:
    """What the ids of an ingredient stand for, in order; empty where that is not known."""
    if isinstance(made, Sequence):
        return list(made)
    lists = [getattr(made, name) for name in NAMED if isinstance(getattr(made, name, 0), Sequence)]
    return list(lists[0]) if lists else []


def _size(made: Any) -> int:
    """Rows of its tensors: marks such as padding may come before what is known."""
    size = None if isinstance(made, Sequence) else getattr(made, "size", None)
    return size if isinstance(size, int) else len(ids_of(made))


def _difference(here: Any, there: Any) -> str | None:
    if there is None:
        return "none there"
    one, two = ids_of(here), ids_of(there)
    if one != two:
        for number, (a, b) in enumerate(zip(one, two, strict=False)):
            if a != b and isinstance(a, str):
                return f"number {number} is {a!r} here and {b!r} there"
        return f"{len(one):,} here, {len(two):,} there" if len(one) != len(two) else "others there"
    places = [name for name in PLACES if getattr(here, name, ()) != getattr(there, name, ())]
    return f"other {' and '.join(places)}" if places else None
