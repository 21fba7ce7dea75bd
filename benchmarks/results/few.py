"""``make results RESULTS=few``: classifiers from 8 and 16 rows a label, all with one encoder.

Each seed draws other rows of a training part; at most 700 rows of the dev part score. No rows
choose weights: textmill trains with ``valid_data=null``. The encoder is all-MiniLM-L6-v2.
"""

import json
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.measuring import encoder, say
from benchmarks.results.splits import Row, Table, drawn, of_table
from benchmarks.results.table import markdown, write

BEGIN = "<!-- made by make results RESULTS=few: begin -->"
END = "<!-- made by make results RESULTS=few: end -->"
SETS: Mapping[str, Table] = {
    "sms-spam": of_table("sms-spam", 0, 1),
    "snips": of_table("snips", 0, 1),
    "top-en domains": of_table("top-en", 0, 1),
}
SIZES = (8, 16)
"""Rows of each label."""
SCORED = 700
"""Most rows of a dev part that score."""
FROZEN, PRETRAINED, FEW = "logistic regression", "classification/pretrained", "classification/few"
WANTED = 5.0
"""Points that textmill's recipe for few rows should be above ``classification/pretrained``."""


class Cell(NamedTuple):
    """One drawing of rows of one set."""

    name: str
    size: int
    seed: int

    @property
    def job(self) -> str:
        return f"{self.name}-{self.size}-{self.seed}"

    def rows(self, data: Path) -> tuple[list[Row], list[Row]]:
        """Those to train on, and those that score."""
        rows = list(dict.fromkeys(SETS[self.name](data)))
        random.Random(self.seed).shuffle(rows)
        by_label = dict[str, list[Row]]()
        for row in rows:
            by_label.setdefault(row[0], []).append(row)
        train = [row for label in sorted(by_label) for row in by_label[label][: self.size]]
        return train, drawn(SETS[self.name](data, "dev"), SCORED, 0)


def of_frozen(train: Sequence[Row], texts: Sequence[str], **_: Any) -> list[str]:
    """scikit-learn's ``LogisticRegression`` of the encoder's vectors, which stay as they are."""
    from sklearn.linear_model import LogisticRegression

    import textmill

    vectors = textmill.load_encoder(encoder()).embed
    model = LogisticRegression().fit(vectors([row[1] for row in train]), [row[0] for row in train])
    answers: list[str] = model.predict(vectors(texts)).tolist()
    return answers


def of_textmill(
    train: Sequence[Row],
    texts: Sequence[str],
    *,
    seed: int,
    folder: Path,
    experiment: str,
    more: Sequence[str] = (),
) -> list[str]:
    """The shipped experiment, with its last weights."""
    import textmill

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "train.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in train), encoding="utf-8")
    words = [f"model.encoder.path={encoder()}", f"train_data.path={path}", "valid_data=null"]
    words += [f"trainer.seed={seed}", "reporters.console=false", *more]
    run = textmill.train(experiment, words, run_dir=folder / "run")
    answers = [answer.label for answer in textmill.load(run.folder)([*texts])]
    shutil.rmtree(folder)
    return answers


MORE: Mapping[str, Sequence[str]] = {PRETRAINED: ("trainer.max_epochs=25",), FEW: ()}
"""What is set beside the paths: a hundred rows want 25 epochs (docs/pretrained.md)."""
PARTS: Mapping[str, Callable[..., list[str]]] = {
    FROZEN: of_frozen,
    **{name: partial(of_textmill, experiment=name, more=more) for name, more in MORE.items()},
}


def cells(seeds: int) -> Iterator[Cell]:
    """From the cheap ones to the dear ones."""
    for size in SIZES:
        yield from (Cell(name, size, seed) for name in SETS for seed in range(1, seeds + 1))


def measure(data: Path, out: Path, ledger: Ledger, *, seeds: int, parts: Sequence[str]) -> None:
    """Makes what is missing."""
    from textmill.recipes.planning import plan_recipe

    for cell in cells(seeds):
        train, dev = cell.rows(data)
        for part in parts:
            settings: Any = {}
            if part != FROZEN:
                settings = plan_recipe(part, [*MORE[part]], targets=["trainer"]).plan.settings
            made_by = json.dumps(settings, default=str, sort_keys=True)
            key = key_of({"rows": [train, dev], "part": part, "settings": made_by})
            if ledger.find(cell.job, part, key):
                continue
            say(f"{cell.job}: {part}")
            begun = time.process_time()
            texts = [row[1] for row in dev]
            folder = out / "few" / cell.job / part
            answers = PARTS[part](train, texts, seed=cell.seed, folder=folder)
            right = sum(a == row[0] for a, row in zip(answers, dev, strict=True))
            values = {"accuracy": 100 * right / len(dev), "cpu_s": time.process_time() - begun}
            ledger.add({"job": cell.job, "part": part, "key": key, **values})


def table(ledger: Ledger, seeds: int) -> str:
    """A row for each set and size that all parts have some seeds of: means, standard errors."""
    rows = []
    for name in SETS:
        for size in SIZES:
            jobs = [c.job for c in cells(seeds) if (c.name, c.size) == (name, size)]
            whole = ledger.of_all(jobs, PARTS)
            if whole:
                rows.append(_row(name, size, whole))
    columns = ("data", "rows a label", "seeds", *PARTS, "above pretrained", "CPU s", "reached")
    return "\n".join(markdown(columns, rows))


def _row(name: str, size: int, whole: Sequence[Sequence[Line]]) -> list[str]:
    by_part = [[float(line["accuracy"]) for line in lines] for lines in zip(*whole, strict=True)]
    gains = [few - tuned for few, tuned in zip(by_part[2], by_part[1], strict=True)]
    seconds = [statistics.mean(each[part]["cpu_s"] for each in whole) for part in (1, 2)]
    shown = [_mean(values) for values in (*by_part, gains)]
    reached = "yes" if statistics.mean(gains) >= WANTED else "no"
    times = " / ".join(f"{second:.0f}" for second in seconds)
    return [name, str(size), str(len(whole)), *shown, times, reached]


def _mean(values: Sequence[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {error:.2f}"


def main(
    data: Path, out: Path, page: Path, *, seeds: int, measured: bool, parts: Sequence[str] = ()
) -> None:
    """Measures what is missing, if asked to, and writes the table into the page."""
    ledger = Ledger(out / "few.jsonl")
    try:
        if measured:
            measure(data, out, ledger, seeds=seeds, parts=parts or [*PARTS])
    finally:
        write(page, table(ledger, seeds), begin=BEGIN, end=END)
