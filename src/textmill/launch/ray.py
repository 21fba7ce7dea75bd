"""Commands on a Ray cluster: the ranks of a run by Ray Train, the cells of a grid as its tasks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from textmill.config.component import typed_construction
from textmill.config.sources.include import including
from textmill.config.validators import require
from textmill.errors import MissingExtraError, RunError, UserError
from textmill.runtime.devices import Env
from textmill.runtime.logging import log_to_stderr


@typed_construction
@dataclass(frozen=True, kw_only=True)
class Ray:
    """What is asked of a Ray cluster; each is a word ``ray.NAME=VALUE``."""

    address: str | None = None
    """The cluster: ``auto`` finds one that runs; null starts one on this machine."""
    cpus: int = 1
    """Cores of a rank, or of a cell."""
    gpus: int = 0
    """GPUs of a rank, or of a cell."""
    restarts: int = 0
    """How often all ranks are started again when one is lost; the run goes on."""
    folder: Path = Path("jobs")
    """Where Ray Train keeps its notes of ranks; all machines must see it."""

    def __post_init__(self) -> None:
        require(self, "ray", sizes=["cpus"], not_negative=["gpus", "restarts"])

    @property
    def resources(self) -> dict[str, int]:
        """The resources of a rank by Ray's names, without those that are 0."""
        return {name: n for name, n in (("CPU", self.cpus), ("GPU", self.gpus)) if n}


def _connected(ray: Ray, count: int) -> Any:
    """Connects to a cluster that has room for ``count`` ranks or cells at once; returns Ray."""
    try:
        engine: Any = import_module("ray")
    except ImportError:
        raise MissingExtraError("ray", extra="ray", what="--launcher ray") from None
    own = {} if ray.address else {"num_cpus": max(os.cpu_count() or 1, count * ray.cpus)}
    try:
        if not engine.is_initialized():
            settings = {"include_dashboard": False, "logging_level": "warning", **own}
            engine.init(address=ray.address, **settings)
    except ConnectionError as error:
        raise UserError(f"ray.address={ray.address}: {error}") from None
    there = engine.cluster_resources()
    for name, each in ray.resources.items():
        if each * count > there.get(name, 0):  # Ray itself would wait forever
            engine.shutdown()
            raise UserError(
                f"{count} times {each} {name} were asked for, but the cluster has "
                f"{there.get(name, 0):g}. Ask for fewer, or set ray.{name.lower()}s lower."
            )
    return engine


def train_on_ray(given: Mapping[str, Any], ray: Ray, *, ranks: int, include: Sequence[str]) -> None:
    """Trains by several ranks and waits for them; all machines must see the recipe's files.

    A signal ends the ranks; the same command goes on from the last checkpoint. ``given`` are the
    arguments of :func:`textmill.runs.train.train`; modules to ``include`` are imported first.
    """
    engine = _connected(ray, ranks)
    train, by_torch = import_module("ray.train"), import_module("ray.train.torch")
    trainer = by_torch.TorchTrainer(
        _rank,
        train_loop_config={"given": given, "include": [*include], "folder": os.getcwd()},
        scaling_config=train.ScalingConfig(
            num_workers=ranks, use_gpu=ray.gpus > 0, resources_per_worker=ray.resources
        ),
        run_config=train.RunConfig(
            storage_path=str(ray.folder.absolute()),
            failure_config=train.FailureConfig(max_failures=ray.restarts),
        ),
    )
    try:
        trainer.fit()
    except train.TrainingFailedError as error:
        last = str(error).strip().splitlines()[-1]
        raise RunError(f"The ranks failed, see above: {last}") from None
    finally:
        engine.shutdown()


def _rank(asked: Mapping[str, Any]) -> None:
    """Runs in each worker of Ray Train, which has made the group of ranks."""
    from textmill.runs.train import train

    os.chdir(asked["folder"])
    log_to_stderr(Env.detect("cpu").rank)
    with including(asked["include"]):
        train(**asked["given"])


class RayJob:
    """A command that was handed to Ray."""

    def __init__(self, engine: Any, task: Any) -> None:
        self._engine, self._task = engine, task
        self._code: int | None = None
        self._stopped = False

    def poll(self) -> int | None:
        """The exit code; 1 if it was lost, 143 if it was stopped; None before its end."""
        if self._code is None and self._engine.wait([self._task], timeout=0)[0]:
            try:
                self._code = self._engine.get(self._task)
            except self._engine.exceptions.RayError:
                self._code = 128 + signal.SIGTERM if self._stopped else 1
        return self._code

    def stop(self) -> None:
        self._stopped = True
        self._engine.cancel(self._task)

    kill = stop  # Ray would kill its own worker, and not the command


class RayJobs:
    """Hands commands to a Ray cluster, ``jobs`` at a time, or as many as it has room for."""

    def __init__(self, ray: Ray, *, jobs: int | None = None) -> None:
        self._engine = _connected(ray, 1)
        there = self._engine.cluster_resources()
        room = min(int(there[name] // each) for name, each in ray.resources.items())
        self.jobs = jobs or room
        asked = {"num_cpus": ray.cpus, "num_gpus": ray.gpus, "max_retries": 0}
        self._command = self._engine.remote(**asked)(_command)
        self.threads = ray.cpus

    def start(self, words: Sequence[str], log: Path, name: str) -> RayJob:
        """Hands over a command, whose output goes to ``log``."""
        given = [*words], os.getcwd(), str(log.absolute()), self.threads
        return RayJob(self._engine, self._command.options(name=name).remote(*given))


def _command(words: list[str], folder: str, log: str, threads: int) -> int:
    """Runs a process as a task of Ray; the process is asked to save when the task is stopped."""
    # Ray interrupts by SIGINT, which a driver in the background of a script lets tasks ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = None
    try:
        with Path(log).open("wb") as file:
            process = subprocess.Popen(  # noqa: S603  # the program that runs, without a shell
                [sys.executable, "-m", "textmill", *words],
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        while (code := process.poll()) is None:
            time.sleep(0.1)  # Ray interrupts between steps of Python, not in a wait
    except KeyboardInterrupt:
        if process is None:
            return 128 + signal.SIGTERM
        process.terminate()
        code = process.wait()
    return code
