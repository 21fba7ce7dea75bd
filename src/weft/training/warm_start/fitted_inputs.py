"""What stands for fitted text in a model: labels, slots, characters, affixes, numbers.

Numbers beside a text have a place each, and what brings them to mean 0 and deviation 1: where these
are far from what they were, a number is another one, or comes in another unit. Of an ingredient of
a recipe's own that names no ids, all that is saved of the columns it made is compared; of a text
processor of a recipe's own that has no such columns nothing is known.
"""

import inspect
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from weft.config.component import Component
from weft.models.crf import LinearChainCrf
from weft.text.columns.numbers import Numbers
from weft.text.processors.column_processor import ColumnsText
from weft.text.processors.text_processor import TextProcessor

__all__ = [
    "FittedInput",
    "belonging",
    "built_without",
    "changed",
    "ids_of",
    "other_fitted",
    "standing_for",
]

NAMED = ("known", "kinds", "names")
"""Where a fitted thing that is no sequence keeps the names of its ids, in their order."""
PLACES = ("prefixes", "suffixes")
"""What else decides which of its ids stands for what."""


@dataclass(frozen=True)
class FittedInput:
    """An ingredient that another run had otherwise, and what it decides here."""

    name: str
    said: str
    """How it differs, in words."""
    tensors: tuple[str, ...]
    """What is not to be taken."""


def belonging(
    module: nn.Module, text: TextProcessor, taken: Collection[str]
) -> dict[str, list[str]]:
    """The tensors with rows of each fitted ingredient but the tokenizer, of those taken.

    Args:
        module: The module here.
        text: Its text processor.
        taken: Names of tensors here.

    Returns:
        Names of tensors by that of the ingredient; none where it decides nothing of them.
    """
    names = {name for name, made in text.ingredients.items() if ids_of(made)} - {"tokenizer"}
    found = {name: standing_for(module, name, text.ingredients[name]) for name in sorted(names)}
    kept = {name: [key for key in keys if key in taken] for name, keys in found.items()}
    return {name: keys for name, keys in kept.items() if keys}


def changed(
    belong: dict[str, list[str]], here: TextProcessor, there: TextProcessor | None
) -> list[FittedInput]:
    """The ingredients whose ids stand for something else in another text processor."""
    if there is None:
        return []
    found = []
    for name, keys in belong.items():
        said = _difference(here.ingredients[name], there.ingredients.get(name))
        if said is not None:
            found.append(FittedInput(name, said, tuple(keys)))
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


FAR = 2.0
"""A deviation so many times the other's is no chance: of 50 rows it is known to some 10 %."""


def other_fitted(
    module: nn.Module,
    text: TextProcessor,
    other_text: Callable[[], TextProcessor | None],
    taken: Collection[str],
) -> list[str]:
    """What is said of each such ingredient that the weights of another run do not fit.

    Args:
        module: The module here.
        text: Its text processor.
        other_text: Gives the text processor of the checkpoint that weights are taken from; only
            asked where an ingredient is to be compared.
        taken: Names here of the tensors that are.
    """
    decide = {
        name: made
        for name, made in text.ingredients.items()
        if name != "tokenizer" and not ids_of(made) and _reads(module, name, taken)
    }
    there = other_text() if decide else None
    if there is None:
        return []
    said = list[str]()
    for name, made in decide.items():
        other = there.ingredients.get(name)
        if isinstance(made, Numbers) and isinstance(other, Numbers):
            said += _of_numbers(name, made, other)
        elif other is not None and _saved(text, name) != _saved(there, name):
            said.append(f"{name} is here not what it is there")
    return said


def _reads(module: nn.Module, name: str, taken: Collection[str]) -> bool:
    """Whether a matrix is taken that may multiply what an ingredient made."""
    apart, state = built_without(module, name), module.state_dict()
    return any(state[key].dim() > 1 and not key.startswith(apart) for key in taken)


def _of_numbers(name: str, here: Numbers, there: Numbers) -> Iterator[str]:
    """How numbers differ, of which there are as many; else no tensor that reads them is taken."""
    if here.dim != there.dim:
        return
    if here.column != there.column:
        yield f"{name}.column is {here.column} here and {there.column} there"
    ratio = here.deviation / there.deviation
    moved = np.abs(here.mean - there.mean) > np.maximum(here.deviation, there.deviation)
    far = np.flatnonzero(moved | (ratio > FAR) | (ratio < 1 / FAR))
    for number in far[:1].tolist():
        one, two = (
            f"mean {of.mean[number]:.4g} and deviation {of.deviation[number]:.4g}"
            for of in (here, there)
        )
        yield f"{name} has as number {number} one of {one} here and {two} there"


def _saved(text: TextProcessor, name: str) -> dict[str, bytes]:
    """All that is saved of the columns of an ingredient, by the files' names; none without."""
    columns: dict[str, Any] = text.all if isinstance(text, ColumnsText) else {}
    with tempfile.TemporaryDirectory(prefix="weft-columns-") as folder:
        for role, column in columns.items():
            if name in column.fitted:
                column.save(Path(folder) / role)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
