"""``make results RESULTS=intents``: the intents of a joint model beside models of intents alone.

All three have the same rows: SNIPS, and top-en with the domain or the outermost intent of a parse
and its outermost slots. A tenth of a training part chooses the joint model's step, and is left out
for the others, too; the dev part only scores.
"""

import json
import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results import linear
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.splits import Part, Row, drawn, of_table
from benchmarks.results.table import markdown

BEGIN = "<!-- made by make results RESULTS=intents: begin -->"
END = "<!-- made by make results RESULTS=intents: end -->"
LINEAR, NGRAMS, JOINT = "LinearSVC", "classification/ngrams", "joint/bilstm-crf"
COLUMNS = (
    "data",
    "rows",
    "seeds",
    LINEAR,
    NGRAMS,
    JOINT,
    "±",
    "F1 of slots",
    "frames",
    "CPU s",
    "",
)
SEEDS: Mapping[int, int] = {500: 3, 2000: 2, 0: 1}
"""Training parts of each size; 0: all rows."""


def outermost(tree: str) -> tuple[str, list[str], list[str]]:
    """The intent of a parse of top-en, its words, and their tags by the slots of that intent.

    Example:
        >>> outermost("[IN:GET how is [SL:PLACE [IN:HOME my home ] ] now ]")
        ('GET', ['how', 'is', 'my', 'home', 'now'], ['O', 'O', 'B-PLACE', 'I-PLACE', 'O'])
    """
    words, tags, nodes, begins = [], [], list[str](), True
    intent = tree.split()[0].removeprefix("[IN:")
    for mark in tree.split():
        if mark.startswith(("[IN:", "[SL:")):
            nodes.append(mark[4:])
            begins = begins or len(nodes) == 2
        elif mark == "]":
            nodes.pop()
        else:
            words.append(mark)
            tags.append("O" if len(nodes) < 2 else f"{'B' if begins else 'I'}-{nodes[1]}")
            begins = len(nodes) < 2
        begins = begins or len(nodes) < 2
    return intent, words, tags


def of_parses(data: Path, part: Part, *, domains: bool) -> list[Row]:
    """Rows of label, text and tags."""
    rows = []
    for domain, tree in of_table("top-en", 0, 2)(data, part):
        intent, words, tags = outermost(tree)
        rows.append((domain if domains else intent, " ".join(words), " ".join(tags)))
    return rows


SETS: Mapping[str, Callable[[Path, Part], list[Row]]] = {
    "snips": of_table("snips", 0, 1, 2),
    "top-en domains": partial(of_parses, domains=True),
    "top-en intents": partial(of_parses, domains=False),
}


class Cell(NamedTuple):
    """One training part of one set."""

    name: str
    size: int
    seed: int

    @property
    def job(self) -> str:
        return f"{self.name}-{self.size or 'all'}-{self.seed}"

    def rows(self, data: Path) -> tuple[list[Row], list[Row], list[Row]]:
        """Those to train on, those that choose a step, and those that score."""
        read = SETS[self.name]
        part = drawn(read(data, "train"), self.size or 10**9, self.seed)
        return part[: -(len(part) // 10)], part[-(len(part) // 10) :], read(data, "dev")


def of_linear(train: Sequence[Row], _: Sequence[Row], dev: Sequence[Row], **__: Any) -> Line:
    """TF-IDF and a LinearSVC, its cost by folds of the training rows."""
    texts = [[[row[1] for row in part]] for part in (train, dev)]
    fitted, transform = linear.features(texts[0], linear.BOTH)
    model = linear.chosen_model(LINEAR, fitted, [row[0] for row in train])
    answers = model.predict(transform(texts[1])).tolist()
    right = sum(a == row[0] for a, row in zip(answers, dev, strict=True))
    return {"intents": 100 * right / len(dev)}


def of_textmill(
    train: Sequence[Row],
    choose: Sequence[Row],
    dev: Sequence[Row],
    *,
    seed: int,
    folder: Path,
    experiment: str,
) -> Line:
    """The shipped experiment, scored once on the dev rows by the weights that it chose."""
    import textmill

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, rows in (("train", train), ("choose", choose), ("dev", dev)):
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    columns = "[label,text,slots]" if experiment == JOINT else "{label: 0, text: 1}"
    words = [f"train_data.path={folder / 'train.tsv'}", f"train_data.columns={columns}"]
    words += [f"valid_data.path={folder / 'choose.tsv'}", f"trainer.seed={seed}"]
    run = textmill.train(experiment, words, run_dir=folder / "run")
    scored = textmill.evaluate(run.folder, [f"valid_data.path={folder / 'dev.tsv'}"])
    values = scored["valid_data"].values
    if experiment != JOINT:
        return {"intents": 100 * values["accuracy"]}
    names = {"intents": "intent_accuracy", "slots": "slot_f1", "frames": "frame_accuracy"}
    return {name: 100 * values[value] for name, value in names.items()}


PARTS: Mapping[str, Callable[..., Line]] = {
    LINEAR: of_linear,
    NGRAMS: partial(of_textmill, experiment=NGRAMS),
    JOINT: partial(of_textmill, experiment=JOINT),
}


def cells(seeds: int) -> Iterator[Cell]:
    """From the cheap ones to the dear ones."""
    for size, most in SEEDS.items():
        for seed in range(1, min(seeds, most) + 1):
            yield from (Cell(name, size, seed) for name in reversed(SETS))


def measure(data: Path, out: Path, ledger: Ledger, *, seeds: int) -> None:
    """Makes what is missing."""
    from textmill.recipes.planning import plan_recipe

    for cell in cells(seeds):
        parts = cell.rows(data)
        for part, found in PARTS.items():
            settings = (
                {} if part == LINEAR else plan_recipe(part, targets=["trainer"]).plan.settings
            )
            made_by = json.dumps(settings, default=str, sort_keys=True)
            key = key_of({"rows": parts, "part": part, "settings": made_by})
            if ledger.find(cell.job, part, key):
                continue
            begun = time.process_time()
            values = found(*parts, seed=cell.seed, folder=out / "intents" / cell.job)
            more = {"cpu_s": time.process_time() - begun, "dev": len(parts[2])}
            ledger.add({"job": cell.job, "part": part, "key": key, **more, **values})


def table(ledger: Ledger, seeds: int) -> str:
    """A row for each set and size that all parts have some seeds of; the means over them."""
    rows = []
    for name in SETS:
        for size in SEEDS:
            jobs = [c.job for c in cells(seeds) if (c.name, c.size) == (name, size)]
            whole = ledger.of_all(jobs, PARTS)
            if whole:
                rows.append(_row(name, size, whole))
    return "\n".join(markdown(COLUMNS, rows))


def _row(name: str, size: int, whole: Sequence[Sequence[Line]]) -> list[str]:
    def mean(part: int, value: str) -> float:
        return statistics.mean(float(each[part][value]) for each in whole)

    means = [mean(part, "intents") for part in range(3)]
    best = max(means[:2]) / 100
    error = 100 * math.sqrt(best * (1 - best) / whole[0][0]["dev"])
    verdict = "below" if means[2] < 100 * best - error else ""
    values = [f"{value:.2f}" for value in (*means, error, mean(2, "slots"), mean(2, "frames"))]
    return [name, str(size or "all"), str(len(whole)), *values, f"{mean(2, 'cpu_s'):.0f}", verdict]


def main(data: Path, out: Path, page: Path, *, seeds: int, measured: bool) -> None:
    """Measures what is missing, if asked to, and writes the table into the page."""
    from benchmarks.results.table import write

    ledger = Ledger(out / "intents.jsonl")
    try:
        if measured:
            measure(data, out, ledger, seeds=seeds)
    finally:
        write(page, table(ledger, seeds), begin=BEGIN, end=END)
