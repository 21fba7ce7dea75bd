"""Commands of textmill as processes of this machine, each with its share of the cores."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from textmill.runtime.devices import usable_cores


def opened_log(path: Path) -> BinaryIO:
    """A new file for what a command prints: one that still runs goes on with the old file."""
    path.unlink(missing_ok=True)
    return path.open("wb")


class LocalJob:
    """A command that was started: one process, with a group of its own for what it starts.

    A terminal's Ctrl-C does not reach it: whoever started it says when it is to stop.
    """

    def __init__(self, process: subprocess.Popen[bytes], accelerator: str | None = None) -> None:
        self.process, self.accelerator = process, accelerator

    def poll(self) -> int | None:
        """The exit code, negative for the signal that ended it; None while it runs."""
        return self.process.poll()

    def stop(self) -> None:
        """Asks it to save and end: a run goes on from there by the same command."""
        if self.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        """Ends it and all it started, at once."""
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
        self.accelerators = _accelerators(device)
        cores = usable_cores()
        places = jobs or len(self.accelerators) or (cores if device in ("auto", "cpu") else 1)
        self.jobs = places if commands is None else max(1, min(places, commands))
        self.threads = max(1, cores // self.jobs)
        self._started: list[LocalJob] = []

    def start(self, words: Sequence[str], log: Path, name: str = "") -> LocalJob:
        """As of :class:`~textmill.launch.launcher.Launcher`."""
        self._started = [job for job in self._started if job.poll() is None]
        busy = [job.accelerator for job in self._started]
        accelerator = min(self.accelerators, key=busy.count, default=None)
        environment = {"OMP_NUM_THREADS": str(self.threads), **os.environ}
        if accelerator is not None:
            environment["CUDA_VISIBLE_DEVICES"] = accelerator
        with opened_log(log) as file:
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


def _accelerators(device: str) -> list[str]:
    """Each GPU that may be used, as CUDA_VISIBLE_DEVICES has it; none where there is no choice."""
    if device not in ("auto", "cuda"):
        return []
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return visible.split(",")[:count] if visible else [str(number) for number in range(count)]
