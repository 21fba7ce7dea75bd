"""Slurm's commands as scripts: a job waits in a folder until the test lets it run."""

import os
import subprocess
import sys
from pathlib import Path

SBATCH = """#!{python} -IS
import os, sys
from pathlib import Path
queue, script = Path({queue!r}), sys.stdin.read()
number = str(4711 + len([*queue.glob("*.sh")]))
name = next(line for line in script.splitlines() if "--job-name=" in line)
(queue / (number + ".sh")).write_text(script)
(queue / (number + ".job")).write_text("|".join(
    [number, "PENDING", os.getcwd(), name.partition("=")[2].strip("'")]) + chr(10))
print(number)
"""
SQUEUE = """#!/bin/sh
echo "$*" >> {queue}/asked
test -e {queue}/fails && echo "Unable to contact slurm controller" >&2 && exit 1
test -e {queue}/hangs && exec sleep 30
cat {queue}/*.job 2>/dev/null
exit 0
"""
SCANCEL = """#!/bin/sh
rm {queue}/$1.job
"""
SCONTROL = """#!/bin/sh
echo "$*" >> {queue}/requeued
"""


class FakeSlurm:
    """Commands first on the PATH; what was handed over, and what still waits."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.queue = folder / "queue"
        self.queue.mkdir(parents=True)
        scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL, "scontrol": SCONTROL}
        for name, text in scripts.items():
            said = text.format(python=sys.executable, queue=str(self.queue))
            (folder / name).write_text(said)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    @property
    def handed_over(self) -> list[str]:
        """The numbers of all jobs."""
        return sorted(path.stem for path in self.queue.glob("*.sh"))

    def end(self, number: str) -> None:
        """Takes a job out of the queue."""
        (self.queue / f"{number}.job").unlink()

    def start(self, number: str) -> subprocess.Popen:
        """Runs a job that waits, in its session."""
        job = self.queue / f"{number}.job"
        job.write_text(job.read_text().replace("PENDING", "RUNNING"))
        text = (self.queue / f"{number}.sh").read_text()
        log = next(x for x in text.splitlines() if "--output=" in x).partition("=")[2]
        with open(log.replace("%j", number), "a") as file:
            return subprocess.Popen(
                ["bash", self.queue / f"{number}.sh"], env={**os.environ, "SLURM_JOB_ID": number},
                stdout=file, stderr=file,
            )  # fmt: skip
