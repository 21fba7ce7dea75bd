"""``make results RESULTS=linear``: weft's linear models beside others, on small sets."""

import json
import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.results import bag_of_words, linear
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.splits import SIZES, SPLITS, Row, drawn
from benchmarks.results.table import markdown

BEGIN = "<!-- made by make results RESULTS=linear: begin -->"
END = "<!-- made by make results RESULTS=linear: end -->"
WEFT = "weft"
COLUMNS = ("data", "rows", "LinearSVC", "its words alone", "fastText", "weft", "±", "CPU", "")


@dataclass(frozen=True)
class Cell:
    """One training part of one set."""

    split: str
    size: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.split}-{self.size or 'all'}-{self.seed}"

    def rows(self, data: Path) -> tuple[list[Row], list[Row]]:
        """Those to train on, and those that score."""
        read = SPLITS[self.split]
        return drawn(read(data, "train"), self.size, self.seed), read(data, "dev")


Found = tuple[list[str], float]
"""An answer for each dev row, and the CPU seconds of fitting."""


def of_linear(train: Sequence[Row], dev: Sequence[Row], *, words: bool, **_: object) -> Found:
    """TF-IDF and LinearSVC; the seconds are those of the features and one fit, C being known."""
    from sklearn.svm import LinearSVC

    begun = time.process_time()
    texts = [[[row[i] for row in part] for i in range(1, len(train[0]))] for part in (train, dev)]
    fitted, transform = linear.features(texts[0], linear.WORDS if words else linear.BOTH)
    made = time.process_time() - begun
    labels = [row[0] for row in train]
    cost = linear.best_cost(fitted, labels)
    begun = time.process_time()
    model = LinearSVC(random_state=0, C=cost).fit(fitted, labels)
    seconds = made + time.process_time() - begun
    return model.predict(transform(texts[1])).tolist(), seconds


def of_fasttext(train: Sequence[Row], dev: Sequence[Row], *, seed: int, **_: object) -> Found:
    """fastText's architecture; two texts are one with a mark between."""
    begun = time.process_time()
    texts = [[" </s> ".join(row[1:]) for row in part] for part in (train, dev)]
    labels = [row[0] for row in train]
    return bag_of_words.answers(texts[0], labels, texts[1], seed=seed), time.process_time() - begun


def of_weft(train: Sequence[Row], dev: Sequence[Row], *, seed: int, folder: Path) -> Found:
    """The shipped experiment, its last weights: nothing is chosen by the dev rows.

    Its seconds are those of ``weft.train``: checks, fitting, training, evaluating and saving.
    """
    import weft

    shutil.rmtree(folder, ignore_errors=True)  # of a measurement that was interrupted
    folder.mkdir(parents=True)
    for name, rows in (("train", train), ("dev", dev)):
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    words = [f"train_data.path={folder / 'train.tsv'}", f"trainer.seed={seed}"]
    words += ["valid_data=null", "trainer.selection.metric=loss"]
    begun = time.process_time()
    run = weft.train(_experiment(train), words, run_dir=folder / "run")
    seconds = time.process_time() - begun
    names = ["text"] if len(train[0]) == 2 else ["text1", "text2"]
    asked = [dict(zip(names, row[1:], strict=True)) for row in dev]
    return [answer.label for answer in weft.load(run.folder)(asked)], seconds


PARTS: Mapping[str, Callable[..., Found]] = {
    "LinearSVC": partial(of_linear, words=False),
    "its words alone": partial(of_linear, words=True),
    "fastText": of_fasttext,
    WEFT: of_weft,
}


def cells(seeds: int) -> Iterator[Cell]:
    """From the cheap ones to the dear ones."""
    for size in SIZES:
        for seed in range(1, seeds + 1):
            yield from (Cell(split, size, seed) for split in SPLITS)


def measure(data: Path, out: Path, ledger: Ledger, *, seeds: int) -> None:
    """Makes what is missing; a linear model of all rows is the same for every seed."""
    for cell in cells(seeds):
        train, dev = cell.rows(data)
        for part, found in PARTS.items():
            if part in ("LinearSVC", "its words alone") and not cell.size and cell.seed > 1:
                continue
            key = key_of({"train": train, "dev": dev, **_made_by(part, train)})
            if ledger.find(cell.name, part, key):
                continue
            folder = out / "linear" / cell.name
            more = {"folder": folder} if part == WEFT else {}
            answers, seconds = found(train, dev, seed=cell.seed, **more)
            right = sum(a == row[0] for a, row in zip(answers, dev, strict=True))
            line = {"job": cell.name, "part": part, "key": key, "cpu_s": seconds}
            ledger.add({**line, "value": 100 * right / len(dev), "dev": len(dev)})


def _made_by(part: str, train: Sequence[Row]) -> dict[str, str]:
    """What else a measurement depends on: of weft the settings of its experiment."""
    if part != WEFT:
        return {}
    from weft.recipes.planning import plan_recipe

    settings = plan_recipe(_experiment(train), targets=["trainer"]).plan.settings
    return {"settings": json.dumps(settings, default=str, sort_keys=True)}


def _experiment(train: Sequence[Row]) -> str:
    return "pairs/ngrams" if len(train[0]) > 2 else "classification/ngrams"


def table(ledger: Ledger, seeds: int) -> str:
    """A row for each set and size: means over seeds; what is below the best other by how much."""
    lines = {(line["job"], line["part"]): line for line in ledger.lines if "value" in line}
    rows = []
    for split in SPLITS:
        for size in SIZES:
            names = [Cell(split, size, seed).name for seed in range(1, seeds + 1)]
            made = {part: _of(lines, part, names) for part in PARTS}
            if all(made.values()):
                rows.append(_row(split, size, made))
    means = [statistics.mean(float(row[i]) for row in rows) for i in range(2, 6)] if rows else []
    rows.append(["mean", "", *(f"{mean:.2f}" for mean in means), "", "", ""])
    return "\n".join(markdown(COLUMNS, rows))


def _of(lines: Mapping[tuple[str, str], Line], part: str, names: Sequence[str]) -> list[Line]:
    return [line for name in names if (line := lines.get((name, part)))]


def _row(split: str, size: int, made: Mapping[str, Sequence[Line]]) -> list[str]:
    means = {part: statistics.mean(line["value"] for line in found) for part, found in made.items()}
    seconds = {
        part: statistics.mean(line["cpu_s"] for line in found) for part, found in made.items()
    }
    best = max(value for part, value in means.items() if part != WEFT)
    error = 100 * math.sqrt(best / 100 * (1 - best / 100) / made[WEFT][0]["dev"])
    times = seconds[WEFT] / seconds["LinearSVC"]
    verdict = "below" if means[WEFT] < best - error else ""
    values = [f"{means[part]:.2f}" for part in PARTS]
    return [split, str(size or "all"), *values, f"{error:.2f}", f"{times:.1f} times", verdict]


def main(data: Path, out: Path, page: Path, *, seeds: int) -> None:
    """Measures what is missing and writes the table into the page."""
    from benchmarks.results.table import write

    ledger = Ledger(out / "linear.jsonl")
    try:
        measure(data, out, ledger, seeds=seeds)
    finally:
        write(page, table(ledger, seeds), begin=BEGIN, end=END)
