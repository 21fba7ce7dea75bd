"""Kills of a grid's driver, or of its cells, at random moments.

``python -m tests.launch.grid_kills`` prints a table of them. Each try is a grid of four cells in a
folder of its own. Its driver or a cell is killed once or twice, the same command is given until it
exits with 0, and all is compared byte for byte with a grid that nothing happened to. ``--cold``
starts the programs as a person does, seconds each.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.launch.grids import SHORT, grid_folder, runs_of
from tests.runs.tiny import outcome, unlike, write_recipe
from tests.warm_textmill import warm_programs
from textmill.runtime.lock import owner_of

COMMAND = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2", "--seeds", "2", "--jobs", "2", *SHORT]
COMMAND += ["trainer.save_every=1"]
MOST_STARTS = 8


@dataclass
class Try:
    """One grid that was killed, and what came of it."""

    number: int
    kills: list[str] = field(default_factory=list)
    starts: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """For the table."""
        said = "as described" if not self.wrong else f"WRONG: {', '.join(self.wrong)}"
        return f"{self.number:>3}  {'; '.join(self.kills):<58}  {self.starts} starts  {said}"


class Campaign:
    """Tries in folders below one, against a grid that nothing happened to."""

    def __init__(self, root: Path, *, cold: bool, seed: int) -> None:
        self.root, self.chance = root, random.Random(seed)
        self.program = (
            [sys.executable, "-m", "textmill"] if cold else [str(warm_programs() / "textmill")]
        )
        path = os.environ["PATH"] if cold else f"{warm_programs()}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}
        folder = write_recipe(root / "undisturbed")
        start = time.monotonic()
        assert self.start(folder).wait() == 0, (folder / "log").read_text()
        self.seconds = time.monotonic() - start
        self.wanted = results(folder)

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Gives the command."""
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*self.program, *COMMAND],
                cwd=folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def attempt(self, number: int) -> Try:
        """Kills at random until the kills are spent, then lets it end."""
        folder, tried = write_recipe(self.root / str(number)), Try(number)
        planned = self.chance.choice((1, 1, 2))
        while tried.starts < MOST_STARTS:
            tried.starts += 1
            driver = self.start(folder)
            if len(tried.kills) < planned:
                self.kill(folder, driver, tried)
            if driver.wait() == 0 and len(tried.kills) >= planned:
                break
        try:
            tried.wrong = self.judged(folder, tried)
        except (OSError, ValueError) as error:
            tried.wrong = [f"{type(error).__name__}: {error}"]
        return tried

    def kill(self, folder: Path, driver: subprocess.Popen[bytes], tried: Try) -> None:
        """Kills the driver, or a cell that is at work, at a random moment of its time."""
        began, wait = time.monotonic(), self.chance.uniform(0, 0.9 * self.seconds)
        of_cell = self.chance.random() < 0.5
        while driver.poll() is None and time.monotonic() - began < wait:
            time.sleep(0.005)
        cells = processes_at_work(folder) if of_cell else []
        while of_cell and not cells and driver.poll() is None:  # none has begun: the first one
            time.sleep(0.005)
            cells = processes_at_work(folder)
        if driver.poll() is not None:  # too late: the next start is killed
            return
        victim = self.chance.choice(cells) if cells else driver.pid
        try:
            (os.kill if cells else os.killpg)(victim, signal.SIGKILL)
        except ProcessLookupError:
            return
        who = "a cell" if cells else "the driver"
        tried.kills.append(f"{who} after {time.monotonic() - began:.2f} s")

    def judged(self, folder: Path, tried: Try) -> list[str]:
        """What is not as it is in the grid that nothing happened to."""
        found = results(folder)
        if found.keys() != self.wanted.keys():
            return [f"has {sorted(found)}"]
        wrong = [f"table {n}" for n in TABLES if found[n] != self.wanted[n]]
        for name in found.keys() - set(TABLES):
            wrong += [f"{name} {what}" for what in unlike(self.wanted[name], found[name])]
        before = {run: (run / "run.json").stat().st_mtime_ns for run in runs_of(folder)}
        if self.start(folder).wait() != 0:
            wrong.append("the finished grid does not exit with 0")
        if {run: (run / "run.json").stat().st_mtime_ns for run in runs_of(folder)} != before:
            wrong.append("a finished cell was started again")
        starts = [len(json.loads((run / "run.json").read_text())["starts"]) for run in before]
        if sum(starts) > len(starts) + 2 * len(tried.kills):  # a killed driver had two at work
            wrong.append(f"cells were started {starts} times")
        return wrong


TABLES = ("table.tsv", "cells.tsv")


def results(folder: Path) -> dict:
    """The tables of a grid, and all that must be the same of each of its runs."""
    tables = {name: (grid_folder(folder) / name).read_bytes() for name in TABLES}
    return tables | {run.name: outcome(run) for run in runs_of(folder)}


def processes_at_work(folder: Path) -> list[int]:
    """The processes that train a cell."""
    locks = (folder / "runs" / "tiny").glob("[!g]*/lock")
    owners = (owner_of(lock.parent) for lock in locks)
    found = (owner.rpartition(":")[2] for owner in owners if owner)
    return sorted(int(process) for process in found if process.isdigit())


def main(words: list[str] | None = None) -> int:
    """Prints a line for each try; 1 where one is not as described."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument(
        "--cold", action="store_true", help="programs start as a person starts them"
    )
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="textmill-kills-") as root:
        campaign = Campaign(Path(root), cold=asked.cold, seed=asked.seed)
        print(f"undisturbed: four cells in {campaign.seconds:.1f} s", flush=True)
        tries = []
        for number in range(1, asked.tries + 1):
            tries.append(campaign.attempt(number))
            print(tries[-1].line, flush=True)
    good = sum(not each.wrong for each in tries)
    print(f"{good} of {len(tries)} as described")
    return int(good < len(tries))


if __name__ == "__main__":
    sys.exit(main())
