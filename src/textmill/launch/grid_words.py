"""The words of a grid: which settings vary, the values of each, and their product."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from textmill.errors import UserError

SEEDS = "trainer.seed"
SPACE = re.compile(r"(log|uniform|int|choice)\((.*)\)")
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
    """A setting that varies."""

    name: str
    values: tuple[str, ...]
    """Its values as typed; of a range its ends."""
    range: Literal["log", "uniform", "int"] | None = None
    """How a search draws between the ends; None where the values are all there are."""

    @property
    def short(self) -> str:
        """Its last name, or the last two of a setting of a part: what heads a column."""
        return ".".join(self.name.split(".")[-2:])

    def words(self) -> list[str]:
        """Each value as a word of a command line."""
        return [f"{self.name}={value}" for value in self.values]

    @classmethod
    def of_space(cls, name: str, kind: str, text: str) -> "Axis":
        """The setting of ``name=kind(text)``, as ``lr=log(1e-5,1e-2)``.

        Raises:
            UserError: These are no two numbers in their order, or no numbers of that kind.

        Example:
            >>> Axis.of_space("lr", "log", "1e-5, 1e-2")
            Axis(name='lr', values=('1e-5', '1e-2'), range='log')
            >>> Axis.of_space("lr", "log", "0,1")
            Traceback (most recent call last):
            textmill.errors.UserError: 'lr=log(0,1)': wanted two numbers, the smaller one first \
and above 0.
        """
        values = tuple(value.strip() for value in split_values(text))
        if kind == "choice" and all(values):
            return cls(name, values)
        wanted = {"int": "two whole numbers", "log": "two numbers"}.get(kind, "two numbers")
        wanted += ", the smaller one first" + " and above 0" * (kind == "log")
        try:
            low, high = (int(value) if kind == "int" else float(value) for value in values)
            good = low < high and (kind != "log" or low > 0) and math.isfinite(high - low)
        except ValueError:
            good = False
        if not good or kind not in ("log", "uniform", "int"):
            wanted = "values with commas between" if kind == "choice" else wanted
            raise UserError(f"'{name}={kind}({text})': wanted {wanted}.")
        return cls(name, values, "int" if kind == "int" else "log" if kind == "log" else "uniform")


@dataclass(frozen=True)
class GridWords:
    """The words of ``textmill grid``: those that all cells have, and the axes of what varies."""

    fixed: tuple[str, ...]
    axes: tuple[Axis, ...]

    @classmethod
    def read(
        cls, words: Sequence[str], seeds: int | None = None, *, search: bool = False
    ) -> "GridWords":
        """Reads the words; several seeds are one more axis, from 1.

        Raises:
            UserError: A space is none, or there is one and nothing is searched.

        Example:
            >>> read = GridWords.read(["lr=1e-4,3e-4", "trainer.max_steps=9"], seeds=2)
            >>> read.fixed, [axis.name for axis in read.axes], len(list(read.cells()))
            (('trainer.max_steps=9',), ['lr', 'trainer.seed'], 4)
        """
        fixed, axes = [], []
        for word in words:
            name, equals, text = word.removeprefix("--").partition("=")
            values = split_values(text) if equals else [text]
            if (space := SPACE.fullmatch(text)) is not None:
                if not search:
                    raise UserError(
                        f"'{word}' is a space to search in. Add --search optuna --trials N."
                    )
                axes.append(Axis.of_space(name, space[1], space[2]))
            elif len(values) > 1:
                axes.append(Axis(SEEDS if name == "seed" else name, tuple(values)))
            else:
                fixed.append(word)
        if seeds is not None:
            if seeds < 1:
                raise UserError(f"--seeds is {seeds}; wanted how many, at least 1.")
            axes.append(Axis(SEEDS, tuple(str(n) for n in range(1, seeds + 1))))
        axes.sort(key=lambda axis: axis.name == SEEDS)  # the table takes the last one together
        return cls(tuple(fixed), tuple(axes))

    def in_full(self, meant: Mapping[str, str]) -> "GridWords":
        """The same words, with the whole name of each setting that was named by its end.

        Raises:
            UserError: A setting is given twice, maybe by two names.

        Example:
            >>> GridWords.read(["lr=1,2", "dim=4"]).in_full({"lr": "optimizer.lr"})
            GridWords(fixed=('dim=4',), axes=(Axis(name='optimizer.lr', values=('1', '2'), \
range=None),))
        """
        known = {"seed": SEEDS, **meant}
        split = [word.removeprefix("--").partition("=") for word in self.fixed]
        fixed = tuple(f"{known.get(name, name)}{equals}{text}" for name, equals, text in split)
        axes = tuple(replace(axis, name=known.get(axis.name, axis.name)) for axis in self.axes)
        names = [*(word.partition("=")[0] for word in fixed), *(axis.name for axis in axes)]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            also = " (--seeds sets it, too)" if twice[0] == SEEDS else ""
            raise UserError(f"{twice[0]} is given twice{also}. Give all its values in one word.")
        return GridWords(fixed, axes)

    def cells(self) -> Iterator[tuple[str, ...]]:
        """For each cell the words of its values, the last axis changing first."""
        return itertools.product(*(axis.words() for axis in self.axes))

    def corners(self) -> list[tuple[str, ...]]:
        """Cells in which each value, and each end of a range, is met once: a search is tried there.

        Example:
            >>> GridWords.read(["lr=log(1e-5,1e-2)", "a=1,2,3"], search=True).corners()
            [('lr=1e-5', 'a=1'), ('lr=1e-2', 'a=2'), ('lr=1e-5', 'a=3')]
        """
        columns = [axis.words() for axis in self.axes]
        most = max(map(len, columns), default=0)
        return [tuple(column[i % len(column)] for column in columns) for i in range(most)]
