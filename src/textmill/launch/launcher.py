"""Where commands run: on this machine, by Slurm or on Ray, through the same interface."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from textmill.errors import UserError
from textmill.launch.ray import Ray, RayJobs
from textmill.launch.slurm import Slurm, SlurmJobs
from textmill.runtime.devices import usable_cores


class Job(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """The exit code; negative or above 128 for a signal; None while it waits or runs."""

    def stop(self) -> None:
        """Asks it to save and end."""

    def kill(self) -> None:
        """Ends it at once."""


class Launcher(Protocol):
    """Starts commands."""

    jobs: int
    """How many run at a time."""
    threads: int
    """Threads of each command."""

    def start(self, words: Sequence[str], log: Path, name: str) -> Job:
        """Starts ``textmill`` with words; its output goes to ``log``, ``name`` names the job."""


class LocalJob:
    """A process in a group of its own, so that a terminal's Ctrl-C does not reach it."""

    def __init__(self, process: subprocess.Popen[bytes], accelerator: str | None = None) -> None:
        self.process, self.accelerator = process, accelerator

    def poll(self) -> int | None:
        return self.process.poll()

    def stop(self) -> None:
        if self.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Local:
    """Starts commands on this machine, at most ``jobs`` at a time.

    By default one for each accelerator, or one if ``device`` names one; without accelerators one
    for each core. There are no more than ``commands``. Each has its share of the cores as threads,
    unless ``OMP_NUM_THREADS`` is set.
    """

    def __init__(
        self, jobs: int | None = None, *, device: str = "auto", commands: int | None = None
    ) -> None:
        self.accelerators: list[str] = []
        if device in ("auto", "cuda"):
            import torch

            visible, count = os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count()
            self.accelerators = visible.split(",")[:count] if visible else [*map(str, range(count))]
        cores = usable_cores()
        places = jobs or len(self.accelerators) or (cores if device in ("auto", "cpu") else 1)
        self.jobs = places if commands is None else max(1, min(places, commands))
        self.threads = max(1, cores // self.jobs)
        self._started: list[LocalJob] = []

    def start(self, words: Sequence[str], log: Path, name: str = "") -> LocalJob:
        self._started = [job for job in self._started if job.poll() is None]
        busy = [job.accelerator for job in self._started]
        accelerator = min(self.accelerators, key=busy.count, default=None)
        environment = {"OMP_NUM_THREADS": str(self.threads), **os.environ}
        if accelerator is not None:
            environment["CUDA_VISIBLE_DEVICES"] = accelerator
        log.unlink(missing_ok=True)  # a former command that still runs keeps the old file
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603  # the program that runs, without a shell
                [*program(), *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                process_group=0,
            )
        self._started.append(LocalJob(process, accelerator))
        return self._started[-1]


def program() -> list[str]:
    """The ``textmill`` that was typed, else the one of this Python."""
    typed = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "textmill" else None
    return [typed] if typed else [sys.executable, "-m", "textmill"]


def launcher_of(
    asked: Slurm | Ray | None,
    *,
    jobs: int | None = None,
    device: str = "auto",
    commands: int | None = None,
) -> Launcher:
    """Makes the launcher of a grid or a watch: the one that is asked for, else this machine.

    It runs ``jobs`` commands at a time, or as many as there is room for, of ``commands`` in all.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs is {jobs}; wanted how many run at a time, at least 1.")
    if isinstance(asked, Slurm) and asked.nodes > 1:
        raise UserError(
            f"slurm.nodes is {asked.nodes}, but a cell is one process, on one node. Leave it out."
        )
    if isinstance(asked, Slurm):
        return SlurmJobs(asked, jobs=jobs)
    if isinstance(asked, Ray):
        return RayJobs(asked, jobs=jobs)
    return Local(jobs, device=device, commands=commands)
