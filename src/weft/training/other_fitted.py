"""What was fitted otherwise in another run, and no name of an id shows it.

Numbers beside a text have a place each, and what brings them to mean 0 and deviation 1: where these
are far from what they were, a number is another one, or comes in another unit. Of an ingredient of
a recipe's own that names no ids, all that is saved of the columns it made is compared; of a text
path of a recipe's own that has no such columns nothing is known.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from weft.text.columns.number import Numbers
from weft.text.columns.path import ColumnsText
from weft.text.paths import TextPath
from weft.training.other_ingredients import built_without, ids_of

__all__ = ["other_fitted"]

FAR = 2.0
"""A deviation so many times the other's is no chance: of 50 rows it is known to some 10 %."""


def other_fitted(
    module: nn.Module,
    text: TextPath,
    other_text: Callable[[], TextPath | None],
    taken: Collection[str],
) -> list[str]:
    """What is said of each such ingredient that the weights of another run do not fit.

    Args:
        module: The module here.
        text: Its text path.
        other_text: Gives the text path of the checkpoint that weights are taken from; only asked
            where an ingredient is to be compared.
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


def _saved(text: TextPath, name: str) -> dict[str, bytes]:
    """All that is saved of the columns of an ingredient, by the files' names; none without."""
    columns: dict[str, Any] = text.all if isinstance(text, ColumnsText) else {}
    with tempfile.TemporaryDirectory(prefix="weft-columns-") as folder:
        for role, column in columns.items():
            if name in column.fitted:
                column.save(Path(folder) / role)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
