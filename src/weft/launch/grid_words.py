"""The words of a grid: which settings vary, the values of each, and their product."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.errors import UserError

__all__ = ["Axis", "GridWords", "split_values"]

SEEDS = "trainer.seed"
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def split_values(text: str) -> list[str]:
    """The values between commas; one in brackets or quotes is not divided.

    A quote is one where a value, or an item in brackets, begins with it.

    Example:
        >>> split_values("1e-4,3e-4")
        ['1e-4', '3e-4']
        >>> split_values('[2,4],[8],"a,b.tsv"')
        ['[2,4]', '[8]', '"a,b.tsv"']
        >>> split_values("log(1e-5,1e-2)")
        ['log(1e-5,1e-2)']
    """
    values, open_, quote, fresh = [""], list[str](), "", True
    for sign in text:
        if sign == "," and not (open_ or quote):
            values.append("")
            fresh = True
            continue
        values[-1] += sign
        if quote:
            quote = "" if sign == quote else quote
        elif fresh and sign in "'\"":
            quote = sign
        elif sign in _BRACKETS:
            open_.append(_BRACKETS[sign])
        elif open_ and sign == open_[-1]:
            open_.pop()
        fresh = sign in "[{(,: "
    return values


@dataclass(frozen=True)
class Axis:
    """A setting that varies, and its values as typed."""

    name: str
    values: tuple[str, ...]

    @property
    def short(self) -> str:
        """Its last name, or the last two of a setting of a part: what heads a column."""
        return ".".join(self.name.split(".")[-2:])

    def words(self) -> list[str]:
        """Each value as a word of a command line."""
        return [f"{self.name}={value}" for value in self.values]


@dataclass(frozen=True)
class GridWords:
    """The words of ``weft grid``: those that all cells have, and the axes of what varies."""

    fixed: tuple[str, ...]
    axes: tuple[Axis, ...]

    @classmethod
    def read(cls, words: Sequence[str], seeds: int | None = None) -> "GridWords":
        """Reads the words; several seeds are one more axis, from 1.

        Raises:
            UserError: A value is empty, a setting stands twice, or nothing varies.

        Example:
            >>> read = GridWords.read(["lr=1e-4,3e-4", "trainer.max_steps=9"], seeds=2)
            >>> read.fixed, [axis.name for axis in read.axes], len(list(read.cells()))
            (('trainer.max_steps=9',), ['lr', 'trainer.seed'], 4)
        """
        fixed, axes, problems = [], [], []
        for word in words:
            name, equals, text = word.partition("=")
            values = split_values(text) if equals else [text]
            if len(values) < 2:
                fixed.append(word)
                continue
            if not all(values):
                problems.append(f"'{word}' has an empty value. Leave a comma out, or write ''.")
            axes.append(Axis(name.removeprefix("--"), tuple(values)))
        if seeds is not None:
            if seeds < 1:
                problems.append(f"--seeds is {seeds}; wanted how many, at least 1.")
            axes.append(Axis(SEEDS, tuple(str(n) for n in range(1, seeds + 1))))
        problems += _named_twice([*(word.partition("=")[0] for word in fixed), *_names(axes)])
        if problems:
            raise UserError("\n".join(problems))
        return cls(tuple(fixed), tuple(axes))

    def cells(self) -> Iterator[tuple[str, ...]]:
        """For each cell the words of its values, the last axis changing first."""
        return itertools.product(*(axis.words() for axis in self.axes))


def _names(axes: Sequence[Axis]) -> list[str]:
    return [axis.name for axis in axes]


def _named_twice(names: Sequence[str]) -> list[str]:
    known = {re.sub(r"^seed$", SEEDS, name.removeprefix("--")) for name in names}
    if len(known) == len(names):
        return []
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1] or [SEEDS]
    return [f"{name} is given twice. Give all its values in one word." for name in twice]
