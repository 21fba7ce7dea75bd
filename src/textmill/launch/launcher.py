"""What commands run on: this machine, Slurm or Ray, each by the same three words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from textmill.errors import UserError
from textmill.launch.local import Local
from textmill.launch.ray import Ray, RayJobs
from textmill.launch.slurm import Slurm, SlurmJobs


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
