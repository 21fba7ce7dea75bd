"""What commands run on: this machine, Slurm or Ray, each by the same three words."""

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


def option_words(
    *,
    configs: Sequence[str] = (),
    device: str = "auto",
    include: Sequence[str] = (),
    allow_code: bool = False,
    debug: bool = False,
) -> list[str]:
    """The options of a command as they are typed.

    Example:
        >>> option_words(device="cuda:1", include=["mine"], allow_code=True)
        ['--device', 'cuda:1', '--include', 'mine', '--allow-code']
    """
    words = [] if device == "auto" else ["--device", device]
    words += [part for config in configs for part in ("--config", config)]
    words += [part for module in include for part in ("--include", module)]
    words += ["--allow-code"] if allow_code else []
    return words + (["--debug"] if debug else [])


class Job(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """The exit code; negative or above 128 for a signal; None while it waits or runs."""
        ...

    def stop(self) -> None:
        """Asks it to save and end."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


class Launcher(Protocol):
    """What starts commands."""

    jobs: int
    """How many are started at a time."""
    threads: int
    """Of each command."""

    def start(self, words: Sequence[str], log: Path, name: str) -> Job:
        """Starts ``textmill`` with words; what it prints is all that is in the file ``log``.

        The name says to a person which run it is of.
        """
        ...


class LocalJob:
    """A command that was started: one process, with a group of its own for what it starts.

    A terminal's Ctrl-C does not reach it: whoever started it says when it is to stop.
    """

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

    By default as many as it has accelerators, each its own; on a machine without, or where
    ``device`` names one, as many as it has cores, or one. There are no more than ``commands``. Each
    has its share of the cores as threads, unless ``OMP_NUM_THREADS`` is set.

    Example:
        >>> Local(2, device="cpu").jobs
        2
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
        log.unlink(missing_ok=True)  # a command of before that still runs goes on with the old file
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
    """The ``textmill`` that was typed, or that of this Python."""
    typed = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "textmill" else None
    return [typed] if typed else [sys.executable, "-m", "textmill"]


def launcher_of(
    asked: Slurm | Ray | None,
    *,
    jobs: int | None = None,
    device: str = "auto",
    commands: int | None = None,
) -> Launcher:
    """What starts the cells of a grid.

    Args:
        asked: Settings of another launcher; None: this machine.
        jobs: Cells at a time; None: as many as there is room for.
        device: Of cells on this machine.
        commands: How many there are in all, where that is known.
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
