"""Several processes of one run on this machine, by the machinery of torchrun."""

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from textmill.errors import RankLostError
from textmill.runtime.devices import usable_cores
from textmill.runtime.ranks import LAST_END

LOG = logging.getLogger("textmill")
TORCH_LOGS = ("multiprocessing.api", "agent.server.api")
"""Logs of torch's launcher, whose messages are for developers."""


class _Restarts(logging.Filter):
    """Replaces messages of torch's launcher: names the process that failed, and why."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.count, self.most = 0, most

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg.startswith("failed (exitcode") and isinstance(record.args, tuple):
            code, rank, process = record.args[:3]
            self.count += 1
            how = _ended(rank, process, code)
            killed = isinstance(code, int) and code < 0  # else it has printed why itself
            os.environ[LAST_END] = how if killed else ""
            if self.count <= self.most:
                again = f"restart {self.count} of at most {self.most}"
                LOG.warning("%s All processes start again: %s.", how, again)
        return False


def _ended(rank: object, process: object, code: Any) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return f"Rank {rank} (process {process}) {how}."


def launch(words: Sequence[str], *, nproc: int, max_restarts: int = 0) -> int:
    """Runs ``textmill`` with some words in ``nproc`` processes, each with a rank.

    If one fails, all are ended, and started again up to ``max_restarts`` times. The cores are
    divided among them, unless OMP_NUM_THREADS is set. Returns the exit code.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // nproc)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=nproc,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=max_restarts,
    )
    restarts = _Restarts(max_restarts)
    torch_logs = [logging.getLogger(f"torch.distributed.elastic.{name}") for name in TORCH_LOGS]
    for log in torch_logs:
        log.addFilter(restarts)
    try:
        elastic_launch(config, sys.executable)("-P", "-m", "textmill", *words)
    except SignalException as error:  # the processes got it, too, and have saved
        return 128 + int(error.sigval)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:
            return int(failure.exitcode)  # it has printed why
        raise RankLostError(
            f"{_ended(rank, failure.pid, failure.exitcode)} The others were ended. The same "
            "command goes on from the last checkpoint; with --max-restarts it does so by itself."
        ) from None
    finally:
        for log in torch_logs:
            log.removeFilter(restarts)
    return 0
