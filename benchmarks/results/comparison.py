"""``make results RESULTS=comparison``: beside spaCy, scikit-learn, Hugging Face and Ludwig.

What a newcomer types for each tool is in ``benchmarks/comparison``, a folder for each job and tool:
``train.sh`` makes a model of ``train.csv`` (or ``train.conll``), ``answer.sh`` answers ``new.csv``
with it. No tool sees the rows that score. spaCy and Ludwig have environments of their own:
``SPACY_PYTHON`` and ``LUDWIG_PYTHON`` name their Pythons. A seed is an order of the training rows.
"""

import csv
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.results import scores
from benchmarks.results.found import FailedError
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.measuring import encoder, say
from benchmarks.results.scores import Score
from benchmarks.results.table import markdown, write

HERE = Path(__file__).parents[1] / "comparison"
PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"
BEGIN = "<!-- made by make results RESULTS=comparison: begin -->"
END = "<!-- made by make results RESULTS=comparison: end -->"
LIMIT = 3600
"""Seconds that a training may take."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A library that the table compares."""

    name: str
    """In the table."""
    packages: Sequence[str]
    """What is installed for it."""
    model: str = "model"
    """Where a training leaves its model."""
    answers: str = "prediction"
    """The column of the answers."""
    python: str = ""
    """The environment variable that names its Python; else it is the one that runs this."""

    @property
    def program(self) -> str | None:
        """Its Python; None where that is not named."""
        return os.environ.get(self.python) if self.python else sys.executable

    def ready(self) -> bool:
        """Whether it is there; says so where it is not."""
        if self.program is None:
            say(f"{self.name}: left out, {self.python} names no Python that has it")
        return self.program is not None


SCIKIT_LEARN = Tool(name="scikit-learn", packages=("scikit-learn",), model="model.joblib")
TOOLS: Mapping[str, Tool] = {
    "textmill": Tool(name="textmill", packages=("textmill[train]",)),
    "scikit_learn": SCIKIT_LEARN,
    "scikit_learn_searched": SCIKIT_LEARN,
    "spacy": Tool(
        name="spaCy", packages=("spacy",), model="model/model-best", python="SPACY_PYTHON"
    ),
    "ludwig": Tool(
        name="Ludwig",
        packages=("ludwig",),
        model="results/experiment_run/model",
        answers="label_predictions",
        python="LUDWIG_PYTHON",
    ),
    "hugging_face": Tool(
        name="Hugging Face", packages=("transformers", "accelerate", "datasets", "torch")
    ),
}
"""By the folder's name."""
WHAT = {
    ("classify", "textmill"): "n-grams, as `new` proposes",
    ("classify", "scikit_learn"): "words, LogisticRegression",
    ("classify", "scikit_learn_searched"): "words and letters, LinearSVC, C searched",
    ("classify", "spacy"): "`textcat`, as `init config` writes it",
    ("classify", "ludwig"): "`embed`, as its guide sets it",
    ("names", "textmill"): "`tagging/ner`, as `new` proposes",
    ("names", "spacy"): "`ner`, as `init config` writes it",
    ("encoder", "textmill"): "`classification/pretrained`",
    ("encoder", "hugging_face"): "Trainer, as its guide sets it",
}
"""The model that each trains."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A job on a set of data."""

    job: str
    """The folder below ``benchmarks/comparison``."""
    data: str
    seeds: int
    most: int | None = None
    """Training rows; None: all."""

    @property
    def spans(self) -> bool:
        return self.job == "names"

    def rows(self, data: Path, part: str) -> list[tuple[str, str]]:
        """Labels and texts; of names, a text's lines twice."""
        path = data / self.data / f"{part}.{'conll' if self.spans else 'tsv'}"
        text = path.read_text(encoding="utf-8")
        if self.spans:
            return [(block, block) for block in text.strip().split("\n\n")]
        table = (line.split("\t") for line in text.splitlines() if line.strip())
        return [(row[0], row[1]) for row in table]

    def tools(self) -> list[str]:
        return [tool for tool in TOOLS if (HERE / self.job / tool).is_dir()]


JOBS = {
    "classify": "Texts of a CSV file, by their labels",
    "encoder": "The same from a pretrained encoder, all-MiniLM-L6-v2",
    "names": "Names in texts",
}
"""What the tables are called."""
TASKS = (
    Task(job="classify", data="sms-spam", seeds=3),
    Task(job="classify", data="snips", seeds=3),
    Task(job="encoder", data="sms-spam", seeds=1, most=1000),
    Task(job="names", data="wnut17", seeds=1, most=1500),
)


@dataclass(frozen=True)
class Bench:
    """Where measurements are made and kept."""

    data: Path
    out: Path
    ledger: Ledger


def written_lines(job: str, tool: str) -> int:
    """The lines that a user writes: no empty ones, and no comments."""
    files = [file for file in (HERE / job / tool).iterdir() if file.is_file()]
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return sum(bool(line.strip()) and not line.startswith("#") for line in lines)


def environment(tool: Tool, home: Path) -> dict[str, str]:
    """One thread, no network, the tool's programs first, and caches that nobody else has filled."""
    program = Path(tool.program or sys.executable)
    fixed = dict.fromkeys(("OMP", "MKL", "OPENBLAS", "RAYON"), "1")
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **({"PYTHONPATH": str(HERE.parents[1] / "src")} if tool.name == "textmill" else {}),
        **{f"{name}_NUM_THREADS": value for name, value in fixed.items()},
        "PATH": os.pathsep.join([str(program.parent), os.environ.get("PATH", "")]),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(home / ".huggingface"),
        "TEXTMILL_CACHE": str(home / ".textmill"),
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
    }


def timed(words: Sequence[str], home: Path, tool: Tool) -> tuple[str, Line]:
    """Runs a command; what it printed, its seconds, and the MB of its largest process.

    Raises:
        FailedError: It ended with an error, or took too long.
    """
    watch, log = machine.Watch(), home / "log.txt"
    with log.open("a", encoding="utf-8") as errors:
        done = subprocess.run(
            [sys.executable, "-S", str(HERE / "used.py"), str(LIMIT), *words],
            check=False,
            cwd=home,
            env=environment(tool, home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    printed, _, used = done.stdout.rstrip().rpartition("\n")
    if done.returncode:
        last = (log.read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"])[-1]
        raise FailedError(f"{tool.name}, {' '.join(words)}: ended with {done.returncode}: {last}")
    return printed.strip(), {**watch.read(), **json.loads(used)}


def prepare(task: Task, bench: Bench, tool: str, seed: int, home: Path) -> list[tuple[str, str]]:
    """Writes what a training finds in its folder; the rows that score."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(HERE / task.job / tool, home)
    train, dev = (task.rows(bench.data, part) for part in ("train", "dev"))
    random.Random(seed).shuffle(train)
    train = train[: task.most]
    if task.spans:
        (home / "train.conll").write_text("".join(f"{text}\n\n" for _, text in train), "utf-8")
        (home / "new.conll").write_text("".join(f"{text}\n\n" for _, text in dev), "utf-8")
    else:
        for name, header, rows in (
            ("train.csv", ("label", "text"), train),
            ("new.csv", ("text",), [(text,) for _, text in dev]),
        ):
            with (home / name).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([header, *rows])
    if task.job == "encoder":
        (home / "encoder").symlink_to(encoder())
    shutil.copy(HERE / "ask.py", home / ".ask.py")
    texts = [" ".join(words_of(text)) if task.spans else text for _, text in dev]
    (home / ".texts.json").write_text(json.dumps(texts), encoding="utf-8")
    return dev


def words_of(block: str) -> list[str]:
    """The words of a text of a CoNLL file."""
    return [line.split("\t")[0] for line in block.splitlines()]


def scored(task: Task, tool: Tool, home: Path, dev: Sequence[tuple[str, str]]) -> Score:
    """The score of the answers that a tool has written.

    Raises:
        FailedError: There is not an answer for each row.
    """
    if task.spans:
        gold = [[line.split("\t")[-1] for line in block.splitlines()] for block, _ in dev]
        found = [row.split() for row in (home / "answers.txt").read_text("utf-8").splitlines()]
        if [len(row) for row in found] != [len(row) for row in gold]:
            raise FailedError(f"{tool.name}: wanted a tag for each word of {len(gold)} texts.")
        return scores.span_f1(gold, found, "bio")
    paths = [home / "answers.csv", *home.glob(f"answers/*{tool.answers}*.csv")]
    with next(path for path in paths if path.is_file()).open(newline="", encoding="utf-8") as file:
        table = list(csv.reader(file))
    if tool.answers in table[0]:
        place = table.pop(0).index(tool.answers)
        answers = [row[place] for row in table]
    else:
        answers = [row[-1] for row in table]
    if len(answers) != len(dev):
        raise FailedError(f"{tool.name}: wanted {len(dev)} answers, found {len(answers)}.")
    return scores.accuracy([label for label, _ in dev], answers)


def size_of(path: Path) -> float:
    """Megabytes of a file, or of a folder's."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def key(task: Task, bench: Bench, tool: str) -> str:
    """Of what is typed, of the data, and of how it is measured."""
    files = sorted([*(HERE / task.job / tool).iterdir(), HERE / "ask.py"])
    of_files = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
    rows = [task.rows(bench.data, part) for part in ("train", "dev")]
    return key_of({"files": of_files, "rows": rows, "some": task.most or 0})


def measure(task: Task, bench: Bench, tool: str, seed: int) -> Line:
    """Trains a tool's model, asks it, and scores its answers.

    Raises:
        FailedError: One of its commands failed.
    """
    of_tool, home = TOOLS[tool], bench.out / "comparison" / f"{task.job}-{task.data}-{tool}"
    dev = prepare(task, bench, tool, seed, home)
    _, train = timed(["bash", "-e", "train.sh"], home, of_tool)
    _, answer = timed(["bash", "-e", "answer.sh"], home, of_tool)
    score = scored(task, of_tool, home, dev)
    asked = [str(of_tool.program), ".ask.py", tool, ".texts.json"]
    printed, asking = timed(asked, home, of_tool)
    asks: Mapping[str, Any] = json.loads(printed.splitlines()[-1])
    wanted = [str(of_tool.program), str(HERE / "installed.py"), *of_tool.packages]
    installed = json.loads(timed(wanted, home, of_tool)[0].splitlines()[-1])
    model_mb = size_of(home / of_tool.model)
    shutil.rmtree(home)
    return {
        "score": score.value,
        "standard_error": score.standard_error,
        "train": train,
        "answer": answer,
        "asks": {**asks, "peak_mb": asking["peak_mb"]},
        "installed": installed,
        "model_mb": model_mb,
        "rows": len(dev),
    }


COLUMNS = (
    "", "model", "lines", "score", "seeds", "training, s", "MB", "first answer, s",
    "one, ms", "rows a second", "model, MB",
)  # fmt: skip


def tables(bench: Bench) -> str:
    """A table for each task, then what is installed for each tool."""
    parts, used, measured = list[str](), dict[str, Line](), list[Line]()
    for task in (task for task in TASKS if (bench.data / task.data).is_dir()):
        found = list[list[str]]()
        for tool in task.tools():
            known = key(task, bench, tool)
            lines = (
                bench.ledger.find(name_of(task), f"{tool}-{seed}", known)
                for seed in range(1, task.seeds + 1)
            )
            if lines := [line for line in lines if line]:
                found.append(row(task, tool, lines))
                used.setdefault(TOOLS[tool].name, lines[-1])
                measured += lines
        if found:
            parts += [title(task, bench), "", *markdown(COLUMNS, found), ""]
    if not parts:
        return "Nothing was measured."
    days = sorted({line["when"][:10] for line in measured})
    others = statistics.mean(line["train"]["others"] for line in measured)
    told = f"Measured on {' to '.join(dict.fromkeys((days[0], days[-1])))}; other processes used "
    parts += [f"{told}{others:.1f} cores on average.", ""]
    columns = ("", "versions", "packages", "MB", "torch, MB")
    return "\n".join([*parts, *markdown(columns, map(installed_row, used.items()))])


def title(task: Task, bench: Bench) -> str:
    """What is above a table."""
    train, dev = (len(task.rows(bench.data, part)) for part in ("train", "dev"))
    train = min(train, task.most or train)
    return f"**{JOBS[task.job]}**: {task.data}, {train:,} rows to train on, {dev:,} that score"


def name_of(task: Task) -> str:
    return f"{task.job}: {task.data}"


def row(task: Task, tool: str, lines: Sequence[Line]) -> list[str]:
    """Medians over the seeds; the mean of the scores."""

    def middle(part: str, name: str) -> float:
        return statistics.median(line[part][name] for line in lines)

    values = [line["score"] for line in lines]
    error = statistics.mean(line["standard_error"] for line in lines)
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return [
        TOOLS[tool].name,
        WHAT[task.job, tool],
        str(written_lines(task.job, tool)),
        f"{statistics.mean(values):.2f} ± {error:.2f}",
        f"{len(values)}{spread}",
        f"{middle('train', 'cpu_s'):,.1f}",
        f"{middle('train', 'peak_mb'):,.0f}",
        f"{middle('asks', 'first_s'):.1f}",
        f"{middle('asks', 'ms'):.2f}",
        f"{middle('asks', 'rows_s'):,.0f}",
        f"{statistics.median(line['model_mb'] for line in lines):.1f}",
    ]


def installed_row(item: tuple[str, Line]) -> list[str]:
    name, line = item
    found = line["installed"]
    versions = ", ".join(" ".join(each) for each in found["versions"].items())
    sizes = [f"{found[part]:,.0f}" if found[part] else "" for part in ("mb", "torch_mb")]
    return [name, versions, str(found["packages"]), *sizes]


def turns(seeds: int, names: Sequence[str]) -> Iterator[tuple[Task, str, int]]:
    """All tools of a task in turn, seed after seed."""
    for seed in range(1, seeds + 1):
        for task in (task for task in TASKS if not names or {task.job, task.data} & {*names}):
            yield from ((task, tool, seed) for tool in task.tools() if seed <= task.seeds)


def main(
    data: Path,
    out: Path,
    page: Path,
    *,
    seeds: int,
    names: Sequence[str] = (),
    measured: bool = True,
) -> list[str]:
    """Measures what is missing, where ``measured``, and writes the tables; what failed.

    ``names`` are jobs and sets of data, all where there is none.
    """
    bench, failed = Bench(data, out, Ledger(out / "comparison.jsonl")), list[str]()
    here = {name for name, tool in TOOLS.items() if measured and tool.ready()}
    try:
        for task, tool, seed in turns(seeds, names):
            if tool not in here or not (data / task.data).is_dir():
                continue
            part, known = f"{tool}-{seed}", key(task, bench, tool)
            if bench.ledger.find(name_of(task), part, known):
                continue
            say(f"{name_of(task)}: {part}")
            try:
                line = measure(task, bench, tool, seed)
            except FailedError as error:
                say(str(error))
                failed.append(str(error))
                continue
            bench.ledger.add({"job": name_of(task), "part": part, "key": known, **line})
    finally:
        write(page, tables(bench), begin=BEGIN, end=END)
    return failed
