"""``make results RESULTS=linear``: textmill's linear models beside scikit-learn's, on small sets.

A nested cross-validation: the rows of a set are halved, and each half is answered by models of the
other half, or of 500 or 2,000 rows of it. What a model has to choose (C) it chooses inside these.
"""

import inspect
import json
import math
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from benchmarks.results import linear
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.splits import NUMBERS, SPLITS, Row, drawn
from benchmarks.results.table import markdown

BEGIN = "<!-- made by make results RESULTS=linear: begin -->"
END = "<!-- made by make results RESULTS=linear: end -->"
SVC, LOGISTIC, RIDGE, TEXTMILL = "LinearSVC", "LogisticRegression", "Ridge", "textmill"
COLUMNS = (
    "data",
    "training rows",
    "test rows",
    SVC,
    LOGISTIC,
    TEXTMILL,
    "difference",
    "±",
    "CPU s",
    "",
)
SIZES = (500, 2000, 0)
"""Rows of a training part; 0: all there are."""
HALVES = (0, 1)
MOST_ASKED = 2000
"""Rows of a half that are answered."""
FEATURES = (linear.BOTH[0], {"ngram_range": (3, 5), "analyzer": "char"})
"""Words and pairs of words, and pieces of 3 to 5 characters, each of length 1 in a text."""
CODE = (
    "textmill.models.ngrams",
    "textmill.text.tokenizers.ngram_tokenizer",
    "textmill.models.linear_solver",
    "textmill.training.linear_trainer",
)
"""The modules on which textmill's figures rest: those of other code are made anew."""


@dataclass(frozen=True)
class Cell:
    """One training part of one set, and the half that it is asked."""

    split: str
    size: int
    half: int

    @property
    def name(self) -> str:
        return f"{self.split}-{self.size or 'all'}-{self.half}"

    @property
    def numbers(self) -> bool:
        """Whether texts have numbers, and no labels."""
        return self.split in NUMBERS

    @property
    def parts(self) -> "Mapping[str, Callable[..., Found]]":
        """What is measured."""
        references = (RIDGE,) if self.numbers else (SVC, LOGISTIC)
        made: dict[str, Callable[..., Found]] = {
            name: partial(of_scikit_learn, model=name) for name in references
        }
        return {**made, TEXTMILL: partial(of_textmill, numbers=self.numbers)}

    def rows(self, data: Path) -> tuple[list[Row], list[Row]]:
        """Those to train on, and those that score; no text is in both."""
        rows = shuffled(data, self.split)
        asked, others = (rows[half :: len(HALVES)] for half in (self.half, 1 - self.half))
        return drawn(others, self.size, self.half), asked[:MOST_ASKED]

    def values(self, answers: Sequence[str], rows: Sequence[Row]) -> list[float]:
        """What each row adds to the value, whose mean is accuracy, or R² of numbers; in percent."""
        pairs = zip(answers, rows, strict=True)
        if not self.numbers:
            return [100.0 * (answer == row[0]) for answer, row in pairs]
        spread = statistics.pvariance([float(row[0]) for row in rows])
        return [100 * (1 - (float(answer) - float(row[0])) ** 2 / spread) for answer, row in pairs]


Found = tuple[list[str], float]
"""An answer for each row that is asked, and the CPU seconds of fitting."""


@cache
def shuffled(data: Path, split: str) -> list[Row]:
    """The rows of a set in an order by chance, each text once."""
    read = {**SPLITS, **NUMBERS}[split](data)
    tidy = (tuple(" ".join(cell.split()) for cell in row) for row in read)
    by_text = {row[1:]: row for row in tidy if all(row)}
    rows = [*by_text.values()]
    random.Random(0).shuffle(rows)
    return rows


def of_scikit_learn(
    train: Sequence[Row], asked: Sequence[Row], *, model: str, **_: object
) -> Found:
    """TF-IDF and a linear model, whose setting is the best in folds of its training rows."""
    begun = time.process_time()
    texts = [[[row[i] for row in part] for i in range(1, len(train[0]))] for part in (train, asked)]
    fitted, transform = linear.features(texts[0], FEATURES)
    chosen = linear.chosen_model(model, fitted, [row[0] for row in train])
    seconds = time.process_time() - begun
    return [*map(str, chosen.predict(transform(texts[1])).tolist())], seconds


def of_textmill(
    train: Sequence[Row], asked: Sequence[Row], *, numbers: bool, folder: Path
) -> Found:
    """The shipped experiment as it is.

    Its seconds are those of ``textmill.train``: checks, fitting, solving and saving.
    """
    import textmill

    shutil.rmtree(folder, ignore_errors=True)  # of a measurement that was interrupted
    folder.mkdir(parents=True)
    text = "".join("\t".join(row) + "\n" for row in train)
    (folder / "train.tsv").write_text(text, encoding="utf-8")
    words = [f"train_data.path={folder / 'train.tsv'}", *SETTINGS]
    begun = time.process_time()
    run = textmill.train(_experiment(train, numbers=numbers), words, run_dir=folder / "run")
    seconds = time.process_time() - begun
    names = ["text"] if len(train[0]) == 2 else ["text1", "text2"]
    answers = textmill.load(run.folder)([dict(zip(names, row[1:], strict=True)) for row in asked])
    shutil.rmtree(folder)
    if numbers:
        return [str(answer.number) for answer in answers], seconds
    return [answer.label for answer in answers], seconds


SETTINGS = ("valid_data=null", "reporters.html=false", "reporters.console=false")
"""Nothing is measured while it trains."""


def cells() -> Iterator[Cell]:
    """From the cheap ones to the dear ones."""
    for size in SIZES:
        for split in (*NUMBERS, *SPLITS):
            yield from (Cell(split, size, half) for half in HALVES)


def measure(data: Path, out: Path, ledger: Ledger) -> None:
    """Makes what is missing; a size that all rows hardly exceed is left out."""
    for cell in cells():
        train, asked = cell.rows(data)
        if 0 < len(shuffled(data, cell.split)) // len(HALVES) < 1.2 * cell.size:
            continue
        for part, found in cell.parts.items():
            key = key_of({"train": train, "asked": asked, **_made_by(cell, part, train)})
            if ledger.find(cell.name, part, key):
                continue
            more = {"folder": out / "linear" / cell.name} if part == TEXTMILL else {}
            answers, seconds = found(train, asked, **more)
            values = [round(value, 4) for value in cell.values(answers, asked)]
            line = {"job": cell.name, "part": part, "key": key, "cpu_s": round(seconds, 2)}
            ledger.add({**line, "rows": len(train), "values": values})
            print(f"{cell.name} {part}: {statistics.mean(values):.2f} ({seconds:.1f} s)")


def _made_by(cell: Cell, part: str, train: Sequence[Row]) -> dict[str, str]:
    """What else a measurement depends on: its code, and of textmill its experiment's settings."""
    if part != TEXTMILL:
        return {"code": inspect.getsource(linear)}
    from textmill.recipes.planning import plan_recipe

    plan = plan_recipe(_experiment(train, numbers=cell.numbers), targets=["trainer"]).plan
    code = "".join(inspect.getsource(import_module(name)) for name in CODE)
    return {"settings": json.dumps(plan.settings, default=str, sort_keys=True), "code": code}


def _experiment(train: Sequence[Row], *, numbers: bool) -> str:
    if numbers:
        return "regression/ngrams"
    return "pairs/ngrams" if len(train[0]) > 2 else "classification/ngrams"


@dataclass(frozen=True)
class Compared:
    """A row of the table: what was measured of a set with a number of rows."""

    cell: Cell
    lines: Mapping[str, Sequence[Line]]
    """Of both halves, by the part."""

    def values(self, part: str) -> list[float]:
        return [value for line in self.lines[part] for value in line["values"]]

    @property
    def means(self) -> dict[str, float]:
        return {part: statistics.mean(self.values(part)) for part in self.lines}

    @property
    def differences(self) -> list[float]:
        """Of each row that was asked, to the better of the others."""
        means = self.means
        best = max((part for part in means if part != TEXTMILL), key=means.__getitem__)
        both = zip(self.values(TEXTMILL), self.values(best), strict=True)
        return [own - other for own, other in both]

    @property
    def difference(self) -> float:
        return statistics.mean(self.differences)

    @property
    def error(self) -> float:
        """The standard error of the difference, the same rows being asked."""
        return statistics.stdev(self.differences) / math.sqrt(len(self.differences))

    @property
    def cells(self) -> list[str]:
        means, cell = self.means, self.cell
        first = RIDGE if cell.numbers else SVC
        rows = max(line["rows"] for line in self.lines[TEXTMILL])
        seconds = {
            part: statistics.mean(line["cpu_s"] for line in lines)
            for part, lines in self.lines.items()
        }
        return [
            cell.split,
            f"{rows:,}",
            f"{len(self.values(TEXTMILL)):,}",
            f"{means[first]:.2f}",
            f"{means[LOGISTIC]:.2f}" if LOGISTIC in means else "",
            f"{means[TEXTMILL]:.2f}",
            f"{self.difference:+.2f}",
            f"{self.error:.2f}",
            f"{seconds[TEXTMILL]:.1f} / {seconds[first]:.1f}",
            "below" if self.difference < -self.error else "",
        ]


def compared(ledger: Ledger) -> Iterator[Compared]:
    """What was measured of both halves by all parts."""
    lines = {(line["job"], line["part"]): line for line in ledger.lines if "values" in line}
    for split in (*SPLITS, *NUMBERS):
        for size in SIZES:
            halves = [Cell(split, size, half) for half in HALVES]
            found = {
                part: [lines[cell.name, part] for cell in halves if (cell.name, part) in lines]
                for part in halves[0].parts
            }
            if all(len(of_part) == len(HALVES) for of_part in found.values()):
                yield Compared(halves[0], found)


def table(ledger: Ledger) -> str:
    """A row for each set and size, and the mean difference of those with labels."""
    every = [*compared(ledger)]
    rows = [row.cells for row in every]
    labelled = [row.difference for row in every if not row.cell.numbers]
    if labelled:
        mean = f"{statistics.mean(labelled):+.2f}"
        rows.append(["mean over the sets with labels", *[""] * 5, mean, "", "", ""])
    return "\n".join(markdown(COLUMNS, rows))


def main(data: Path, out: Path, page: Path, *, measured: bool = True) -> None:
    """Measures what is missing, prints the table and writes it into the page."""
    from benchmarks.results.table import write

    ledger = Ledger(out / "linear.jsonl")
    try:
        if measured:
            measure(data, out, ledger)
    finally:
        made = table(ledger)
        print(made)
        write(page, made, begin=BEGIN, end=END)
