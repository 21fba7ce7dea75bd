"""What is odd in the rows of a sample: empty and equal ones, labels like others, leaks."""

import difflib
import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from textmill.data.holdout import Holdout
from textmill.data.look.guess import Guess, count_words, parts_of
from textmill.data.look.sample import Sample
from textmill.errors import DataError
from textmill.text.columns.numbers import number_in

SHARE, FEW, FEW_ROWS = 0.1, 200, 0.2
"""Share of the rows that is held out, and with fewer usable rows than ``FEW`` the other one."""
NEAR = 0.8
"""How alike a label is to another of which it is likely a misspelling: ``Biling``, ``Billing``."""
RARER = 5
"""How much rarer it is."""
MOST_LABELS, COMMON, MOST_ALIKE, SHOWN, CELL = 2000, 100, 10, 5, 120
TARGETS = ("label", "score", "tags", "target")
_DIGITS = re.compile(r"\d+")
Fact = tuple[str, str, str]
"""What was counted, the number, and a note."""
Row = Mapping[str, str]


@dataclass(frozen=True)
class Facts:
    """What a data report shows.

    Attributes:
        lines: What was counted.
        labels: Each label with its rows, the commonest first.
        shown: The first usable rows: what is read of them.
        bad: Rows that cannot be used, of ``total``.
        holdout: Share of the rows that a recipe holds out.
        may_lack: Whether rows without any of several labels are used.
        respelled: Labels that differ from others by case and spaces alone, each with the other one.
        misspelled: Labels that are likely mistyped, each with the one that is likely meant.
    """

    lines: Sequence[Fact]
    labels: Mapping[str, int]
    shown: Sequence[Row]
    bad: int
    total: int
    holdout: float
    may_lack: bool
    respelled: Mapping[str, str] = field(default_factory=dict)
    misspelled: Mapping[str, str] = field(default_factory=dict)


def facts_of(sample: Sample, guess: Guess) -> Facts:
    """Counts what is odd in the rows, as the columns are read."""
    read = [{name: row[at] for name, at in guess.columns.items()} for row in sample.rows]
    left_out = _left_out(sample, guess, read)
    unusable = {number for numbers in left_out.values() for number in numbers}
    good = [number for number in range(len(read)) if number not in unusable]
    rows, lines = [read[number] for number in good], [sample.lines[number] for number in good]
    texts = [_folded(*(row[n] for n in guess.columns if n not in TARGETS)) for row in rows]
    labels = _labels_of(rows, guess)
    is_one = "label" in guess.columns and guess.separator is None
    alike = alike_labels(labels) if is_one else {}
    respelled = {name: near for name, near in alike.items() if _folded(name) == _folded(near)}
    misspelled = {name: near for name, near in alike.items() if name not in respelled}
    total = len(read) + len(sample.broken) + len(sample.totals)
    share = SHARE if len(rows) >= FEW else FEW_ROWS
    above = f"left out: {' / '.join(sample.above)}"
    facts = [
        ("rows", f"{total if sample.whole else sample.count:,}", _looked_at(sample)),
        *[("lines above the header", f"{len(sample.above):,}", _short(above))] * bool(sample.above),
        *_told("rows of sums at the end", sample.totals, "left out"),
        *_told("unreadable rows", sample.broken, "left out"),
    ]
    for what, numbers in left_out.items():
        facts += _told(what, [sample.lines[number] for number in numbers], "left out")
    facts += _repeated(rows, lines)
    if "label" in guess.columns:
        facts += _of_labels(rows, lines, texts, labels, respelled)
    facts += _held_out(guess, share, rows, lines, texts)
    facts += _of_texts(texts)
    shown = [{name: _short(cell) for name, cell in row.items()} for row in rows[:SHOWN]]
    may_lack = not all(row.get("label", "-").strip() for row in rows)
    known = Counter[str]()
    for name, count in labels.items():
        known[respelled.get(name, name)] += count
    return Facts(
        lines=facts,
        labels=dict(known.most_common()),
        shown=shown,
        bad=total - len(rows),
        total=total,
        holdout=share,
        may_lack=may_lack,
        respelled=respelled,
        misspelled=misspelled,
    )


def _looked_at(sample: Sample) -> str:
    """Which rows were looked at; empty if all."""
    of_many = f"in the first of {sample.files:,} files" if sample.files > 1 else ""
    part = f"{len(sample.rows):,} of them, from all parts, were looked at" * sample.is_part
    return "; ".join(filter(None, (of_many, part)))


def _told(what: str, lines: Collection[int], note: str) -> list[Fact]:
    """How many rows there are of a kind, and the first lines of them; [] if there is none."""
    first = ", ".join(map(str, sorted(lines)[:3]))
    shown = f"{note}: line {first}{', ...' * (len(lines) > 3)}"
    return [(what, f"{len(lines):,}", shown)] if lines else []


def _left_out(sample: Sample, guess: Guess, read: Sequence[Row]) -> dict[str, list[int]]:
    """The numbers of the rows that training cannot use, by what is wrong with them."""
    filled = {n: row for n, row in enumerate(read) if any(map(str.strip, sample.rows[n]))}
    found = {"empty rows": [n for n in range(len(read)) if n not in filled]}
    # A score beside a label is in the same column; a row may have none of several labels.
    is_grade = {"label", "score"} <= {*guess.columns}
    skipped = "score" if is_grade else "label" if guess.separator is not None else ""
    for name in guess.columns:
        if name != skipped:
            found[f"rows without {name}"] = [n for n, r in filled.items() if not r[name].strip()]
    full = {n: row for n, row in filled.items() if all(map(str.strip, row.values()))}
    if "tags" in guess.columns:
        found["rows without a tag for each word"] = [
            n for n, r in full.items() if len(parts_of(r["words"])) != len(parts_of(r["tags"]))
        ]
    if "score" in guess.columns and not is_grade:
        found["rows whose score is no number"] = [
            n for n, row in full.items() if not _is_number(row["score"])
        ]
    return found


def _is_number(cell: str) -> bool:
    try:
        number_in(cell, "score", 0)
    except DataError:
        return False
    return True


def _repeated(rows: Sequence[Row], lines: Sequence[int]) -> list[Fact]:
    first = dict[tuple[str, ...], int]()
    again = [
        line
        for line, row in zip(lines, rows, strict=True)
        if first.setdefault((*row.values(),), line) != line
    ]
    return _told("rows that repeat another", again, "on the same side of the holdout")


def _of_labels(
    rows: Sequence[Row],
    lines: Sequence[int],
    texts: Sequence[str],
    labels: Mapping[str, int],
    respelled: Mapping[str, str],
) -> Iterator[Fact]:
    """Texts with two labels, labels that look mistyped, labels of one row."""
    given = defaultdict[str, dict[str, int]](dict)
    for text, row, line in zip(texts, rows, lines, strict=True):
        given[text].setdefault(respelled.get(row["label"], row["label"]), line)
    odd = [[*each.items()] for each in given.values() if len(each) > 1]
    if odd:
        (one, at), (other, there), *_ = odd[0]
        note = f"such as line {at} ({one!r}) and line {there} ({other!r})"
        yield "texts with two labels", f"{len(odd):,}", note
    for label, near in itertools.islice(alike_labels(labels).items(), MOST_ALIKE):
        note = f"near {near!r} ({labels[near]:,} rows): a typing mistake?"
        if label in respelled:
            note = f"read as {near!r} ({labels[near]:,} rows)"
        yield f"label {label!r}", f"{labels[label]:,}", note
    alone = [n for n, count in labels.items() if count == 1 and n not in respelled]
    if alone:
        note = f"hardly to be learnt: {', '.join(alone[:4])}{', ...' * (len(alone) > 4)}"
        yield "labels of one row", f"{len(alone):,}", note


def _held_out(
    guess: Guess, share: float, rows: Sequence[Row], lines: Sequence[int], texts: Sequence[str]
) -> list[Fact]:
    """How many rows a recipe holds out, and those of them whose text is trained on, too."""
    stratify = "label" if "label" in guess.columns and guess.separator is None else None
    held = set[int]()
    with suppress(DataError):  # of too few rows
        held = {*Holdout(share, held_out=True, label=stratify).of(rows, name="").tolist()}
    bare = [_DIGITS.sub("0", text) for text in texts]
    trained = {text for n, text in enumerate(bare) if n not in held}
    leaks = [lines[n] for n in held if bare[n] in trained]
    note = "the same text but for case, spaces and digits"
    told = _told("of these also trained on", leaks, note)
    return [("held out", f"{len(held):,}", "rows that measure the answers"), *told]


def _of_texts(texts: Sequence[str]) -> Iterator[Fact]:
    """How long the texts are, and their scripts if there are several."""
    sizes = [count_words(text) for text in texts] or [0]
    middle, most = np.percentile(sizes, [50, 95])
    note = f"half of the rows have at most as many; 95 % {most:.0f}, the longest {max(sizes):,}"
    yield "words a row", f"{middle:.0f}", note
    if len(scripts := scripts_of(texts)) > 1:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in scripts.items())
        yield "scripts", f"{len(scripts)}", shares


def _folded(*texts: str) -> str:
    """Texts but for their case and white space."""
    return " ".join(" ".join(texts).split()).casefold()


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= CELL else f"{plain[: CELL - 3]}..."


def _labels_of(rows: Sequence[Row], guess: Guess) -> dict[str, int]:
    counts = Counter[str]()
    for row in rows:
        if "tags" in row:
            counts.update(parts_of(row["tags"]))
        elif guess.separator is not None:
            counts.update(part.strip() for part in parts_of(row["label"], guess.separator))
        elif "label" in row:
            counts[row["label"]] += 1
    return {name: count for name, count in counts.most_common() if name}


def alike_labels(labels: Mapping[str, int]) -> dict[str, str]:
    """Rare labels, each with the common one that is written nearly alike.

    Example:
        >>> alike_labels({"Billing": 700, "Delivery": 650, "delivery": 40, "Biling": 3, "Other": 5})
        {'delivery': 'Delivery', 'Biling': 'Billing'}
        >>> alike_labels({"Kino": 90, "Kin": 2, "on": 30, "no": 3, "Q1": 30, "Q2": 3})
        {'Kin': 'Kino'}
    """
    found = dict[str, str]()
    for label, other in itertools.product([*labels][:MOST_LABELS], [*labels][:COMMON]):
        if label not in found and RARER * labels[label] <= labels[other] and _alike(label, other):
            found[label] = other
    return found


def _alike(label: str, other: str) -> bool:
    """Whether labels differ by case and spaces, or by one or two letters in about ten."""
    one, two = " ".join(label.casefold().split()), " ".join(other.casefold().split())
    if one == two:
        return True
    if _DIGITS.findall(one) != _DIGITS.findall(two):
        return False
    match = difflib.SequenceMatcher(a=one, b=two, autojunk=False)
    return match.real_quick_ratio() > NEAR and match.ratio() > NEAR


def scripts_of(texts: Sequence[str]) -> dict[str, float]:
    """The scripts of the letters, each with its share; those below 1 % are left out.

    Example:
        >>> scripts_of(["Good", "Доброе"])
        {'cyrillic': 0.6, 'latin': 0.4}
    """
    counts = Counter[str]()
    for letter, count in Counter("".join(texts)).items():
        if letter.isalpha():
            counts[unicodedata.name(letter, "other").split()[0].split("-")[0].casefold()] += count
    return {n: c / counts.total() for n, c in counts.most_common() if c >= counts.total() / 100}
