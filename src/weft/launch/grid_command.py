"""``weft grid`` from its words to its table."""

import hashlib
import json
import logging
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weft.errors import InUseError, UserError
from weft.launch.cells import Cell, Named, check_cells, plan_cells
from weft.launch.grid import Grid, Show
from weft.launch.grid_page import grid_html
from weft.launch.grid_table import GridTable
from weft.launch.grid_words import GridWords
from weft.launch.launcher import launcher_of
from weft.launch.ray import Ray
from weft.launch.slurm import Slurm
from weft.run_folder.folder import RunFolder, command_line
from weft.runtime.devices import usable_cores
from weft.runtime.files import write_atomic
from weft.runtime.lock import Lock, owner_of

__all__ = ["GridDone", "run_grid"]

LOG = logging.getLogger("weft")


@dataclass(frozen=True)
class GridDone:
    """A grid whose cells have ended."""

    folder: Path
    """Where its tables, its page and the logs of its cells are."""
    table: GridTable

    @property
    def failed(self) -> list[Cell]:
        """The cells that are not finished."""
        return [one.cell for one in self.table.outcomes if one.cell.state != "finished"]

    def lines(self) -> list[str]:
        """The table, the best run, and where the page is."""
        lines = [self.table.text(), *self.table.best_lines()]
        if self.failed:
            count = len(self.table.outcomes)
            lines.append(
                f"{len(self.failed)} of {count} cells are not finished; the same command goes on "
                "with them"
            )
        return [*lines, f"report: {self.folder / 'report.html'}"]


def run_grid(
    named: Named,
    words: Sequence[str],
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    elsewhere: Slurm | Ray | None = None,
    show: Show = lambda line: None,
) -> GridDone:
    """Trains a recipe with each combination of values.

    Args:
        named: The recipe.
        words: Settings; those with commas between values vary.
        seeds: How many seeds each combination is trained with.
        jobs: Cells at a time.
        fail_fast: Whether the first failure stops all.
        elsewhere: What starts the cells; None: this machine.
        show: Is told how far the grid is, again and again.

    Raises:
        UserError: Something is wrong with a cell; all of it is listed, and nothing was started.
        RunStoppedError: A signal came; the cells at work have saved.
    """
    asked = GridWords.read(words, seeds)
    if not asked.axes:
        raise UserError(
            "nothing varies. Give a setting several values with commas between, lr=1e-4,3e-4, or "
            "ask for --seeds."
        )
    launcher = launcher_of(elsewhere, jobs=jobs, device=named.device)
    name, cells = plan_cells(named, asked.fixed, list(asked.cells()))
    folder = RunFolder.place(name, f"grid-{identity(named, asked)}").path
    refuse_in_use(folder)
    for note in check_cells(named, cells, jobs=min(launcher.jobs, usable_cores()), say=show):
        LOG.info("note: %s", note)
    with entered_grid(folder):
        grid = Grid(named, cells, launcher, folder, fail_fast=fail_fast, show=show)
        try:
            told = f"{len(cells)} cells, {len(grid.finished)} of them finished before"
            threads = f"{launcher.threads} thread{'s' * (launcher.threads > 1)} each"
            LOG.info("%s; %s at a time, %s", told, launcher.jobs, threads)
            grid.run()
        finally:
            table = GridTable(asked.axes, cells)
            write_table(folder, table, name)
    return GridDone(folder, table)


def identity(named: Named, asked: GridWords) -> str:
    """What tells a grid from others: its recipe, what all cells have, and what varies.

    The values are not in it, nor are how many seeds: they can be added.
    """
    said = [named.recipe, named.configs, sorted(asked.fixed), sorted(a.name for a in asked.axes)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:8]


def refuse_in_use(folder: Path) -> None:
    """Refuses a grid that another process trains.

    Raises:
        InUseError: It does.
    """
    if (owner := owner_of(folder)) is not None:
        raise InUseError(
            f"this grid is trained by {owner} already ({folder}). Wait for it to end or stop it."
        )


@contextmanager
def entered_grid(folder: Path) -> Iterator[None]:
    """Makes the grid's folder, which no other process may be in.

    Raises:
        InUseError: Another one is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the grid's folder {folder} cannot be made: {error.strerror}.") from error
    refuse_in_use(folder)
    with Lock(folder, {"logs": True}):
        yield


def write_table(folder: Path, table: GridTable, name: str) -> None:
    """Writes the table as TSV and as a page, and the cells where each has several seeds."""
    write_atomic(folder / "table.tsv", table.tsv())
    if table.seeded:
        write_atomic(folder / "cells.tsv", table.cells_tsv())
    page = grid_html(table, f"{name}: grid", shlex.join(command_line()))
    write_atomic(folder / "report.html", page)
