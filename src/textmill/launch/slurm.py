"""Commands as jobs of Slurm: a script for ``sbatch``, which goes on when the terminal closes."""

import logging
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from textmill.config.component import typed_construction
from textmill.config.validators import require
from textmill.errors import UserError

SAVE_SECONDS = 120
"""How long before its time ends a job is asked to save, so that it is queued again."""
MOST_JOBS = 100
"""Jobs of a grid that wait or run at a time; clusters allow a person hundreds or thousands."""
LOG = logging.getLogger("textmill")
QUEUE_SECONDS = 30
"""Seconds between two looks at the queue."""
ANSWER_SECONDS = 60
"""Seconds that ``squeue`` has for its answer; by itself it tries for minutes."""
RECORD = Path(".textmill") / "slurm_jobs"
"""A file for each job of this working directory, named by its number, with the path of its log;
removed once ``squeue`` no longer has the job.
"""
PREFIX = "textmill "
"""The beginning of a job's name; what follows is the run's folder."""
SCRIPT = """#!/bin/bash
cd {here}
child=; late=
ask() {{ [ -n "$child" ] && kill -TERM "$child"; }}
trap 'late=1; ask' USR1
trap ask TERM INT
{command} &
child=$!
while kill -0 "$child" 2> /dev/null; do wait "$child"; code=$?; done
if [ -n "$late" ] && [ "$code" = 143 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
  exec scontrol requeue "$SLURM_JOB_ID"
fi
file={file}
echo "$code" > "${{file//%j/$SLURM_JOB_ID}}"
exit "$code"
"""


@typed_construction
@dataclass(frozen=True, kw_only=True)
class Slurm:
    """What a job asks of Slurm; each is a word ``slurm.NAME=VALUE``."""

    time: timedelta = timedelta(hours=1)
    """How long it may run. Near its end it saves and is queued again, ``restarts`` times."""
    partition: str | None = None
    """The partition; null is the cluster's default."""
    nodes: int = 1
    """Nodes; each has as many ranks as ``--nproc`` says."""
    gpus: int = 0
    """GPUs of a node."""
    cpus: int = 1
    """Cores of a rank."""
    memory: float | None = None
    """Gigabytes of a node, 0 for all it has; null is the cluster's default."""
    account: str | None = None
    """The account that is charged."""
    qos: str | None = None
    """The quality of service."""
    constraint: str | None = None
    """Features that the nodes must have."""
    restarts: int = 100
    """How often a job that ran out of time is queued again."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Other options of sbatch, by their names: ``slurm.options={mail-user: me}``."""
    folder: Path = Path("jobs")
    """Where the logs of trainings are; the nodes must see it."""

    def __post_init__(self) -> None:
        least_0 = ["gpus", "memory", "restarts"]
        require(self, "slurm", sizes=["nodes", "cpus"], not_negative=least_0)
        if self.time < timedelta(minutes=1):
            raise UserError(f"slurm.time must be a minute or more, but is {self.time}.")

    def script(self, words: Sequence[str], *, ranks: int, name: str, log: Path) -> str:
        """The script of a job that runs ``textmill`` with words, in ``ranks`` processes a node."""
        given: dict[str, object] = {
            "job-name": f"{PREFIX}{name}", "output": log.absolute(), "open-mode": "append",
            "signal": f"B:USR1@{SAVE_SECONDS}", "requeue": None, "nodes": self.nodes,
            "time": math.ceil(self.time / timedelta(minutes=1)), "ntasks-per-node": 1,
            "cpus-per-task": self.cpus * ranks, "gpus-per-node": self.gpus or None,
            "mem": None if self.memory is None else f"{self.memory:g}G",
            "partition": self.partition, "account": self.account, "qos": self.qos,
            "constraint": self.constraint, **self.options,
        }  # fmt: skip
        options = [
            f"#SBATCH --{name}" + ("" if value is None else f"={shlex.quote(str(value))}")
            for name, value in given.items()
            if value is not None or name == "requeue"
        ]
        python = shlex.quote(sys.executable)
        threads = f"OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{self.cpus}}}"
        typed = shlex.join(words)
        command = f"{threads} {python} -m textmill {typed}"
        if self.nodes > 1:
            command = (
                f"{threads} srun {python} -m torch.distributed.run --nnodes={self.nodes} "
                f"--nproc-per-node={ranks} --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID "
                '--rdzv-endpoint="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)":'
                f"$((20000 + SLURM_JOB_ID % 20000)) -m textmill {typed}"
            )
        elif ranks > 1:
            command = f"{command} --nproc={ranks}"
        here, file = (shlex.quote(str(path)) for path in (Path.cwd(), code_file(log.absolute())))
        places: dict[str, Any] = {"here": here, "file": file, "restarts": self.restarts}
        head, _, body = SCRIPT.format(command=command, **places).partition("\n")
        return "\n".join([head, *options, body])


def code_file(log: Path) -> Path:
    """The file beside its log in which a job leaves its exit code."""
    return log.with_suffix(".code")


@dataclass(frozen=True)
class QueuedJob:
    """A job of textmill that waits or runs, handed over from this working directory."""

    number: str
    state: str
    """As ``squeue`` prints it: ``PENDING``, ``RUNNING``, ..."""
    name: str
    """The folder of the run."""

    @property
    def log(self) -> str:
        with suppress(OSError):
            return (RECORD / self.number).read_text(encoding="utf-8")
        return "-"


def recorded_jobs() -> set[str]:
    """The numbers of jobs from this working directory that are not known to have ended."""
    return {path.name for path in RECORD.glob("*")}


def queued_jobs(*, within: float = ANSWER_SECONDS) -> list[QueuedJob]:
    """This person's jobs of textmill that wait or run, from this working directory.

    ``within`` is how many seconds Slurm has for its answer.
    """
    recorded = recorded_jobs()
    if (squeue := shutil.which("squeue")) is None:
        return []
    words = [squeue, "--noheader", f"--user={os.getuid()}", "--format=%i|%T|%Z|%j"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": within}
    try:
        asked = subprocess.run(words, check=True, **options)  # noqa: S603
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        late = f"nothing within {within} s"
        why = late if isinstance(error, subprocess.TimeoutExpired) else error.stderr.strip()
        raise UserError(
            f"squeue does not say which jobs wait: {why}. Try again when Slurm answers."
        ) from None
    here, found = Path.cwd().resolve(), []
    for line in asked.stdout.splitlines():
        number, state, folder, name = [*line.strip().split("|", 3), *[""] * 3][:4]
        if name.startswith(PREFIX) and Path(folder).resolve() == here:
            found.append(QueuedJob(number, state, name.removeprefix(PREFIX)))
    for number in recorded - {job.number for job in found}:
        with suppress(OSError):
            (RECORD / number).unlink()
    return found


class SlurmJob:
    """A job that was handed over."""

    def __init__(self, jobs: "SlurmJobs", number: str, log: str) -> None:
        self._jobs, self.id, self.log = jobs, number, log
        self._since, self._missed = time.monotonic(), False
        self._stopped = False

    def poll(self) -> int | None:
        """The exit code that it left; 1 if it is gone without one; None before it has ended."""
        with suppress(OSError, ValueError):
            return int(code_file(Path(self.log)).read_text())
        jobs = self._jobs
        if jobs.look() and jobs.answered > self._since and self.id not in jobs.queue:
            # The file of its code may appear after it is gone: a second look decides.
            if self._missed or self._stopped:
                if not self._stopped:
                    LOG.warning("Job %s is gone: cancelled, or its node was lost.", self.id)
                return 128 + signal.SIGTERM if self._stopped else 1
            self._missed = True
        return None

    def stop(self) -> None:
        """Asks Slurm to end it; a run saves first."""
        self._stopped = True
        with suppress(OSError):
            subprocess.run(["scancel", self.id], check=False)  # noqa: S603, S607

    kill = stop


class SlurmJobs:
    """Hands commands to Slurm, each in ``ranks`` processes of a node.

    At most ``jobs`` wait and run at a time, by default :data:`MOST_JOBS`.
    """

    def __init__(self, slurm: Slurm, *, ranks: int = 1, jobs: int | None = None) -> None:
        if not (shutil.which("sbatch") and shutil.which("squeue")):
            raise UserError(
                "This machine has no sbatch and squeue, so it cannot hand jobs to Slurm. Log in "
                "where they are, or leave --launcher out."
            )
        self.slurm, self.ranks = slurm, ranks
        self.jobs, self.threads = jobs or MOST_JOBS, slurm.cpus
        before = queued_jobs()
        self.queue = {job.number for job in before}
        self.answered = self._asked = time.monotonic()
        self._before = {job.name: job for job in before}

    def look(self) -> bool:
        """Asks Slurm which jobs wait or run, if it is time; returns whether it answered."""
        if time.monotonic() - self._asked < QUEUE_SECONDS:
            return False
        self._asked = time.monotonic()
        try:
            self.queue = {job.number for job in queued_jobs()}
        except UserError:  # an error here would end jobs of ours that wait
            return False
        self.answered = self._asked
        return True

    def start(self, words: Sequence[str], log: Path | None, name: str) -> SlurmJob:
        """Hands over a command, unless a job of that name waits or runs already.

        Without a ``log`` its output goes to a file in ``slurm.folder``.
        """
        if (known := self._before.pop(name, None)) is not None:
            LOG.info("%s was handed over before, and its job has not ended.", name)
            return SlurmJob(self, known.number, known.log)
        log = log or self.slurm.folder / "%j.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        code_file(log).unlink(missing_ok=True)
        RECORD.mkdir(parents=True, exist_ok=True)
        script = self.slurm.script(words, ranks=self.ranks, name=name, log=log)
        done = subprocess.run(
            ["sbatch", "--parsable"],  # noqa: S607
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        number = done.stdout.strip().partition(";")[0]
        if done.returncode or not number.isdigit():
            raise UserError(f"Slurm refuses the job: {(done.stderr or done.stdout).strip()}")
        place = str(log.absolute()).replace("%j", number)
        (RECORD / number).write_text(place, encoding="utf-8")
        return SlurmJob(self, number, place)
