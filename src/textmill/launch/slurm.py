"""Commands as jobs of Slurm, through submitit: they go on when the terminal closes."""

import logging
import math
import os
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
from typing import Any, Literal

from textmill.config.component import typed_construction
from textmill.errors import MissingExtraError, RunError, UserError

SAVE_SECONDS = 120
"""Before the end of its time a job is asked to stop, so that it saves and is queued again."""
GONE = "has left Slurm's queue without a result: it was cancelled, or its node was lost."
"""What the log of a job says that Slurm no longer has, where it keeps no account of jobs."""
HEARD_SECONDS = 5
"""How much later than another one a task may hear that the time is nearly over."""
MOST_JOBS = 100
"""Jobs of a grid that wait or run at a time: clusters allow some hundreds or thousands a person."""
LOG = logging.getLogger("textmill")
QUEUE_SECONDS = 30
"""How old a look at the queue may be that tells what was handed over before."""
ANSWER_SECONDS = 60
"""How long is waited for the answer of ``squeue``, which tries for minutes."""
RECORD = Path(".textmill") / "slurm_jobs"
"""An empty file for each job that was handed over from this working directory, by its number; it is
removed once ``squeue`` no longer has the job.
"""
PREFIX = "textmill "
"""The beginning of a job's name; what follows is the run's folder."""
LOST = {"CANCELLED", "FAILED", "INTERRUPTED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
"""States of jobs that did not end by themselves."""


@typed_construction
@dataclass(frozen=True, kw_only=True)
class Slurm:
    """What a job asks of Slurm; each is a word ``slurm.NAME=VALUE``.

    Example:
        >>> Slurm(time="2h", gpus=8).time
        datetime.timedelta(seconds=7200)
    """

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
    """Where the jobs' logs are; the nodes must see it."""
    cluster: Literal["slurm", "local"] = "slurm"
    """``local`` runs the job on this machine, apart from the terminal: to try a command."""

    def __post_init__(self) -> None:
        for name, least in {"nodes": 1, "gpus": 0, "cpus": 1, "memory": 0, "restarts": 0}.items():
            if (found := getattr(self, name)) is not None and found < least:
                raise UserError(f"slurm.{name} must be {least} or more, but is {found}.")
        if self.time < timedelta(minutes=1):
            raise UserError(f"slurm.time must be a minute or more, but is {self.time}.")


@dataclass(frozen=True)
class Command:
    """A command as each task of a job runs it: with its rank, and saved before the time is over.

    submitit pickles it to hand it to the job, and hands on what :meth:`checkpoint` gives when the
    job is queued again; the same words go on with the same run.
    """

    words: Sequence[str]
    """Of the command line, the command first."""
    threads: int
    """That each may have."""

    def __call__(self) -> None:
        """Runs the command.

        Raises:
            RunError: It failed.
        """
        from submitit.helpers import TorchDistributedEnvironment

        os.environ.setdefault("OMP_NUM_THREADS", str(self.threads))
        TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)
        late = signal.SIGUSR2  # what submitit asks Slurm for, to all processes of the job
        queue_again: Any = signal.getsignal(late)
        signal.pthread_sigmask(signal.SIG_BLOCK, {late})  # the command would die of it
        process = subprocess.Popen([sys.executable, "-m", "textmill", *self.words])  # noqa: S603
        heard = []

        def save(number: int, _: object) -> None:
            heard.append(number)
            process.terminate()

        for number in (late, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, save)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {late})
        code = process.wait()
        if code in (128 + signal.SIGTERM, -signal.SIGTERM):
            if os.environ["RANK"] != "0":
                return  # the task of rank 0 queues the job again, unless another ends with an error
            until = time.monotonic() + HEARD_SECONDS
            while not heard and time.monotonic() < until:
                time.sleep(0.1)
            signal.signal(late, queue_again)
            if late in heard:
                queue_again(late, None)
        if code:
            raise RunError(f"textmill {' '.join(self.words[:2])} ended with {code}; above is why.")

    def checkpoint(self) -> Any:
        """What the job does when it runs again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class SlurmJob:
    """A job that was handed over.

    Args:
        job: As submitit has it.
        log: The file that gets all that it printed when it has ended; None: none does.
        queue: What says whether it still waits or runs; None: it runs on this machine.
    """

    def __init__(
        self, job: Any, log: Path | None = None, queue: "SlurmQueue | None" = None
    ) -> None:
        self._job, self._log, self._queue = job, log, queue
        self._code: int | None = None
        self._stopped = False
        self._since = time.monotonic()
        self._missed: float | None = None

    @property
    def id(self) -> str:
        """Its number, as ``squeue`` has it."""
        return str(self._job.job_id)

    @property
    def can_run(self) -> bool:
        """Whether what it does was written down, which submitit does when Slurm has answered."""
        return Path(self._job.paths.submitted_pickle).exists()

    @property
    def output(self) -> Path:
        """The file that what it prints goes to."""
        return Path(self._job.paths.stderr)

    def poll(self) -> int | None:
        """0 where it has ended well, 143 where it was stopped, else 1; None before it has ended."""
        if self._code is None and (self._job.done() or self._has_left_the_queue()):
            lost = not self._job.done()
            failed = lost or self._job.state in LOST or self._job.exception() is not None
            self._code = (128 + signal.SIGTERM if self._stopped else 1) if failed else 0
            if self._log is not None:
                told = [self._job.stderr(), self._job.stdout()]
                told += [f"error: job {self.id} {GONE}\n"] if lost else []
                self._log.write_text("".join(text or "" for text in told), encoding="utf-8")
        return self._code

    def _has_left_the_queue(self) -> bool:
        """Whether two looks at the queue have missed it, where Slurm keeps no account of jobs.

        One does not say it of a job that was not stopped: its result may be seen later than that
        it is gone.
        """
        if self._queue is None or self._job.state != "UNKNOWN":
            return False
        with suppress(UserError):
            self._queue.look()
        answered = self._queue.answered
        if answered is None or answered < self._since or self.id in self._queue.names:
            self._missed = None  # a look at the queue from before the job says nothing of it
            return False
        self._missed = self._missed or answered
        return self._stopped or answered > self._missed

    def stop(self) -> None:
        """Asks Slurm to end it, which a run hears: it saves first."""
        self._stopped = True
        self._job.cancel(check=False)

    def kill(self) -> None:
        """The same: Slurm itself kills what does not end."""
        self.stop()


@dataclass(frozen=True)
class QueuedJob:
    """A job of textmill that Slurm has not ended, handed over from this working directory."""

    number: str
    state: str
    """As ``squeue`` says it: ``PENDING``, ``RUNNING``, ..."""
    script: Path
    name: str
    """As it was handed over with: the folder of a run begins it."""

    @property
    def log(self) -> Path:
        """The file that what it prints goes to, as submitit places it."""
        return self.script.parent / self.number / f"{self.number}_0_log.err"


def recorded_jobs() -> set[str]:
    """The numbers of jobs from this working directory that are not known to have ended."""
    try:
        return {path.name for path in RECORD.iterdir()}
    except OSError:
        return set()


def queued_jobs(*, within: float | None = None) -> list[QueuedJob]:
    """The jobs of textmill that wait or run, of this person and from this working directory.

    Args:
        within: Seconds that Slurm has for its answer; None: :data:`ANSWER_SECONDS`.

    Raises:
        UserError: Slurm does not answer.
    """
    recorded = recorded_jobs()
    within = ANSWER_SECONDS if within is None else within
    if (squeue := shutil.which("squeue")) is None:
        return []
    words = [squeue, "--noheader", f"--user={os.getuid()}", "--format=%i|%T|%Z|%o|%j"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": within}
    try:
        asked = subprocess.run(words, check=True, **options)  # noqa: S603
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        late = f"nothing within {within} s"
        said = late if isinstance(error, subprocess.TimeoutExpired) else error.stderr.strip()
        raise UserError(
            f"squeue does not say which jobs wait: {said}. Try again when Slurm answers."
        ) from None
    here, found = Path.cwd().resolve(), []
    for line in asked.stdout.splitlines():
        number, state, folder, script, name = [*line.strip().split("|", 4), *[""] * 4][:5]
        if name.startswith(PREFIX) and Path(folder).resolve() == here:
            found.append(QueuedJob(number, state, Path(script), name.removeprefix(PREFIX)))
    for number in recorded - {job.number for job in found}:
        with suppress(OSError):
            (RECORD / number).unlink()
    return found


class SlurmQueue:
    """The jobs that wait or run, as of the last look."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """Each job's name by its number."""
        self.answered: float | None = None
        """When Slurm answered last; None: it has not yet."""
        self._asked = -math.inf

    def look(self) -> None:
        """Asks again where the last look is older than :data:`QUEUE_SECONDS`.

        Raises:
            UserError: Slurm does not answer, and has not before.
        """
        if time.monotonic() - self._asked <= QUEUE_SECONDS:
            return
        try:
            self.names = {job.number: job.name for job in queued_jobs()}
            self.answered = time.monotonic()
        except UserError:
            if self.answered is None:
                raise  # later on jobs of ours wait, which an error would end
        self._asked = time.monotonic()


class SlurmJobs:
    """Hands commands to Slurm.

    Args:
        slurm: What each asks for.
        ranks: Processes of a node.
        jobs: How many may wait and run at a time; None: :data:`MOST_JOBS`.

    Raises:
        MissingExtraError: submitit is not installed.
        UserError: This machine cannot hand jobs to Slurm.
    """

    def __init__(self, slurm: Slurm, *, ranks: int = 1, jobs: int | None = None) -> None:
        try:
            import submitit
        except ImportError:
            raise MissingExtraError("submitit", extra="slurm", what="--launcher slurm") from None
        if slurm.cluster == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise UserError(
                "This machine has no sbatch and srun, so it cannot hand jobs to Slurm. Log in "
                "where they are, or set slurm.cluster=local to try the job here."
            )
        self.jobs, self.threads = jobs or MOST_JOBS, slurm.cpus
        self._here = slurm.cluster == "local"
        self._queue = SlurmQueue()
        self._job_of = submitit.SlurmJob
        self._refused: type[Exception] = submitit.core.utils.FailedJobError
        self._executor = submitit.AutoExecutor(
            (slurm.folder / "%j").absolute(),
            cluster=slurm.cluster,
            slurm_max_num_timeout=slurm.restarts,
        )
        self._executor.update_parameters(
            timeout_min=math.ceil(slurm.time / timedelta(minutes=1)),
            nodes=slurm.nodes,
            tasks_per_node=ranks,
            gpus_per_node=slurm.gpus,
            cpus_per_task=slurm.cpus,
            slurm_signal_delay_s=SAVE_SECONDS,
            **_named(slurm),
        )

    def handed_over(self, words: Sequence[str], name: str) -> SlurmJob:
        """The job of that name that waits or runs, which is said, or one that is handed over now.

        Raises:
            UserError: Slurm does not answer, or refuses the job.
        """
        if not self._here:
            self._queue.look()
        newest = {known: number for number, known in self._queue.names.items()}
        if (number := newest.get(name)) is not None:
            found = SlurmJob(self._job_of(self._executor.folder, number), None, self._queue)
            if found.can_run:
                LOG.info("%s was handed over before, and its job has not ended.", name)
                return found
            LOG.warning(
                f"Job {number} cannot run: the command that handed it over was killed just then. "
                "It is cancelled."
            )
            found.stop()
        return self.start(words, None, name)

    def start(self, words: Sequence[str], log: Path | None, name: str) -> SlurmJob:
        """Hands over a command.

        Args:
            words: Of the command line, the command first.
            log: As of :class:`SlurmJob`.
            name: The job's, by which :meth:`handed_over` finds it.

        Raises:
            UserError: Slurm refuses the job.
        """
        self._executor.update_parameters(name=f"{PREFIX}{name}")
        try:
            job = self._executor.submit(Command(tuple(words), self.threads))
        except self._refused as error:
            raise UserError(f"Slurm refuses the job: {str(error).strip()}") from None
        if not self._here:
            with suppress(OSError):  # as in a directory that cannot be written to
                RECORD.mkdir(parents=True, exist_ok=True)
                (RECORD / str(job.job_id)).touch()
        return SlurmJob(job, log, None if self._here else self._queue)


def _named(slurm: Slurm) -> dict[str, Any]:
    """Those settings that have a value, as submitit calls them."""
    given = {
        "mem_gb": slurm.memory,
        "slurm_partition": slurm.partition,
        "slurm_account": slurm.account,
        "slurm_qos": slurm.qos,
        "slurm_constraint": slurm.constraint,
        "slurm_additional_parameters": dict(slurm.options),
    }
    return {name: value for name, value in given.items() if value is not None}
