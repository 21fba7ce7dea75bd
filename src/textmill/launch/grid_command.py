"""``textmill grid`` from its words to its table."""

import hashlib
import json
import logging
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textmill.errors import InUseError, UserError
from textmill.launch.cells import Cell, Named, check_first, place_cell, plan_cells
from textmill.launch.grid import Cells, Grid, Show
from textmill.launch.grid_page import grid_html
from textmill.launch.grid_table import GridTable
from textmill.launch.grid_words import GridWords
from textmill.launch.launcher import launcher_of
from textmill.launch.ray import Ray
from textmill.launch.search import OptunaSearch
from textmill.launch.slurm import Slurm
from textmill.recipes.planning import run_named
from textmill.run_folder.folder import RunFolder, command_line
from textmill.runs.resume import LENGTH
from textmill.runs.study import JOURNAL
from textmill.runtime.files import write_atomic
from textmill.runtime.lock import Lock, owner_of

LOG = logging.getLogger("textmill")


@dataclass(frozen=True)
class GridDone:
    """A grid whose cells have ended."""

    folder: Path
    """Where its tables, its page and the logs of its cells are."""
    table: GridTable

    @property
    def failed(self) -> list[Cell]:
        """The cells that are neither finished nor pruned."""
        ended = ("finished", "pruned")
        return [one.cell for one in self.table.outcomes if one.cell.state not in ended]

    def lines(self) -> list[str]:
        """The table, the best run, and where the page is."""
        lines = [self.table.text(), *self.table.best_lines()]
        if self.failed:
            said = f"{len(self.failed)} of {len(self.table.outcomes)} cells are not finished"
            alike = " but those that failed" if (self.folder / JOURNAL).exists() else ""
            lines.append(f"{said}; the same command goes on with them{alike}")
        return [*lines, f"report: {self.folder / 'report.html'}"]


def run_grid(
    named: Named,
    words: Sequence[str],
    *,
    seeds: int | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    elsewhere: Slurm | Ray | None = None,
    show: Show = lambda line: None,
) -> GridDone:
    """Trains a recipe with each combination of values, or with those that a search proposes.

    Args:
        named: The recipe.
        words: Settings; those with commas between values vary.
        seeds: How many seeds each combination is trained with.
        trials: How many combinations are proposed by Optuna; None trains all there are.
        jobs: Cells at a time.
        fail_fast: Whether the first failure stops all.
        elsewhere: What starts the cells; None: this machine.
        show: Is told how far the grid is, again and again.

    Raises:
        UserError: Something is wrong with a cell; nothing was started.
        InUseError: Another process trains this grid.
        RunStoppedError: A signal came; the cells at work have saved.
    """
    searches = trials is not None
    asked = read_words(named, words, seeds, search=searches)
    wanted = asked.corners() if searches else list(asked.cells())
    cells = plan_cells(named, asked.fixed, wanted, say=show)
    launcher = launcher_of(elsewhere, jobs=jobs, device=named.device, commands=trials or len(cells))
    planned = named.plan(cells[0].words)
    if searches and "valid_data" not in planned.plan.order:
        raise UserError(
            "a search compares runs by trainer.selection.metric, which is measured on valid_data, "
            "and this recipe has none. Give it valid_data.path=..., or train_data.holdout=0.1."
        )
    kind = "search" if searches else "grid"
    folder = RunFolder.place(planned.name, f"{kind}-{identity(named, asked, searches)}").path
    if (owner := owner_of(folder)) is not None:
        raise InUseError(
            f"this grid is trained by {owner} already ({folder}). Wait for it to end or stop it."
        )
    if not (folder / JOURNAL).exists():
        show("checking the first cell")
        if notes := check_first(named, cells):
            LOG.info("note: %s", notes)
    folder.mkdir(parents=True, exist_ok=True)
    with Lock(folder, {"logs": True}):
        source = Cells(cells)
        if trials is not None:
            place = partial(place_cell, named, asked.fixed)
            source = OptunaSearch(asked.axes, folder, place, trials)
        grid = Grid(named, source, launcher, folder, fail_fast=fail_fast, show=show)
        try:
            grid.run()
        finally:
            table = GridTable(asked.axes, source.cells)
            write_table(folder, table, f"{planned.name}: {kind}")
    return GridDone(folder, table)


def read_words(named: Named, words: Sequence[str], seeds: int | None, *, search: bool) -> GridWords:
    """The words with the whole names of the settings, which are said where they were typed short.

    Raises:
        UserError: Nothing varies, a setting is named twice, or the recipe is a run.
    """
    if run_named(named.recipe) is not None:
        raise UserError(
            f"{named.recipe} is a run, which textmill train continues. A grid trains anew: name "
            f"its recipe, or {Path(named.recipe) / 'config.yaml'}."
        )
    asked = GridWords.read(words, seeds, search=search)
    if not asked.axes:
        raise UserError(
            "nothing varies. Give a setting several values with commas between, lr=1e-4,3e-4, or "
            "ask for --seeds."
        )
    meant = named.plan([*asked.fixed, *asked.corners()[0]], draft=True).plan.meant
    for name, whole in meant.items():
        LOG.info("%s sets %s", name, whole)
    return asked.in_full(meant)


def identity(named: Named, asked: GridWords, searches: bool) -> str:
    """What tells a grid from others: its recipe, what all cells have, and what varies.

    The values are not in it, nor are how many seeds and how long: they can be raised. Those of a
    search are: what was seen in one space, or of short runs, says nothing of another.
    """
    axes = [(a.name, a.values, a.range) if searches else a.name for a in asked.axes]
    lengths = () if searches else tuple(f"trainer.{name}=" for name in LENGTH)
    fixed = sorted(word for word in asked.fixed if not word.startswith(lengths))
    said = [named.recipe, named.configs, fixed, sorted(axes)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:8]


def write_table(folder: Path, table: GridTable, name: str) -> None:
    """Writes the table as TSV and as a page, and the cells where each has several seeds."""
    write_atomic(folder / "table.tsv", table.tsv())
    if table.seeded:
        write_atomic(folder / "cells.tsv", table.cells_tsv())
    page = grid_html(table, name, shlex.join(command_line()))
    write_atomic(folder / "report.html", page)
