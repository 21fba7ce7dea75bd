"""Runs of one rank or several, forked from a process that has imported all, and what they say."""

import atexit
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.runs.tiny import alive, metrics_of

SERVER = """
import json, os, sys
import sacrebleu, sentencepiece, torch, torch.distributed, torch.distributed.fsdp, torch.optim
import textmill.runs.train, textmill.recipes.planning, textmill.runs.registries
from textmill.cli.main import main
for line in sys.stdin:
    job = json.loads(line)
    children = []
    for rank in range(job["size"]):
        child = os.fork()
        if not child:
            os.chdir(job["folder"])
            log = os.open(f'{job["log"]}-{rank}', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1), os.dup2(log, 2)
            if job["size"] > 1:
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(job["size"]),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job["port"])}
            os.environ |= job["env"]
            code = 99
            try:
                code = main(job["words"])
            finally:
                sys.stdout.flush(), sys.stderr.flush()
                os._exit(code)
        children.append(child)
    print(json.dumps(children), flush=True)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes), flush=True)
"""


@dataclass
class Ended:
    """A process that has ended."""

    code: int
    seconds: float
    log: str


class RankedRuns:
    """Runs of any number of ranks; each prints to a log of its own."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=environment,
        )  # fmt: skip
        self.processes: list[int] = []  # those whose end was not waited for

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait(timeout=60)
        self.server.stdout.close()

    def start(self, folder: Path, *words: str, size: int, env=()) -> list[int]:
        """Starts ``textmill`` with the words; the processes' ids by rank.

        What a test that failed has left is killed: it would be taken for what is started here.
        """
        if self.processes:
            for process in filter(alive, self.processes):
                os.kill(process, signal.SIGKILL)
            self.server.stdout.readline()
        folder.mkdir(parents=True, exist_ok=True)
        self.logs = [folder / f"log-{rank}" for rank in range(size)]
        self.before = [log.stat().st_size if log.exists() else 0 for log in self.logs]
        job = {
            "folder": str(folder), "log": str(folder / "log"), "words": list(words), "size": size,
        }  # fmt: skip
        self.server.stdin.write(json.dumps({**job, "port": free_port(), "env": dict(env)}) + "\n")
        self.server.stdin.flush()
        self.processes = json.loads(self.server.stdout.readline())
        return self.processes

    def end(self) -> tuple[list[int], list[str]]:
        """Waits until all have ended: exit codes, and what each said."""
        codes, self.processes = json.loads(self.server.stdout.readline()), []
        logs = zip(self.logs, self.before, strict=True)
        return codes, [log.read_bytes()[before:].decode() for log, before in logs]

    def run(self, folder: Path, *words: str, size: int, env=()) -> tuple[list[int], list[str]]:
        """Runs ``textmill`` with the words to its end."""
        self.start(folder, *words, size=size, env=env)
        return self.end()

    def train(self, folder: Path, *words: str, when=lambda: None, send=signal.SIGKILL) -> Ended:
        """Trains ``tiny.py`` alone; ``when`` waits for the moment to signal, or gives None."""
        (child,), start = (
            self.start(folder, *(words or ("train", "tiny.py")), size=1),
            time.monotonic(),
        )
        if when() is not None and alive(child):
            os.kill(child, send)
        (code,), (log,) = self.end()
        return Ended(code, time.monotonic() - start, log)


@cache
def ranked_runs() -> RankedRuns:
    """One server of all tests of a process: what it imports takes 3 s."""
    runs = RankedRuns()
    atexit.register(runs.__exit__)
    return runs


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of the metrics.jsonl of the one run in a folder, without what the clock decides."""
    (run,) = folder.glob("runs/*/*")
    return metrics_of(run)


def largest_difference(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """The largest relative difference of numbers; all else is the same."""
    assert [line.keys() for line in one] == [line.keys() for line in other]
    worst = 0.0
    for left, right in zip(one, other, strict=True):
        for name, value in left.items():
            if isinstance(value, float):
                worst = max(worst, abs(value - right[name]) / max(abs(value), 1e-9))
            else:
                assert value == right[name], (name, left, right)
    return worst


def write_data(folder: Path) -> Path:
    """Small files in ``data`` for experiments that classify, tag, model a language, and compare."""
    data = folder / "data"
    data.mkdir(parents=True)
    words = ["the", "cat", "sees", "a", "bird", "and", "dog", "eats", "fish", "in", "our", "house"]
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=chance.randint(2, 12))) for _ in range(40)]
    for name, some in (("train", texts[:29]), ("dev", texts[29:]), ("valid", texts[29:])):
        labelled = [f"{'ham' if 'cat' in text else 'spam'}\t{text}\n" for text in some]
        (data / f"{name}.tsv").write_text("".join(labelled))
        (data / f"{name}.txt").write_text("\n".join(some) + "\n")
        tagged = [[(w, "B-X" if w in ("cat", "dog") else "O") for w in t.split()] for t in some]
        lines = ["".join(f"{w} {tag}\n" for w, tag in sentence) for sentence in tagged]
        (data / f"{name}.conll").write_text("\n".join(lines))
        (data / f"{name}-pairs.tsv").write_text(pairs_of(some))
    return folder


def pairs_of(texts: list[str]) -> str:
    """Rows of a text, one that belongs to it, which some texts share, a wrong one, and a score."""
    lines = []
    for number, text in enumerate(texts):
        alike = " ".join(word[::-1] for word in sorted(set(text.split()))[:2])
        lines.append(f"{text}\t{alike}\t{texts[number - 1]}\t{len(alike) % 6 / 5}\n")
    return "".join(lines)
