"""Slurm's commands as scripts: a job waits in a folder until the test lets it run."""

import os
import subprocess
import sys
from pathlib import Path

SBATCH = """#!{python} -IS
import os, sys
from pathlib import Path
queue, script = Path({queue!r}), Path(sys.argv[1])
number = str(4711 + len([*queue.glob("*.sh")]))
name = next(line for line in script.read_text().splitlines() if "--job-name=" in line)
(queue / (number + ".sh")).write_text(script.read_text().replace("%j", number))
(queue / (number + ".job")).write_text("|".join(
    [number, "PENDING", os.getcwd(), str(script), name.partition("=")[2].strip("'")]) + chr(10))
print("Submitted batch job " + number)
"""
SQUEUE = """#!/bin/sh
echo "$*" >> {queue}/asked
test -e {queue}/fails && echo "Unable to contact slurm controller" >&2 && exit 1
test -e {queue}/hangs && exec sleep 30
cat {queue}/*.job 2>/dev/null
exit 0
"""
SRUN = """#!/bin/sh
out="$(echo "$3" | sed s/%t/0/)"
err="$(echo "$5" | sed s/%t/0/)"
shift 5
exec "$@" > "$out" 2> "$err"
"""
SCANCEL = """#!/bin/sh
rm {queue}/$1.job
"""
SACCT = """#!/bin/sh
echo "JobID|State|NodeList"
"""


class FakeSlurm:
    """Commands first on the PATH; what was handed over, and what still waits."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.queue = folder / "queue"
        self.queue.mkdir(parents=True)
        scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "srun": SRUN}
        scripts |= {"sacct": SACCT, "scancel": SCANCEL}
        for name, text in scripts.items():
            said = text.format(python=sys.executable, queue=str(self.queue))
            (folder / name).write_text(said)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    @property
    def handed_over(self) -> list[str]:
        """The numbers of all jobs."""
        return sorted(path.stem for path in self.queue.glob("*.sh"))

    @property
    def waiting(self) -> list[str]:
        """The numbers of those that have not ended and were not cancelled."""
        return sorted(path.stem for path in self.queue.glob("*.job"))

    def end(self, number: str) -> None:
        """Takes a job out of the queue."""
        (self.queue / f"{number}.job").unlink()

    def run(self, number: str) -> None:
        """Runs a job that waits, to its end."""
        job = self.queue / f"{number}.job"
        job.write_text(job.read_text().replace("PENDING", "RUNNING"))
        names = ["SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_JOB_NUM_NODES", "SLURM_NODEID"]
        names += ["SLURM_PROCID", "SLURM_LOCALID"]
        values = [number, "1", "1", "0", "0", "0"]
        here = {**os.environ, **dict(zip(names, values, strict=True))}
        here["SLURM_JOB_NODELIST"] = "localhost"
        folder = job.read_text().split("|")[2]
        words = ["bash", self.queue / f"{number}.sh"]
        subprocess.run(words, env=here, cwd=folder, check=False)
        self.end(number)
