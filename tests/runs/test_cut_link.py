"""The link between two hosts is cut in the middle of training: all end, and the run goes on."""

import os
import re
import subprocess
import sys
import time

import pytest

from tests.runs.many_ranks import RankedRuns
from tests.runs.rank_kills import ENDED_WITHIN, TRAIN, lines, ranks_of, recipe
from tests.runs.tiny import alive, outcome, run_folder, unlike
from tests.runs.two_hosts import TwoHosts

MEET = ["--rdzv-backend=c10d", "--rdzv-endpoint=host-a:29500"]
AGENT = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--max-restarts=3"]


def started(hosts, way, folder, *more):
    """A process on each host: a rank, or torchrun for one."""
    processes = []
    for number in range(2):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        words = [sys.executable, *AGENT, *MEET, *more, *TRAIN]
        if way == "by hand":
            words = [sys.executable, *TRAIN]
            environment |= {"RANK": str(number), "WORLD_SIZE": "2"}
            environment |= {"MASTER_ADDR": "host-a", "MASTER_PORT": "29500"}
        with (folder / f"said-{number}").open("ab") as log:
            words = hosts.on(number, *words)
            processes.append(
                subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)
            )
    return processes


def seconds_until_all_ended(processes, began):
    while any(map(alive, processes)):
        time.sleep(0.05)
        assert time.monotonic() - began < 2 * ENDED_WITHIN
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("way", ["by hand", "torchrun"])
@pytest.mark.parametrize("how", ["down", "silent"])
def test_a_link_that_is_cut_ends_all_and_the_run_goes_on(tmp_path, how, way):
    with RankedRuns() as runs:
        codes, said = runs.run(recipe(tmp_path / "wanted"), "train", "tiny.py", size=2)
    assert codes == [0, 0], said
    folder = recipe(tmp_path / "cut")
    with TwoHosts(tmp_path) as hosts:
        processes = started(hosts, way, folder)
        try:
            while lines(folder) < 3:
                assert all(process.poll() is None for process in processes)
                time.sleep(0.001)
            ranks = dict(enumerate(process.pid for process in processes))
            if way == "torchrun":
                ranks = ranks_of(ranks[0]) | ranks_of(ranks[1])
            hosts.cut(how)
            assert seconds_until_all_ended(ranks.values(), time.monotonic()) < ENDED_WITHIN
            for number in range(2):
                said = (folder / f"said-{number}").read_text()
                other = 1 - number
                named = (
                    rf"error: rank {other} \(process {ranks[other]} on host-{'ab'[other]}\) died"
                )
                assert len(re.findall(named, said)) == 1, said
            assert lines(folder) < 20
            hosts.mend(how)
            if way == "by hand":
                assert [process.wait() for process in processes] == [1, 1]
                processes = started(hosts, way, folder)
            assert [process.wait(120) for process in processes] == [0, 0]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert unlike(outcome(run_folder(tmp_path / "wanted")), outcome(run_folder(folder))) == []
