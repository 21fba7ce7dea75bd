"""The words of a grid, and its cells: usual runs, all planned before the first of them starts."""

import hashlib
import itertools
import json
import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.ingredient import DATA
from textmill.config.planning.key import run_key
from textmill.config.planning.wiring import reached
from textmill.errors import PlanError, TextmillError, UserError
from textmill.launch.launcher import Job, program
from textmill.recipes.planning import Planned, plan_recipe
from textmill.runs.fingerprints import named_content, read_data
from textmill.runs.resume import choose_folder, is_finished, length_of, run_of_data
from textmill.runtime.lock import owner_of

SEEDS = "trainer.seed"
SPACE = re.compile(r"(log|uniform|int|choice)\((.*)\)")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def split_values(text: str) -> list[str]:
    """The values between commas, except commas in brackets or quotes.

    A quote counts only at the beginning of a value, or of an item in brackets.
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
    """Its values as typed; the ends of a range."""
    range: Literal["log", "uniform", "int"] | None = None
    """How a search draws between the ends; None if the values are all there are."""

    @property
    def short(self) -> str:
        """The head of its column: the last two parts of the name."""
        return ".".join(self.name.split(".")[-2:])

    def words(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values]

    @classmethod
    def of_space(cls, name: str, kind: str, text: str) -> "Axis":
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
    """The words of ``textmill grid``: those of all cells, and the axes."""

    fixed: tuple[str, ...]
    axes: tuple[Axis, ...]

    @classmethod
    def read(
        cls, words: Sequence[str], seeds: int | None = None, *, search: bool = False
    ) -> "GridWords":
        """Reads the words; several seeds are one more axis, which begins at 1."""
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
        """Replaces short names by whole ones; refuses a setting that is given twice."""
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
        return itertools.product(*(axis.words() for axis in self.axes))

    def corners(self) -> list[tuple[str, ...]]:
        """Cells that contain each value and each end of a range: a search is planned with them.

        Example:
            >>> GridWords.read(["lr=log(1e-5,1e-2)", "a=1,2,3"], search=True).corners()
            [('lr=1e-5', 'a=1'), ('lr=1e-2', 'a=2'), ('lr=1e-5', 'a=3')]
        """
        columns = [axis.words() for axis in self.axes]
        most = max(map(len, columns), default=0)
        return [tuple(column[i % len(column)] for column in columns) for i in range(most)]


Digests = dict[str, Mapping[str, str]]
"""Fingerprints of data, by the settings that decide what is read."""


@dataclass(frozen=True)
class Named:
    """A recipe as a command names it, with the options of how it is read."""

    recipe: str
    configs: tuple[str, ...] = ()
    device: str = "auto"
    allow_code: bool = False
    options: tuple[str, ...] = ()
    """All options as they are typed, for the commands that it starts."""

    def plan(self, words: Sequence[str], *, draft: bool = False) -> Planned:
        """The plan of a run with these settings; a draft may have problems."""
        options: dict[str, Any] = {"configs": self.configs, "allow_code": self.allow_code}
        return plan_recipe(self.recipe, words, targets=["trainer"], draft=draft, **options)

    def command(self, words: Sequence[str], *, command: str = "train") -> list[str]:
        return [command, self.recipe, *words, *self.options]


@dataclass
class Cell:
    """One run of a grid."""

    chosen: tuple[str, ...]
    """The words of its values, in the order of the axes."""
    words: tuple[str, ...]
    """All its settings, as words of a command line."""
    folder: Path
    """The run folder."""
    state: str = "open"
    """``open``, ``at work``, ``finished``, ``failed``, ``stopped``, ``pruned``."""
    reason: str = ""
    """Why it is not finished."""
    killed: bool = False
    """Whether a signal from outside ended it, so that it can go on."""
    log: Path | None = None
    """The output of its last start."""
    length: Mapping[str, Any] = field(default_factory=dict)
    """The limits of its length, as ``run.json`` has them."""
    job: Job | None = None
    """The job that trains it; None while another process does."""
    since: float = 0.0
    """When it was started."""
    asked: tuple[str, str] | None = None
    """Its next state, and why, once it was asked to save and end."""

    @property
    def label(self) -> str:
        return " ".join(self.chosen)

    @property
    def values(self) -> list[str]:
        return [word.partition("=")[2] for word in self.chosen]

    def typed(self, named: Named, *, command: str = "train") -> str:
        return shlex.join(["textmill", *named.command(self.words, command=command)])


def plan_cells(
    named: Named,
    fixed: Sequence[str],
    asked: Iterable[tuple[str, ...]],
    *,
    say: Callable[[str], None] = lambda line: None,
) -> list[Cell]:
    """Plans every cell and finds its run.

    If the run exists, its data is read to see whether it changed: once for all cells of that data.
    """
    cells, wanted = list[Cell](), list(asked)
    problems: dict[str, list[str]] = {}
    keys, digests = dict[str, str](), Digests()
    for number, chosen in enumerate(wanted, 1):
        label = " ".join(chosen)
        try:
            key, cell = plan_cell(named, fixed, chosen, digests)
            if (first := keys.setdefault(key, label)) is not label:
                raise UserError(
                    f"this is the same run as that of {first}: they differ only in settings that "
                    "change no result, such as length, saving and reporting. Give one value; write "
                    "a list in brackets: [a,b]."
                )
            cells.append(cell)
        except TextmillError as error:
            for problem in error.problems if isinstance(error, PlanError) else [error]:
                problems.setdefault(str(problem), []).append(label)
        say(f"planned {number} of {len(wanted)} cells")
    if problems:
        raise UserError("\n".join(_listed(problems, len(wanted))))
    return cells


def _listed(problems: Mapping[str, list[str]], count: int) -> list[str]:
    bad = {label for labels in problems.values() for label in labels}
    lines = [f"{len(bad)} of {count} cells cannot be trained; nothing was started."]
    for text, labels in problems.items():
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        which = "all" if len(labels) == count > 1 else ", ".join(labels[:3]) + more
        lines += [f"  {which}:", *(f"    {line}" for line in text.splitlines())]
    return lines


def plan_cell(
    named: Named, fixed: Sequence[str], chosen: tuple[str, ...], digests: Digests
) -> tuple[str, Cell]:
    """The key of a cell's run, and the cell."""
    words = (*fixed, *chosen)
    planned = named.plan(words)
    folder = choose_folder(planned, run_dir=None, again=False)

    def read() -> Mapping[str, str]:
        # What decides which rows are read, and the files that it names.
        plans = [planned.plan, *planned.plan.tasks.values()]
        data = [{n: p.settings.get(n) for n in reached(p.nodes, DATA)} for p in plans]
        settings = json.dumps([data, named_content(planned.plan)], sort_keys=True, default=str)
        if settings not in digests:
            session = planned.start(Path(), "train", named.device)
            digests[settings] = read_data(session, planned.plan, None)
        return digests[settings]

    folder = run_of_data(folder, planned, named=False, read=read)
    state = "finished" if is_finished(folder, planned) else "open"
    cell = Cell(chosen, words, folder.path, state, length=length_of(planned.plan))
    return run_key(planned.plan), cell


def place_cell(named: Named, fixed: Sequence[str], chosen: tuple[str, ...]) -> Cell:
    """Plans one cell; if that fails, the cell has failed and has no folder."""
    try:
        return plan_cell(named, fixed, chosen, Digests())[1]
    except TextmillError as error:
        nowhere = Path("-", hashlib.sha256(" ".join(chosen).encode()).hexdigest()[:12])
        return Cell(chosen, (*fixed, *chosen), nowhere, "failed", str(error))


def check_first(named: Named, cells: Sequence[Cell]) -> str:
    """Checks the first cell that has not begun, by ``textmill check``; returns its notes."""
    fresh = (c for c in cells if c.state == "open" and not has_checkpoints(c.folder))
    cell = next((cell for cell in fresh if owner_of(cell.folder) is None), None)
    if cell is None:
        return ""
    # In another process: this one must touch no accelerator, and a check may run out of memory.
    words = [*program(), *named.command(cell.words, command="check")]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(words, check=False, **options)  # noqa: S603  # this program, no shell
    if done.returncode:
        parts = re.split(r"^(?:\d+ problems?:\n  |error: )", done.stderr, flags=re.MULTILINE)
        why = parts[-1].rstrip() if len(parts) > 1 else f"it ended with {done.returncode}"
        alone = cell.typed(named, command="check")
        raise UserError(
            f"{cell.label} cannot be trained; nothing was started.\n  {why}\n  its check: {alone}"
        )
    _, _, notes = f"\n{done.stdout}".partition("\nnote: ")
    return notes.removesuffix("\nReady to train.\n")
