"""Kills of ranks at random moments.

``python -m tests.runs.rank_kills`` prints a table of them. Each try is a run of two or three ranks
in a folder of its own, started by ``--nproc``, by two agents of torchrun, or by hand. A rank is
killed, all others must have ended within 30 s, and what was said must name it. Then the launcher
starts all again, or the same command is given again, and what the run leaves is compared byte for
byte with a run of as many ranks that nothing happened to.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.runs.many_ranks import RankedRuns, free_port
from tests.runs.tiny import alive, outcome, run_folder, unlike, write_recipe

TRAIN = ["-m", "textmill", "train", "tiny.py"]
WAYS = ("--nproc", "torchrun", "by hand")
MOMENTS = ("while starting", "while reading", "after a step", "in an evaluation", "in a save")
ENDED_WITHIN = 30.0


@dataclass
class Try:
    """One run of which a rank was killed, and what came of it."""

    way: str
    size: int
    victim: int
    moment: str
    seconds: float = float("nan")
    named: str = ""
    wrong: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """For the table."""
        who = f"rank {self.victim} of {self.size}, {self.way}"
        said = "as described" if not self.wrong else f"WRONG: {', '.join(self.wrong)}"
        return f"{who:<22}  {self.moment:<17}  {self.seconds:>5.1f} s  {self.named:<8}  {said}"


class Campaign:
    """Tries in folders below one, against runs that nothing happened to."""

    def __init__(self, root: Path, runs: RankedRuns, *, seed: int) -> None:
        self.root, self.runs, self.chance = root, runs, random.Random(seed)
        self.wanted: dict[int, dict] = {}
        self.tries = 0

    def undisturbed(self, size: int) -> dict:
        """What a run of so many ranks leaves."""
        if size not in self.wanted:
            folder = recipe(self.root / f"undisturbed-{size}")
            codes, said = self.runs.run(folder, "train", "tiny.py", size=size)
            assert not any(codes), said
            self.wanted[size] = outcome(run_folder(folder))
        return self.wanted[size]

    def attempt(self, way: str | None = None, moment: str | None = None) -> Try:
        """Kills one rank of one run; ways and moments take turns where they are not given."""
        number, chance = self.tries, self.chance
        self.tries += 1
        size = chance.choice((2, 3))
        tried = Try(
            way or WAYS[number % len(WAYS)], size, chance.randrange(size),
            moment or MOMENTS[number % len(MOMENTS)],
        )  # fmt: skip
        if tried.way == "by hand" and tried.moment == "while starting":
            tried.moment = "while reading"  # nobody knows of a rank that has not come yet
        wanted, folder = self.undisturbed(size), recipe(self.root / str(number))
        started = self.by_hand if tried.way == "by hand" else self.launched
        with started(folder, tried) as (ranks, said, ended):
            while len(ranks()) < size:
                time.sleep(0.01)
            self.wait_for(tried.moment, folder)
            processes = ranks()
            process = processes[tried.victim]
            os.kill(process, signal.SIGKILL)
            killed = time.monotonic()
            while any(map(alive, processes.values())) and time.monotonic() - killed < 60:
                time.sleep(0.01)
            tried.seconds = time.monotonic() - killed
            code = ended()
        tried.named = who_named(tried.victim, process, said(), folder)
        judge(tried, code, wanted, folder)
        return tried

    def wait_for(self, moment: str, folder: Path) -> None:
        """Waits for a moment in the life of a run, of which nothing was seen yet."""
        steps = self.chance.randrange(1, 18)
        happened: dict[str, Callable[[], bool]] = {
            "while starting": lambda: True,
            "while reading": lambda: any(folder.glob("runs/tiny/*/log.txt")),
            "after a step": lambda: lines_written(folder) >= steps,
            "in an evaluation": lambda: lines_written(folder) >= evaluated,
            "in a save": lambda: any(folder.glob("runs/tiny/*/checkpoints/.step-*.tmp-*")),
        }
        # Before the line of step 7, 14 or 20 all is evaluated, which takes ten times a step.
        evaluated = self.chance.choice((6, 14, 21))
        until = time.monotonic() + 60
        while not happened[moment]():
            assert time.monotonic() < until, f"it never was {moment}"
            time.sleep(0.0005)
        pause = {"while starting": 3, "in a save": 0.01, "in an evaluation": 0.2}
        time.sleep(self.chance.random() * pause.get(moment, 0.1))

    @contextmanager
    def by_hand(self, folder: Path, tried: Try) -> Iterator:
        """Ranks that nobody looks after, and the same command after they have ended."""
        processes = self.runs.start(folder, "train", "tiny.py", size=tried.size)
        texts: list[str] = []

        def ended() -> int:
            codes, said = self.runs.end()
            texts.extend(said)
            if sorted(codes) != sorted([-9, *[1] * (tried.size - 1)]):
                return codes[1 - tried.victim % 2]
            codes, said = self.runs.run(folder, "train", "tiny.py", size=tried.size)
            return max(map(abs, codes))

        yield lambda: dict(enumerate(processes)), lambda: "".join(texts), ended

    @contextmanager
    def launched(self, folder: Path, tried: Try) -> Iterator:
        """Ranks that --nproc, or torchrun on what it takes for two machines, starts again."""
        programs = commands(tried.way, tried.size)
        with (folder / "log").open("ab") as log:
            launchers = [
                subprocess.Popen(
                    words, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=log,
                    stderr=log,
                )
                for words in programs
            ]  # fmt: skip

        def ranks() -> dict[int, int]:
            found: dict[int, int] = {}
            for launcher in launchers:
                found |= ranks_of(launcher.pid)
            return found

        try:
            yield (
                ranks,
                (folder / "log").read_text,
                lambda: max(abs(launcher.wait(120)) for launcher in launchers),
            )
        finally:
            for launcher in launchers:
                launcher.terminate()
                launcher.wait(60)


def commands(way: str, size: int) -> list[list[str]]:
    """What is typed, in one terminal or in two."""
    if way == "--nproc":
        return [[sys.executable, *TRAIN, "--nproc", str(size), "--max-restarts=3"]]
    meet = ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}"]
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--max-restarts=3", *meet]
    return [[*agent, f"--nproc-per-node={count}", *TRAIN] for count in (size - 1, 1)]


def recipe(folder: Path) -> Path:
    """The tiny recipe, with an evaluation that takes long enough to be killed in."""
    write_recipe(folder)
    rows = (folder / "valid.tsv").read_text()
    (folder / "valid.tsv").write_text(rows * 20)
    return folder


def lines_written(folder: Path) -> int:
    """How many lines of values were written."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs/tiny/*/metrics.jsonl"))


def ranks_of(launcher: int) -> dict[int, int]:
    """The processes that a launcher has started, by their ranks."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            stat, environment = (path / "stat").read_text(), (path / "environ").read_bytes()
            rank = re.search(rb"(?:^|\0)RANK=(\d+)\0", environment)
            if rank and stat.rpartition(")")[2].split()[1] == str(launcher):
                found[int(rank[1])] = int(path.name)
    return found


def who_named(victim: int, process: int, said: str, folder: Path) -> str:
    """Who named the rank that died, and why it did; the run's own log before the terminal."""
    killed = rf"(?i)rank {victim} \(process {process}\b.*\) (was killed by SIGKILL|died)"
    if re.search(killed, next(folder.glob("runs/tiny/*/log.txt")).read_text()):
        return "log.txt"
    if re.search(killed, said):
        return "stderr"
    return "torchrun" if re.search(rf"exitcode: -9\) .*\(pid: {process}\)", said) else "nobody"


def judge(tried: Try, code: int, wanted: dict, folder: Path) -> None:
    """Writes down what is not as it is described."""
    if tried.seconds > ENDED_WITHIN:
        tried.wrong.append("not ended")
    if tried.named == "nobody":
        tried.wrong.append("not named")
    if code:
        tried.wrong.append(f"exit code {code}")
        return
    tried.wrong += unlike(wanted, outcome(run_folder(folder)))


def main(words: list[str] | None = None) -> int:
    """Prints a line for each kill; 1 where one is not as described."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=20261124)
    asked = parser.parse_args(words)
    print(f"{'killed':<22}  {'when':<17}  {'ended':>7}  {'named in':<8}  then, against no kill")
    with tempfile.TemporaryDirectory(prefix="textmill-kills-") as root, RankedRuns() as runs:
        campaign, tries = Campaign(Path(root), runs, seed=asked.seed), []
        for _ in range(asked.kills):
            tries.append(campaign.attempt())
            print(tries[-1].line, flush=True)
    good = sum(not each.wrong for each in tries)
    slowest = max(each.seconds for each in tries)
    print(f"{good} of {len(tries)} as described; the slowest had ended after {slowest:.1f} s")
    return int(good < len(tries))


if __name__ == "__main__":
    sys.exit(main())
