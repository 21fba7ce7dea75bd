"""``make results RESULTS=linear``: textmill's linear models beside others, on small sets."""

import inspect
import json
import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks.results import bag_of_words, linear
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.splits import NUMBERS, SIZES, SPLITS, Row, drawn
from benchmarks.results.table import markdown

BEGIN = "<!-- made by make results RESULTS=linear: begin -->"
END = "<!-- made by make results RESULTS=linear: end -->"
TEXTMILL = "textmill"
LINEAR, WORDS, FASTTEXT = "linear", "its words alone", "fastText"
COLUMNS = ("data", "rows", "seeds", LINEAR, WORDS, FASTTEXT, TEXTMILL, "±", "CPU", "")
CODE = (
    "textmill.models.label_losses",
    "textmill.models.layers.sparse_rows",
    "textmill.models.ngrams",
    "textmill.text.tokenizers.ngram_tokenizer",
    "textmill.training.optimizers.lbfgs",
    "textmill.training.schedules.decay",
)
"""The modules on which textmill's figures rest: those of other code are made anew."""


@dataclass(frozen=True)
class Cell:
    """One training part of one set."""

    split: str
    size: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.split}-{self.size or 'all'}-{self.seed}"

    @property
    def numbers(self) -> bool:
        """Whether texts have numbers, and no labels."""
        return self.split in NUMBERS

    @property
    def parts(self) -> "Mapping[str, Callable[..., Found]]":
        """What is measured; fastText gives no numbers."""
        return {k: v for k, v in PARTS.items() if not (self.numbers and k == FASTTEXT)}

    def value(self, answers: Sequence[str], dev: Sequence[Row]) -> float:
        """Accuracy of labels, correlation (Pearson) of numbers; in percent."""
        if not self.numbers:
            return 100 * sum(a == row[0] for a, row in zip(answers, dev, strict=True)) / len(dev)
        return 100 * statistics.correlation([*map(float, answers)], [float(row[0]) for row in dev])

    def rows(self, data: Path) -> tuple[list[Row], list[Row]]:
        """Those to train on, and those that score."""
        read = {**SPLITS, **NUMBERS}[self.split]
        return drawn(read(data, "train"), self.size, self.seed), read(data, "dev")


Found = tuple[list[str], float]
"""An answer for each dev row, and the CPU seconds of fitting."""


def of_linear(
    train: Sequence[Row], dev: Sequence[Row], *, words: bool, numbers: bool, **_: object
) -> Found:
    """TF-IDF and a linear model; the seconds are those of the features and one fit, its setting
    being known."""
    begun = time.process_time()
    texts = [[[row[i] for row in part] for i in range(1, len(train[0]))] for part in (train, dev)]
    fitted, transform = linear.features(texts[0], linear.WORDS if words else linear.BOTH)
    made = time.process_time() - begun
    targets = [row[0] for row in train]
    model, known = linear.chosen_model(fitted, targets, numbers=numbers)
    begun = time.process_time()
    model.fit(fitted, known)
    seconds = made + time.process_time() - begun
    return [*map(str, model.predict(transform(texts[1])).tolist())], seconds


def of_fasttext(train: Sequence[Row], dev: Sequence[Row], *, seed: int, **_: object) -> Found:
    """fastText's architecture; two texts are one with a mark between."""
    begun = time.process_time()
    texts = [[" </s> ".join(row[1:]) for row in part] for part in (train, dev)]
    labels = [row[0] for row in train]
    return bag_of_words.answers(texts[0], labels, texts[1], seed=seed), time.process_time() - begun


def of_textmill(
    train: Sequence[Row], dev: Sequence[Row], *, seed: int, numbers: bool, folder: Path
) -> Found:
    """The shipped experiment, its last weights: nothing is chosen by the dev rows.

    Its seconds are those of ``textmill.train``: checks, fitting, training, evaluating and saving.
    """
    import textmill

    shutil.rmtree(folder, ignore_errors=True)  # of a measurement that was interrupted
    folder.mkdir(parents=True)
    for name, rows in (("train", train), ("dev", dev)):
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    words = [f"train_data.path={folder / 'train.tsv'}", f"trainer.seed={seed}"]
    words += ["valid_data=null", "trainer.selection.metric=loss"]
    begun = time.process_time()
    run = textmill.train(_experiment(train, numbers=numbers), words, run_dir=folder / "run")
    seconds = time.process_time() - begun
    names = ["text"] if len(train[0]) == 2 else ["text1", "text2"]
    asked = [dict(zip(names, row[1:], strict=True)) for row in dev]
    answers = textmill.load(run.folder)(asked)
    if numbers:
        return [str(answer.number) for answer in answers], seconds
    return [answer.label for answer in answers], seconds


PARTS: Mapping[str, Callable[..., Found]] = {
    LINEAR: partial(of_linear, words=False),
    WORDS: partial(of_linear, words=True),
    FASTTEXT: of_fasttext,
    TEXTMILL: of_textmill,
}


def cells(seeds: int) -> Iterator[Cell]:
    """From the cheap ones to the dear ones."""
    for size in SIZES:
        for seed in range(1, seeds + 1):
            yield from (Cell(split, size, seed) for split in (*SPLITS, *NUMBERS))


def measure(data: Path, out: Path, ledger: Ledger, *, seeds: int) -> None:
    """Makes what is missing; a linear model of all rows is the same for every seed."""
    for cell in cells(seeds):
        train, dev = cell.rows(data)
        for part, found in cell.parts.items():
            if part in (LINEAR, WORDS) and not cell.size and cell.seed > 1:
                continue
            key = key_of({"train": train, "dev": dev, **_made_by(cell, part, train)})
            if ledger.find(cell.name, part, key):
                continue
            folder = out / "linear" / cell.name
            more = {"folder": folder} if part == TEXTMILL else {}
            answers, seconds = found(train, dev, seed=cell.seed, numbers=cell.numbers, **more)
            line = {"job": cell.name, "part": part, "key": key, "cpu_s": seconds}
            ledger.add({**line, "value": cell.value(answers, dev), "dev": len(dev)})


def _made_by(cell: Cell, part: str, train: Sequence[Row]) -> dict[str, str]:
    """What else a measurement depends on: its code, and of textmill its experiment's settings."""
    if part != TEXTMILL:
        return {"code": inspect.getsource(bag_of_words if part == FASTTEXT else linear)}
    from textmill.recipes.planning import plan_recipe

    plan = plan_recipe(_experiment(train, numbers=cell.numbers), targets=["trainer"]).plan
    code = "".join(inspect.getsource(import_module(name)) for name in CODE)
    return {"settings": json.dumps(plan.settings, default=str, sort_keys=True), "code": code}


def _experiment(train: Sequence[Row], *, numbers: bool) -> str:
    if numbers:
        return "regression/ngrams"
    return "pairs/ngrams" if len(train[0]) > 2 else "classification/ngrams"


def table(ledger: Ledger, seeds: int) -> str:
    """A row for each set and size that all parts have some seeds of; the means over them."""
    lines = {(line["job"], line["part"]): line for line in ledger.lines if "value" in line}
    rows = [
        row
        for split in (*SPLITS, *NUMBERS)
        for size in SIZES
        if (row := _row([Cell(split, size, seed) for seed in range(1, seeds + 1)], lines))
    ]
    columns = [[float(row[i]) for row in rows if row[0] in SPLITS] for i in range(3, 7)]
    means = [f"{statistics.mean(column):.2f}" if column else "" for column in columns]
    rows.append(["mean of accuracies", "", "", *means, "", "", ""])
    return "\n".join(markdown(COLUMNS, rows))


def _row(cells: Sequence[Cell], lines: Mapping[tuple[str, str], Line]) -> list[str] | None:
    """The means over the seeds that all have; a linear model of all rows has one for all seeds."""

    def found(cell: Cell, part: str) -> Line | None:
        same = not cell.size and part in (LINEAR, WORDS)
        return lines.get((cells[0].name if same else cell.name, part))

    parts = cells[0].parts
    made = [[found(cell, part) for part in parts] for cell in cells]
    whole = [[line for line in row if line] for row in made if all(row)]
    if not whole:
        return None
    by_part = dict(zip(parts, zip(*whole, strict=True), strict=True))
    means = {part: statistics.mean(line["value"] for line in by_part[part]) for part in parts}
    seconds = {part: statistics.mean(line["cpu_s"] for line in by_part[part]) for part in parts}
    best, rows = max(value for part, value in means.items() if part != TEXTMILL), whole[0][0]["dev"]
    error = _error(best / 100, rows, labels=not cells[0].numbers)
    values = [f"{means[part]:.2f}" if part in means else "" for part in PARTS]
    times = f"{seconds[TEXTMILL] / seconds[LINEAR]:.1f} times"
    verdict = "below" if means[TEXTMILL] < best - error else ""
    size = str(cells[0].size or "all")
    return [cells[0].split, size, str(len(whole)), *values, f"{error:.2f}", times, verdict]


def _error(value: float, rows: int, *, labels: bool) -> float:
    """The standard error, in percent, of a share, or of a correlation (Bowley 1928)."""
    variance = value * (1 - value) / rows if labels else (1 - value**2) ** 2 / (rows - 1)
    return float(100 * math.sqrt(variance))


def main(data: Path, out: Path, page: Path, *, seeds: int) -> None:
    """Measures what is missing and writes the table into the page."""
    from benchmarks.results.table import write

    ledger = Ledger(out / "linear.jsonl")
    try:
        measure(data, out, ledger, seeds=seeds)
    finally:
        write(page, table(ledger, seeds), begin=BEGIN, end=END)
