"""What is odd in the rows of a sample: empty and equal ones, labels like others, leaks."""

import difflib
import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from textmill.data.holdout import Holdout
from textmill.data.look.guess import Guess, parts_of
from textmill.data.look.sample import Sample
from textmill.errors import DataError

SHARE, FEW, FEW_ROWS = 0.1, 200, 0.2
"""Share of the rows that is held out, and with fewer usable rows than ``FEW`` the other one."""
NEAR = 0.8
"""How alike a label is to another of which it is likely a misspelling: ``Biling``, ``Billing``."""
RARER = 5
"""How much rarer it is."""
MOST_LABELS, COMMON, MOST_ALIKE, SHOWN, CELL = 2000, 100, 10, 5, 120
TARGETS = ("label", "score", "tags", "target")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Facts:
    """What a data report shows.

    Attributes:
        lines: What was counted, each with its number and a note.
        labels: Each label with its rows, the commonest first.
        shown: The first usable rows: what is read of them.
        bad: Rows that cannot be used, of ``total``.
        holdout: Share of the rows that a recipe holds out.
        may_lack: Whether rows without any of several labels are used.
    """

    lines: Sequence[tuple[str, str, str]]
    labels: Mapping[str, int]
    shown: Sequence[Mapping[str, str]]
    bad: int
    total: int
    holdout: float
    may_lack: bool


def facts_of(sample: Sample, guess: Guess) -> Facts:
    """Counts what is odd in the rows, as the columns are read."""
    read = [{name: row[at] for name, at in guess.columns.items()} for row in sample.rows]
    needed = [name for name in guess.columns if (guess.task, name) != ("labels", "label")]
    good = [n for n, row in enumerate(read) if all(row[name].strip() for name in needed)]
    rows, lines = [read[n] for n in good], [sample.lines[n] for n in good]
    texts = [_folded(*(row[n] for n in guess.columns if n not in TARGETS)) for row in rows]
    total = len(read) + len(sample.broken)
    found = [("rows", f"{total:,}", "" if sample.whole else "the first ones; there are more")]

    def tell(what: str, where: Collection[int], note: str) -> None:
        if where:
            shown = ", ".join(map(str, sorted(where)[:3]))
            found.append(
                (what, f"{len(where):,}", f"{note}: line {shown}{', ...' * (len(where) > 3)}")
            )

    tell("unreadable rows", sample.broken, "left out")
    empty = {n for n, row in enumerate(sample.rows) if not any(map(str.strip, row))}
    tell("empty rows", [sample.lines[n] for n in empty], "left out")
    for name in needed:
        lacking = [n for n, row in enumerate(read) if not row[name].strip() and n not in empty]
        tell(f"rows without {name}", [sample.lines[n] for n in lacking], "left out")
    first = dict[tuple[str, ...], int]()
    again = [
        line
        for line, row in zip(lines, rows, strict=True)
        if first.setdefault((*row.values(),), line) != line
    ]
    tell("rows that repeat another", again, "on the same side of the holdout")
    labels = _labels_of(rows, guess)
    if "label" in guess.columns:
        said = defaultdict[str, dict[str, int]](dict)
        for text, row, line in zip(texts, rows, lines, strict=True):
            said[text].setdefault(row["label"], line)
        odd = [[*each.items()] for each in said.values() if len(each) > 1]
        if odd:
            (one, at), (other, there), *_ = odd[0]
            note = f"such as line {at} ({one!r}) and line {there} ({other!r})"
            found.append(("texts with two labels", f"{len(odd):,}", note))
        for label, near in [*alike_labels(labels).items()][:MOST_ALIKE]:
            note = f"near {near!r} ({labels[near]:,} rows): a typing mistake?"
            found.append((f"label {label!r}", f"{labels[label]:,}", note))
        alone = [name for name, count in labels.items() if count == 1]
        if alone:
            note = f"hardly to be learnt: {', '.join(alone[:4])}{', ...' * (len(alone) > 4)}"
            found.append(("labels of one row", f"{len(alone):,}", note))
    share = SHARE if len(rows) >= FEW else FEW_ROWS
    stratify = "label" if guess.task in ("label", "pair") else None
    held = set[int]()
    with suppress(DataError):  # of too few rows
        held = {*Holdout(share, held_out=True, label=stratify).of(rows, name="").tolist()}
    found.append(("held out", f"{len(held):,}", "rows that measure the answers"))
    bare = [_DIGITS.sub("0", text) for text in texts]
    trained = {text for n, text in enumerate(bare) if n not in held}
    leaks = [lines[n] for n in held if bare[n] in trained]
    tell("of these also trained on", leaks, "the same text but for case, spaces and digits")
    sizes = [len(text.split()) for text in texts] or [0]
    middle, most = np.percentile(sizes, [50, 95])
    note = f"half of the rows have at most as many; 95 % {most:.0f}, the longest {max(sizes):,}"
    found.append(("words a row", f"{middle:.0f}", note))
    if len(scripts := scripts_of(texts)) > 1:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in scripts.items())
        found.append(("scripts", f"{len(scripts)}", shares))
    shown = [{name: _short(cell) for name, cell in row.items()} for row in rows[:SHOWN]]
    may_lack = not all(row.get("label", "-").strip() for row in rows)
    return Facts(found, labels, shown, total - len(rows), total, share, may_lack)


def _folded(*texts: str) -> str:
    """Texts but for their case and white space."""
    return " ".join(" ".join(texts).split()).casefold()


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= CELL else f"{plain[: CELL - 3]}..."


def _labels_of(rows: Sequence[Mapping[str, str]], guess: Guess) -> dict[str, int]:
    counts = Counter[str]()
    for row in rows:
        if "tags" in row:
            counts.update(parts_of(row["tags"]))
        elif guess.task == "labels":
            counts.update(part.strip() for part in parts_of(row["label"], guess.separator))
        elif "label" in row:
            counts[row["label"]] += 1
    return {name: count for name, count in counts.most_common() if name}


def alike_labels(labels: Mapping[str, int]) -> dict[str, str]:
    """Rare labels, each with the common one that is written nearly alike.

    Example:
        >>> alike_labels({"Billing": 700, "Delivery": 650, "delivery": 40, "Biling": 3, "Other": 5})
        {'delivery': 'Delivery', 'Biling': 'Billing'}
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
    if min(len(one), len(two)) < 4 or _DIGITS.findall(one) != _DIGITS.findall(two):
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
