"""What runs the measurements of the benchmarks, keeps their figures and prints their tables."""

import argparse
import datetime
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import machine

TIMEOUT = 240.0
Line = dict[str, Any]


class Lab:
    """Runs measurements and keeps what they say."""

    def __init__(self, args: argparse.Namespace, cache: Path) -> None:
        self.args, self.cache = args, cache
        self.repetitions = 1 if args.quick else args.repetitions
        self.threads = 1 if args.quick else args.threads
        self.environment: dict[str, str] = {"CUDA_VISIBLE_DEVICES": ""}
        self.failed: dict[str, str] = {}
        """The commands of measurements that failed, and why."""

    def has(self, peer: str, needs: Iterable[str]) -> bool:
        """Whether what a peer needs is installed; says what is not."""
        missing = [name for name in needs if importlib.util.find_spec(name) is None]
        if missing:
            self.say(f"{peer}: left out, {' and '.join(missing)} is not installed")
        return not missing

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def command(
        self, words: list[str], *, limit: float = TIMEOUT, figures: bool = True
    ) -> Line | None:
        """Runs one measurement; its last line of JSON, with the times of the whole process.

        ``words`` begin with a script, or with the Python that is to run one.

        Nothing where it failed, ran over ``limit`` seconds, or printed none of the ``figures`` it
        should: why is in ``failed``.
        """
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(self.threads),
            **self.environment,
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "TEXTMILL_CACHE": str(self.cache / "textmill"),
        }
        watch = machine.Watch()
        try:
            done = subprocess.run(
                words if not words[0].endswith(".py") else [sys.executable, *words],
                check=False,
                capture_output=True,
                text=True,
                timeout=limit,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return self._failure(words, f"it took over {limit:.0f} s")
        read = watch.read()
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return self._failure(words, f"it ended with {done.returncode}: {last}")
        found = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if figures and not found:
            return self._failure(words, "it printed no figures")
        return {"process": read, **(json.loads(found[-1]) if found else {}), "stdout": done.stdout}

    def _failure(self, words: list[str], why: str) -> None:
        command = " ".join([Path(words[0]).name, *words[1:]])
        self.failed[command] = why
        self.say(f"{command}: failed, {why}")

    def turns(
        self,
        bench: str,
        peers: Mapping[str, list[str]],
        *,
        repetitions: int = 0,
        figures: bool = True,
    ) -> dict[str, list[Line]]:
        """All repetitions of all peers in turn; each is kept as a line of JSON."""
        found: dict[str, list[Line]] = {peer: [] for peer in peers}
        for repetition in range(repetitions or self.repetitions):
            for peer, words in peers.items():
                self.say(f"{bench}: {peer}, {repetition + 1} of {repetitions or self.repetitions}")
                line = self.command(words, figures=figures)
                if line is not None:
                    found[peer].append(line)
                    self.keep(bench, peer, line)
        return {peer: lines for peer, lines in found.items() if lines}

    def keep(self, bench: str, peer: str, line: Line) -> None:
        kept = {k: v for k, v in line.items() if k not in ("stdout", "bench", "peer", "rows")}
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = {"bench": bench, "peer": peer, "when": when, "threads": self.threads, **kept}
        with self.args.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def middle(lines: list[Line], name: str) -> float:
    return statistics.median(float(line[name]) for line in lines)


def others(lines: list[Line]) -> float:
    """The most cores that others used in a repetition."""
    return max(float(line["others"]) for line in lines)


def heading(title: str) -> None:
    print(f"\n### {title}\n", flush=True)


def table(columns: list[str], rows: Iterable[list[str]]) -> None:
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def has_base(found: Mapping[str, list[Line]], base: str) -> bool:
    """Whether there is what the table compares with; says that there is no table where not."""
    if base not in found:
        print(f"No table: it compares with {base}, which was not measured.", flush=True)
    return base in found


def say_what_counts(found: Mapping[str, list[Line]], threads: int) -> None:
    """Says which rows' wall-clock figures count, which of a disturbed row do."""
    if not found:
        return
    disturbed = {peer: others(o) for peer, o in found.items() if others(o) >= machine.QUIET}
    if not disturbed:
        most = max(others(lines) for lines in found.values())
        print(f"Others used at most {most:.2f} cores: wall-clock counts.")
        return
    rows = "; ".join(f"{peer} ({most:.2f})" for peer, most in disturbed.items())
    rule = "of these the CPU second counts" if threads == 1 else "these rows do NOT count"
    rest = ", wall-clock of the rest" if len(disturbed) < len(found) else ""
    print(f"Others used {machine.QUIET} cores or more beside {rows}: {rule}{rest}.")


def which(threads: int, *rows: list[Line]) -> str | None:
    """What rows may be compared by: the wall clock, the processor's, or nothing."""
    if all(others(lines) < machine.QUIET for lines in rows):
        return "wall"
    return "cpu" if threads == 1 else None


def times(threads: int, lines: list[Line], base: list[Line]) -> str:
    """How many times as fast as ``base``; a dash where that does not count."""
    by = which(threads, lines, base)
    if by is None:
        return "-"
    speed = "tok_s" if by == "wall" else "tok_cpu_s"
    return f"{middle(lines, speed) / middle(base, speed):.2f} times"
