"""The link between two hosts is cut in the middle of training: all end, and the run goes on."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.many_ranks import RankedRuns
from tests.runs.rank_kills import ENDED_WITHIN, TRAIN, lines_written, ranks_of, recipe
from tests.runs.tiny import alive, outcome, run_folder, unlike

MEET = ["--rdzv-backend=c10d", "--rdzv-endpoint=host-a:29500"]
AGENT = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--max-restarts=3"]

STRANGER = "02:00:00:00:00:99"
"""An address that no card on the link has: what is sent to it is lost, and nobody says so."""


class TwoHosts:
    """``host-a`` and ``host-b``, which reach each other, and nothing else, by one link."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("ip") is None or shutil.which("unshare") is None:
            pytest.skip("two hosts are made by 'ip' and 'unshare' (iproute2, util-linux)")
        self.spaces = [f"textmill-{os.getpid()}-{host}" for host in "ab"]
        self.names = folder / "hosts"
        self.names.write_text("127.0.0.1 localhost\n10.77.0.1 host-a\n10.77.0.2 host-b\n")

    def __enter__(self):
        one, other = self.spaces
        try:
            for space in self.spaces:
                ip("netns", "add", space)
            link = ["link", "add", "veth0", "netns", one, "type", "veth"]
            ip(*link, "peer", "name", "veth0", "netns", other)
            for number, space in enumerate(self.spaces, 1):
                ip("-n", space, "addr", "add", f"10.77.0.{number}/24", "dev", "veth0")
                for device in ("lo", "veth0"):
                    ip("-n", space, "link", "set", device, "up")
            subprocess.run(self.on(0, "true"), check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            self.__exit__()
            pytest.skip(f"two hosts cannot be made here: {error.stderr.strip()}")
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def on(self, number: int, *words: str) -> list[str]:
        """The words that run others on a host."""
        named = f"hostname host-{'ab'[number]} && mount --bind {self.names} /etc/hosts"
        inside = ["unshare", "--uts", "sh", "-c", f'{named} && exec "$@"', "sh"]
        return ["ip", "netns", "exec", self.spaces[number], *inside, *words]

    def cut(self, how: str) -> None:
        """Takes the link ``down`` on host-b, or loses all packets, ``silent``."""
        if how == "down":
            ip("-n", self.spaces[1], "link", "set", "veth0", "down")
            return
        for space, other in zip(self.spaces, ("10.77.0.2", "10.77.0.1"), strict=True):
            place = [other, "lladdr", STRANGER, "dev", "veth0", "nud", "permanent"]
            ip("-n", space, "neigh", "replace", *place)

    def mend(self, how: str) -> None:
        """Undoes it."""
        if how == "down":
            ip("-n", self.spaces[1], "link", "set", "veth0", "up")
            return
        for space, other in zip(self.spaces, ("10.77.0.2", "10.77.0.1"), strict=True):
            ip("-n", space, "neigh", "del", other, "dev", "veth0")


def ip(*words: str) -> None:
    """Runs ``ip``."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


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
            while lines_written(folder) < 3:
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
            assert lines_written(folder) < 20
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
