"""``make results RESULTS=shipped``: the models that ship with textmill, on what they have not seen.

The reference parser is trained anew without each of some fifths of AnyStyle's references, which
score it, beside CRFsuite and the experiment on the references alone. If ``--data`` has a file
``refstrings/physics.jsonl`` of rows with AnyStyle's labels, its references are scored, too, by the
first of these models.
"""

import hashlib
import inspect
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.results import crf
from benchmarks.results.ledger import Ledger, key_of
from benchmarks.results.measuring import say
from benchmarks.results.references import FIGURES
from benchmarks.results.table import markdown, write
from examples.prepare_references import Reference, read_rows, same
from shipped import references
from shipped.__main__ import MODELS

BEGIN = "<!-- made by make results RESULTS=shipped: begin -->"
END = "<!-- made by make results RESULTS=shipped: end -->"
SHOWN = ("words", "F1 of fields", "whole references")
COLUMNS = ("references that score", "model, or what it is trained on", *SHOWN, "titles")
PARTS, SCORED = 5, 1
"""Parts of AnyStyle's references, by a hash of each, and how many of them score."""
PHYSICS = Path("refstrings") / "physics.jsonl"
PARSER = next(model for model in MODELS if model.name == "reference-parser")


def part_of(reference: Reference) -> int:
    """The part of a reference: the same whatever else is read."""
    digest = hashlib.sha256(same(reference).encode()).digest()
    return int.from_bytes(digest[:8], "big") % PARTS


def words_and_tags(reference: Reference) -> tuple[list[str], list[str]]:
    """A reference as it is asked: without the label that it begins with."""
    known = references.without_label(reference)
    return [word for _, word in known], [tag for tag, _ in known]


def by_crfsuite(train: Sequence[Reference], asked: Sequence[list[str]]) -> list[list[str]]:
    words, tags = zip(*map(words_and_tags, train), strict=True)
    with tempfile.TemporaryDirectory(prefix="textmill-crf-") as folder:
        tag = crf.fitted(words, tags, Path(folder, "crf"))
        return [tag(words) for words in asked]


def by_textmill(
    train: Sequence[Reference], asked: Sequence[list[str]], *, more: bool
) -> list[list[str]]:
    """The shipped model's settings; ``more`` with its rows, else with the references alone."""
    import textmill
    from textmill.pipelines import ReferenceParser

    lines = [*references.rows(train)]
    with tempfile.TemporaryDirectory(prefix="textmill-shipped-") as folder:
        path = Path(folder, "train.jsonl")
        path.write_text("".join(lines if more else lines[: len(train)]), encoding="utf-8")
        words = [f"train_data.path={path}", *PARSER.settings]
        run = textmill.train(PARSER.experiment, words, run_dir=Path(folder, "run"))
        found = ReferenceParser(run.folder)([" ".join(words) for words in asked])
        return [list(one.tags) for one in found]


WAYS = {
    "CRFsuite": by_crfsuite,
    "the references": partial(by_textmill, more=False),
    "and articles another way (shipped)": partial(by_textmill, more=True),
}
"""What is trained, by its name in the table."""


def key_for(way: str, part: int, known: Sequence[Reference], others: Sequence[Reference]) -> str:
    code = inspect.getsource(crf if way == "CRFsuite" else references)
    rows = [known, others] if others and not part else known
    settings = [PARSER.experiment, *PARSER.settings]
    return key_of({"way": way, "part": part, "rows": rows, "code": code, "settings": settings})


def asked_of(
    part: int, known: Sequence[Reference], others: Sequence[Reference]
) -> dict[str, list[tuple[list[str], list[str]]]]:
    """The words and tags that the models without a part are asked."""
    found = {"AnyStyle": [words_and_tags(one) for one in known if part_of(one) == part]}
    return found if part or not others else {**found, "physics": [*map(words_and_tags, others)]}


def measure(ledger: Ledger, known: Sequence[Reference], others: Sequence[Reference]) -> None:
    """Makes what is missing."""
    for part in range(SCORED):
        train = [one for one in known if part_of(one) != part]
        asked = [words for rows in asked_of(part, known, others).values() for words, _ in rows]
        for way, answer in WAYS.items():
            key = key_for(way, part, known, others)
            if ledger.find("reference-parser", way, key):
                continue
            say(f"shipped, reference-parser: {way}, part {part}")
            begun = time.process_time()
            line = {"job": "reference-parser", "part": way, "key": key}
            found = answer(train, asked)
            ledger.add({**line, "cpu_s": time.process_time() - begun, "answers": found})


def table_rows(
    ledger: Ledger, known: Sequence[Reference], others: Sequence[Reference]
) -> Iterator[list[str]]:
    """A row for each set and way, over all references that were scored."""
    pairs = defaultdict[tuple[str, str], list[tuple[list[str], list[str]]]](list)
    for part, way in product(range(SCORED), WAYS):
        line = ledger.find("reference-parser", way, key_for(way, part, known, others))
        answers = iter(line["answers"] if line else ())
        for name, rows in asked_of(part, known, others).items():
            own = zip((tags for _, tags in rows), answers, strict=False)
            # Where the pipeline takes a word for the label, it has no tag.
            pairs[name, way] += [(gold, found) for gold, found in own if len(gold) == len(found)]
    for (name, way), both in sorted(pairs.items(), key=lambda item: item[0][0]):
        if both:
            gold, found = zip(*both, strict=True)
            values = [FIGURES[figure](gold, found).value for figure in SHOWN]
            titles = sum(map(same_titles, gold, found))
            yield [f"{name} ({len(gold)})", way, *(f"{v:.2f}" for v in values), f"{titles}"]


def same_titles(gold: Sequence[str], found: Sequence[str]) -> bool:
    """Whether the same words are the title, or none is."""
    return [tag == "title" for tag in gold] == [tag == "title" for tag in found]


def main(data: Path, out: Path, page: Path, *, measured: bool = True) -> None:
    """Measures what is missing and writes the table into the page."""
    known = references.read(data)
    others = [*read_rows(data / PHYSICS)] if (data / PHYSICS).is_file() else []
    ledger = Ledger(out / "shipped.jsonl")
    if measured:
        measure(ledger, known, others)
    text = "\n".join(markdown(COLUMNS, table_rows(ledger, known, others)))
    write(page, text, begin=BEGIN, end=END)
