"""``make results RESULTS=references``: the fields of references, beside CRFsuite on the same rows.

Three trainings of ``tagging/references``: on all sets together under Cora's labels, which is the
model to use; on Cora; and on AnyStyle, under its own labels. No weights are chosen by rows that
score: the last ones do.
"""

import importlib
import inspect
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results import crf, files, scores
from benchmarks.results.ledger import Ledger, Line, key_of
from benchmarks.results.measuring import say
from benchmarks.results.table import markdown, write
from examples.prepare_references import LABELS, read, row_of, same

BEGIN = "<!-- made by make results RESULTS=references: begin -->"
END = "<!-- made by make results RESULTS=references: end -->"
EXPERIMENT = "tagging/references"
CODE = (
    "textmill.models.crf",
    "textmill.models.encoders.lstm",
    "textmill.models.layers.word_embeddings",
    "textmill.models.tagger",
    "textmill.text.features.spelling",
)
"""The modules on which textmill's figures rest: those of other code are made anew."""
OF_CORA = 503
"""AnyStyle's file begins with the references of Cora, its test part among them: where they end."""
COLUMNS = (
    "trained on",
    "scored on",
    "figure",
    "CRFsuite",
    "textmill",
    "difference",
    "reached",
    "CPU s",
)
FIELDS = ("field", "words", "CRFsuite", "textmill")
SPEEDS = ("all sets", "called with", "references per CPU second", "≥ 100")
WANTED = 2.0
"""Standard errors of the difference that textmill should be above CRFsuite, on the same rows."""
EVERY = "all of these"
LEADING = ("citation-number", "note")
"""What AnyStyle's rows, and others, call the label that a reference begins with."""

Row = dict[str, list[str]]
"""``tokens`` and ``tags``."""


@dataclass(frozen=True)
class Block:
    """Rows to train on, and sets of rows to score on."""

    name: str
    train: Sequence[Row]
    dev: Mapping[str, Sequence[Row]]

    @cached_property
    def asked(self) -> list[list[str]]:
        """The words of all rows that score, set by set."""
        return [row["tokens"] for rows in self.dev.values() for row in rows]

    def parts(self) -> Iterator[tuple[str, slice, list[list[str]]]]:
        """Each set and, of several, all together: where its rows are, and their tags."""
        gold = [row["tags"] for rows in self.dev.values() for row in rows]
        begun = 0
        for name, rows in self.dev.items():
            own = slice(begun, begun := begun + len(rows))
            yield name, own, gold[own]
        if len(self.dev) > 1:
            yield EVERY, slice(None), gold


@dataclass(frozen=True)
class MacroF1:
    """The mean over the fields of the F1 of their words."""

    right: NDArray[np.float64]
    """Words that are right, of each row and field."""
    both: NDArray[np.float64]
    """Words that are a field's and that were given to it."""

    @classmethod
    def of(cls, gold: scores.Tags, found: scores.Tags) -> "MacroF1":
        names = sorted({tag for row in gold for tag in row})
        right = np.zeros((len(gold), len(names)))
        both = np.zeros_like(right)
        for row, (wanted, given) in enumerate(zip(gold, found, strict=True)):
            for place, name in enumerate(names):
                there, said = ([tag == name for tag in tags] for tags in (wanted, given))
                right[row, place] = sum(a and b for a, b in zip(there, said, strict=True))
                both[row, place] = sum(there) + sum(said)
        return cls(right, both)

    def drawn(self, times: NDArray[Any]) -> float:
        """The score of rows that are there so many times each."""
        right, both = times @ self.right, times @ self.both
        return 100 * float((2 * right[both > 0] / both[both > 0]).mean())

    @property
    def value(self) -> float:
        return self.drawn(np.ones(len(self.right)))


def drawn(score: scores.Score | MacroF1, times: NDArray[Any]) -> float:
    """A score of rows that are there so many times each."""
    if isinstance(score, MacroF1):
        return score.drawn(times)
    return 100 * float((times @ score.above) / max(times @ score.below, 1e-9))


def more(base: scores.Score | MacroF1, own: Sequence[Any], rows: int) -> tuple[float, float]:
    """By how much some seeds' scores are above another's in the mean, and the standard error.

    The error is that of resamples of the rows, the same ones for all.
    """

    def difference(times: NDArray[Any]) -> float:
        return statistics.mean(drawn(one, times) for one in own) - drawn(base, times)

    chance = np.random.default_rng(0)
    counts = (
        np.bincount(chance.integers(rows, size=rows), minlength=rows)
        for _ in range(scores.RESAMPLES)
    )
    return difference(np.ones(rows)), float(np.std([difference(times) for times in counts]))


FIGURES: Mapping[str, Callable[..., Any]] = {
    "words": scores.token_accuracy,
    "F1 of fields": partial(scores.span_f1, scheme="io"),
    "macro F1 of words": MacroF1.of,
    "whole references": scores.whole_rows,
}


def blocks(data: Path, made: Path) -> list[Block]:
    """What is trained and scored; a tenth of each set but Cora, which has a dev part, scores.

    The rows that score in the first block are in no training part, under whatever labels.
    """
    folder = data / "refstrings"
    cora = [of_file(folder / f"cora.{part}.jsonl") for part in ("train", "dev")]
    anystyle = files.divided(folder / "anystyle.core.jsonl", made)
    whole = [(row, same_row(row)) for row in map(json.loads, lines(folder / "anystyle.core.jsonl"))]
    of_cora = {name for _, name in whole[:OF_CORA]}
    sets = {"cora": cora}
    for name in ("flux-cim-cs", "iconip"):
        folds = of_file(folder / f"{name}.jsonl"), map(json.loads, lines(folder / f"{name}.jsonl"))
        parts: list[list[Row]] = [[], []]
        for row, known in zip(*folds, strict=True):
            parts[known["fold"] == 0].append(row)
        sets[name] = parts
    sets["anystyle"] = [
        [row for row in of_file(path) if same_row(row) not in of_cora]
        for path in (anystyle.train, anystyle.dev)
    ]
    dev = {name: parts[1] for name, parts in sets.items()}
    scored = {same_row(row) for rows in dev.values() for row in rows}
    train = {same_row(row): row for parts in sets.values() for row in reversed(parts[0])}
    own = [[*map(json.loads, lines(path))] for path in (anystyle.train, anystyle.dev)]
    return [
        Block("all sets", [row for name, row in train.items() if name not in scored], dev),
        Block("cora", cora[0], {"cora": cora[1]}),
        Block("anystyle, its labels", own[0], {"anystyle": own[1]}),
    ]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def of_file(path: Path) -> list[Row]:
    """The references of a file with Cora's labels."""
    return [json.loads(row_of(reference)) for reference in read(path)]


def same_row(row: Row) -> str:
    return same([("", word) for word in row["tokens"]])


# -- measuring


def of_crfsuite(block: Block, **_: Any) -> list[list[str]]:
    """What CRFsuite answers."""
    words, tags = ([row[name] for row in block.train] for name in ("tokens", "tags"))
    with tempfile.TemporaryDirectory(prefix="textmill-crf-") as folder:
        tag = crf.fitted(words, tags, Path(folder, "crf"))
        return [tag(words) for words in block.asked]


def of_textmill(block: Block, *, seed: int, folder: Path) -> list[list[str]]:
    """What the pipeline answers with the experiment's last weights."""
    import textmill
    from textmill.pipelines import ReferenceParser

    shutil.rmtree(folder, ignore_errors=True)  # of a measurement that was interrupted
    folder.mkdir(parents=True)
    rows = "".join(f"{json.dumps(row)}\n" for row in block.train)
    (folder / "train.jsonl").write_text(rows, encoding="utf-8")
    words = [f"train_data.path={folder / 'train.jsonl'}", f"trainer.seed={seed}"]
    words += ["valid_data=null", "trainer.selection.metric=loss"]
    run = textmill.train(EXPERIMENT, words, run_dir=folder / "run")
    found = ReferenceParser(run.folder)([" ".join(words) for words in block.asked])
    # A label that a reference begins with is no word of it to a parser, and is one in the rows.
    known = {tag for row in block.train for tag in row["tags"]}
    label = next(tag for tag in LEADING if tag in known)
    lacking = [len(words) - len(one.tags) for words, one in zip(block.asked, found, strict=True)]
    return [[label] * n + [*one.tags] for n, one in zip(lacking, found, strict=True)]


def measure(ledger: Ledger, block: Block, out: Path, *, seeds: int) -> None:
    """Makes what is missing of a block."""
    for part, seed in [("CRFsuite", 0), *(("textmill", seed) for seed in range(1, seeds + 1))]:
        key = key_for(block, part, seed)
        if ledger.find(block.name, part, key):
            continue
        say(f"references, {block.name}: {part}{f', seed {seed}' if seed else ''}")
        begun = time.process_time()
        answer = of_textmill if seed else of_crfsuite
        found = answer(block, seed=seed, folder=run_folder(block, out, seed))
        line = {"job": block.name, "part": part, "key": key, "seed": seed}
        ledger.add({**line, "cpu_s": time.process_time() - begun, "answers": found})


def run_folder(block: Block, out: Path, seed: int) -> Path:
    """Where the rows and the run of a seed are."""
    return out / "references" / block.name.replace(" ", "-").replace(",", "") / str(seed)


def key_for(block: Block, part: str, seed: int) -> str:
    """Of the rows and the code; of textmill the experiment's settings and the seed, too."""
    made: dict[str, Any] = {"train": block.train, "dev": block.dev, "seed": seed}
    if part == "CRFsuite":
        return key_of({**made, "code": inspect.getsource(crf)})
    from textmill.recipes.planning import plan_recipe

    plan = plan_recipe(EXPERIMENT, targets=["trainer"]).plan
    code = [inspect.getsource(importlib.import_module(name)) for name in CODE]
    return key_of({**made, "settings": plan.settings, "code": code})


TOGETHER, LEAST = 256, 3.0
"""References that are asked at once, and seconds of CPU that a speed is measured for."""


def measure_speed(ledger: Ledger, block: Block, out: Path) -> None:
    """References a second of CPU through the pipeline, by the first seed's run and its export."""
    from textmill.pipelines import ReferenceParser
    from textmill.runs.export import export

    run = run_folder(block, out, 1) / "run"
    key = key_of({"block": key_for(block, "textmill", 1), "code": inspect.getsource(measure_speed)})
    if ledger.find(block.name, "speed", key):
        return
    say("references: speed")
    made = run / "export" / "onnx"
    folder = made if made.is_dir() else export(run, "onnx").folder
    texts = [" ".join(row["tokens"]) for row in block.train][:TOGETHER]
    speeds = []
    for name, model in (("run", run), ("export", folder)):
        for size in (1, TOGETHER):
            asked = [texts[n : n + size] for n in range(0, len(texts), size)]
            speeds.append([name, size, a_second(ReferenceParser(model), asked)])
    ledger.add({"job": block.name, "part": "speed", "key": key, "speeds": speeds})


def a_second(answer: Callable[[list[str]], Sequence[Any]], asked: Sequence[list[str]]) -> float:
    """Texts a second of CPU whose fields are found, after one turn that is not counted."""
    done, begun = 0, 0.0
    while not begun or time.process_time() - begun < LEAST:
        for texts in asked:
            found = [reference.fields for reference in answer(texts)]
            done += len(found) if begun else 0
        begun = begun or time.process_time()
    return done / (time.process_time() - begun)


# -- the tables


def found_lines(ledger: Ledger, block: Block, seeds: int) -> tuple[Line | None, list[Line]]:
    """What is known of CRFsuite, and of textmill's seeds."""
    peer = ledger.find(block.name, "CRFsuite", key_for(block, "CRFsuite", 0))
    own = (
        ledger.find(block.name, "textmill", key_for(block, "textmill", n))
        for n in range(1, seeds + 1)
    )
    return peer, [line for line in own if line]


def figure_rows(ledger: Ledger, block: Block, seeds: int) -> Iterator[list[str]]:
    """A row for each figure of each set."""
    peer, own = found_lines(ledger, block, seeds)
    if peer is None or not own:
        return
    seconds = f"{statistics.mean(line['cpu_s'] for line in own):,.0f}"
    for number, (name, place, gold) in enumerate(block.parts()):
        for figure, score in FIGURES.items():
            base = score(gold, peer["answers"][place])
            found = [score(gold, line["answers"][place]) for line in own]
            values = [one.value for one in found]
            above, error = more(base, found, len(gold))
            deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            first, top = figure == next(iter(FIGURES)), not number
            short = WANTED * error - above
            yield [
                f"{block.name} ({len(block.train):,})" if first and top else "",
                f"{name} ({len(gold)})" if first else "",
                figure,
                f"{base.value:.2f}",
                f"{statistics.mean(values):.2f}{deviation} ({len(own)})",
                f"{above:.2f} ± {error:.2f}",
                "yes" if short <= 0 else f"no, by {short:.2f}",
                seconds if first and top else "",
            ]


def field_rows(ledger: Ledger, block: Block, seeds: int) -> Iterator[list[str]]:
    """The F1 of the words of each of Cora's fields, over all rows that score."""
    peer, own = found_lines(ledger, block, seeds)
    if peer is None or not own:
        return
    *_, (_, _, gold) = block.parts()
    for field in LABELS:
        count = sum(tag == field for row in gold for tag in row)
        values = [f1_of(field, gold, line["answers"]) for line in own]
        base = f1_of(field, gold, peer["answers"])
        yield [field, f"{count:,}", f"{base:.2f}", f"{statistics.mean(values):.2f}"]


def speed_rows(ledger: Ledger, block: Block) -> Iterator[list[str]]:
    """What the newest measurement says of the speed."""
    found = [line for line in ledger.lines if (line["job"], line["part"]) == (block.name, "speed")]
    for name, size, speed in found[-1]["speeds"] if found else ():
        at_once = "one by one" if size == 1 else f"{size} at once"
        yield [f"the {name}", at_once, f"{speed:,.0f}", "yes" if speed >= 100 else "no"]


def f1_of(field: str, gold: scores.Tags, found: scores.Tags) -> float:
    pairs = [
        (a == field, b == field)
        for wanted, given in zip(gold, found, strict=True)
        for a, b in zip(wanted, given, strict=True)
    ]
    both = sum(a + b for a, b in pairs)
    return 200 * sum(a and b for a, b in pairs) / both if both else 0.0


def main(data: Path, out: Path, page: Path, *, seeds: int, measured: bool = True) -> None:
    """Measures what is missing and writes the tables into the page."""
    if not (data / "refstrings").is_dir():
        say(f"references: no data ({data / 'refstrings'} is not there)")
        return
    ledger = Ledger(out / "references.jsonl")
    made = blocks(data, out / "data")
    try:
        for block in made if measured else ():
            measure(ledger, block, out, seeds=seeds)
        if measured:
            measure_speed(ledger, made[0], out)
    finally:
        rows = (row for block in made for row in figure_rows(ledger, block, seeds))
        fields = field_rows(ledger, made[0], seeds)
        speeds = speed_rows(ledger, made[0])
        text = [*markdown(COLUMNS, rows), "", *markdown(FIELDS, fields)]
        text += ["", *markdown(SPEEDS, speeds)]
        write(page, "\n".join(text), begin=BEGIN, end=END)
