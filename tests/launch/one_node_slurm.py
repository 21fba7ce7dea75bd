"""A Slurm of one node, this machine: its daemons run while a test does."""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.runs.many_ranks import free_port

DAEMONS = ("munged", "slurmctld", "slurmd")
PLACES = f"{os.environ['PATH']}:/usr/sbin:/sbin"
SETTINGS = """
ClusterName=textmill
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
# A job that is queued again waits until the credentials of its first start expire: else 120 s.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 CoresPerSocket=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing_daemons() -> list[str]:
    """Programs of Slurm that this machine lacks."""
    return [name for name in (*DAEMONS, "sbatch") if shutil.which(name, path=PLACES) is None]


class OneNodeSlurm:
    """Two cores; without accounting. SLURM_CONF names its settings to Slurm's commands."""

    def __init__(self, monkeypatch) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # a socket's path is to be short
        self.daemons: list[subprocess.Popen] = []
        monkeypatch.setenv("SLURM_CONF", str(self.folder / "slurm.conf"))

    def __enter__(self):
        place = {"folder": self.folder, "host": socket.gethostname(), "user": getpass.getuser()}
        text = SETTINGS.format(**place, ports=[free_port(), free_port()])
        (self.folder / "slurm.conf").write_text(text)
        for name in ("state", "spool"):
            (self.folder / name).mkdir(mode=0o700)
        (self.folder / "key").write_bytes(os.urandom(128))
        (self.folder / "key").chmod(0o600)
        munge = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        files = [
            f"--{name if name == 'socket' else f'{name}-file'}={p}" for name, p in munge.items()
        ]
        try:
            self._start(
                "munged", "--foreground", "--force", f"--key-file={self.folder}/key", *files
            )
            self._until(munge["socket"].exists)
            self._start("slurmctld", "-D")
            self._start("slurmd", "-D")
            self._until(lambda: self.said("sinfo", "--noheader", "--format=%t") == "idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with suppress(subprocess.SubprocessError):
            self.said("scancel", "--full", "--signal=KILL", "--user", getpass.getuser())
            self.said("scancel", "--user", getpass.getuser())
            self._until(lambda: self.said("squeue", "--noheader") == "", seconds=10)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder)

    def said(self, *words: str) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip()

    def _start(self, name: str, *words: str) -> None:
        program = shutil.which(name, path=PLACES)
        with (self.folder / f"{name}.out").open("wb") as log:
            self.daemons.append(subprocess.Popen([program, *words], stdout=log, stderr=log))

    def _until(self, true, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            said = "".join(path.read_text() for path in self.folder.glob("*.out"))
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
