"""Which column of a sample is what: by names, by values, and by what the texts tell of them."""

import difflib
import itertools
import math
import random
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from textmill.data.formats.header import (
    KEY_WORDS,
    OTHER_NAMES,
    columns_setting,
    plain_name,
    words_of,
)
from textmill.data.look.sample import NUMBER, Sample, look_at
from textmill.errors import UserError
from textmill.text.cells import ListCell
from textmill.text.columns.numbers import STARS

Kind = Literal["empty", "id", "number", "grade", "label", "labels", "name", "text"]
Task = Literal["label", "labels", "number", "pair", "pair number", "texts", "tags", "spans"]

LOOKED_AT = 20_000
"""Cells of a column that say what it is."""
UNNAMED = 100
"""The rank of a column whose name says nothing."""
LEAST_TOLD = 0.05
"""Share of right answers, beyond those of the commonest label, that say texts tell a label."""
GRADES = 20
"""Whole numbers of at most so many different values may be grades, and so labels."""
TOLD_ROWS = 2000
"""Rows in which a label is tried to be told by the words of the texts."""
UNTOLD = ", which the words of the texts hardly tell"
LEAST_ROWS = 3
"""Rows of a label without which it is not told."""
ROWS_TO_TELL = 200
"""With fewer rows labels that are not told may well be learnt."""
ROWS_A_LABEL = 4
"""On average; with fewer a column is hardly one of labels."""
MOSTLY = 0.98
"""Share of the cells that are the same; then hardly anything can be learnt."""
LABEL_CHARACTERS, LABEL_WORDS = 60, 5
LONG = 200
"""Characters of a cell, on average, that is no list of labels."""
LEARNT = ("label", "labels", "grade", "number")
PAIR_LABELS, PAIR_RATIO = 5, 3
"""Labels that two texts without names have at most: same or not, entailed or not, grades. And how
much longer one is at most."""
SEPARATORS = "|;,/+"
SENTENCES, HEAD = 2000, 500
"""Rows that say whether words have tags, and whether cells are text."""
READ = 1000
"""Characters of a text that say what its words tell."""
CODE_SHARE, CODE_LENGTH = 0.4, 4
"""Share of digits in codes, and characters of the longest; shorter are levels, as ``A1``."""
RESULTS = ("target", "tgt", "summary")
WORDLESS = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Characters of Thai, Japanese and Chinese, which have no spaces between words."""
_WORDLESS = re.compile(f"[{WORDLESS}]")
_WHOLE = re.compile(r"\d+(\.0)?")
_MARK = re.compile(r"[BIESLU]-\S+")
_ADDRESS = re.compile(r"\S+@\S+\.\S+|https?://\S+|[+()\d][\d ()/-]{6,}")
_TOKEN = re.compile(rf"[{WORDLESS}]|[^\W{WORDLESS}]+")
_ONE_OF_TWO = re.compile(r"[ _]?[12ab]$")


def count_words(text: str) -> int:
    """Words of a text; two characters of Chinese, Japanese or Thai are one.

    Example:
        >>> count_words("Where is it?"), count_words("いつ届きますか")
        (3, 4)
    """
    return len(text.split()) + len(_WORDLESS.findall(text)) // 2


@dataclass(frozen=True)
class SeenColumn:
    """A column of a sample: its filled cells, without spaces around them."""

    name: str
    number: int
    values: Sequence[str] = field(repr=False)

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.values)

    @cached_property
    def words(self) -> float:
        """Words of a cell, on average."""
        return count_words(" ".join(self.values)) / max(len(self.values), 1)

    @cached_property
    def is_code(self) -> bool:
        """Whether its cells are mostly digits: dates, prices, numbers of telephones."""
        joined = "".join("".join(self.values[:HEAD]).split())
        is_long = max(map(len, self.values[:HEAD]), default=0) >= CODE_LENGTH
        return is_long and sum(map(str.isdecimal, joined)) > CODE_SHARE * len(joined)

    @cached_property
    def separator(self) -> str | None:
        """What divides several labels of a cell, "" in lists; None if cells are not several."""
        if self.values and all(isinstance(value, ListCell) for value in self.values):
            cells = [parts_of(value) for value in self.values]
            is_list = any(len(parts) > 1 for parts in cells) and self._are_labels(cells)
            return "" if is_list else None
        if sum(map(len, self.values[:HEAD])) > LONG * len(self.values[:HEAD]):
            return None
        for separator in SEPARATORS:
            cells = [[part.strip() for part in value.split(separator)] for value in self.values]
            joined = [tuple(parts) for parts in cells if len(parts) > 1]
            is_often = len(joined) >= 0.02 * len(cells) and len({*joined}) > 1
            if is_often and self._are_labels(cells, least=3):
                return separator
        return None

    def _are_labels(self, cells: Sequence[Sequence[str]], least: int = 1) -> bool:
        """Whether the parts of cells are labels: short, often seen, also in other combinations."""
        known = Counter(itertools.chain.from_iterable(cells))
        if len(known) < least or "" in known:
            return False
        is_short = all(len(part.split()) <= 3 and len(part) <= 40 for part in known)
        is_often = known.total() >= ROWS_A_LABEL * len(known)
        joined = [part for parts in cells if len(parts) > 1 for part in parts]
        is_again = sum(known[part] > 1 for part in joined) > 0.8 * len(joined)
        return is_short and is_often and is_again and not self._are(NUMBER, 0.5)

    @cached_property
    def _are_codes(self) -> bool:
        """Whether several codes are in a cell, each a word with a letter, as ``I10; E11.9``."""
        if self.separator is None:
            return False
        parts = [part.strip() for cell in self.counts for part in parts_of(cell, self.separator)]
        return all(part.split() == [part] and any(map(str.isalpha, part)) for part in parts)

    def _are(self, pattern: re.Pattern[str], share: float = 0.97) -> bool:
        return sum(map(bool, map(pattern.fullmatch, self.values))) >= share * len(self.values)

    @cached_property
    def _is_rating(self) -> bool:
        """Whether it has stars in words, also beside bare numbers: ``5``, ``5 stars``, ``4/5``."""
        written = [bool(STARS.fullmatch(value)) for value in self.values]
        bare = [bool(NUMBER.fullmatch(value)) for value in self.values]
        return any(written) and sum(written) + sum(bare) >= 0.97 * len(written)

    @cached_property
    def kind(self) -> Kind:
        """What its values are; "name": of persons, places, addresses, a word each."""
        values, counts = self.values, self.counts
        if not values:
            return "empty"
        is_key = bool(KEY_WORDS & {*words_of(self.name)})
        is_unique = len(values) >= 20 and len(counts) > 0.98 * len(values)
        if all(isinstance(v, ListCell) and all(map(NUMBER.fullmatch, v.parts)) for v in values):
            return "id"  # vectors, places
        if self._is_rating:
            return "number"  # the same stars have several names
        if self._are(NUMBER):
            is_whole = all(map(_WHOLE.fullmatch, counts))
            if is_whole and (is_key or is_unique):
                return "id"
            few: Kind = "grade" if len(counts) > 2 else "label"
            return few if is_whole and len(counts) <= GRADES else "number"
        have_digits = sum(any(map(str.isdigit, value)) for value in values) > 0.9 * len(values)
        is_id = self.words < 2 and (is_key or (is_unique and have_digits and self.words < 1.5))
        if is_id or (self.is_code and not self._are_codes):
            return "id"
        if self.separator is not None:
            return "labels"
        is_short = max(map(len, counts)) <= LABEL_CHARACTERS and self.words <= LABEL_WORDS
        is_often = len(counts) <= max(2, len(values) / ROWS_A_LABEL) and len(counts) < len(values)
        if is_short and is_often:
            return "label"
        return "name" if self.words < 2 or self._are(_ADDRESS, 0.8) else "text"

    @property
    def about(self) -> str:
        """What its values are, in words."""
        count = f"{len(self.counts):,}"
        return {
            "id": "ids, dates or codes",
            "empty": "empty",
            "name": "names",
            "text": f"texts of {self.words:.0f} words",
            "number": f"{count} numbers",
            "labels": "several labels a row",
        }.get(self.kind, f"{count} label{'s' * (len(self.counts) != 1)}")

    def rank(self, *roles: str) -> int:
        """The place of its name among those that columns of these roles usually have."""
        words = [word.removesuffix("s") for word in (*words_of(self.name), plain_name(self.name))]
        ranks = [UNNAMED]
        for role in roles:
            for at, usual in enumerate([role, *OTHER_NAMES[role]]):
                if usual.removesuffix("s") in words or words[-1].endswith(usual):
                    ranks.append(at)
        return min(ranks)


@dataclass(frozen=True)
class Guess:
    """What a file's columns are.

    Attributes:
        task: What there is to learn.
        columns: What the task reads, each with the number of its column.
        reasons: For each of these, what says so, and which other columns it may be.
        separator: What divides several labels of a cell; "" for lists, None if it is one label.
    """

    task: Task
    columns: Mapping[str, int]
    reasons: Mapping[str, str]
    separator: str | None = None


def guess(sample: Sample, *, text: str | None = None, label: str | None = None) -> Guess:
    """What the columns of a sample are; ``text`` and ``label`` name those that are known.

    Raises:
        UserError: There is no such column, or nothing that could be learnt; columns are listed.
    """
    every = _columns(sample)
    target = _named(every, label) if label else None
    inputs = [column for column in every if column is not target]
    texts = [_named(every, text)] if text else _texts(inputs)
    if target and target in texts:
        raise UserError(f"{target.name!r} is named for the text and for the label. Name two.")
    if not (text or label) and (tagged := _tagged(sample, every)):
        return tagged
    if not texts:
        raise _nothing(inputs, "a column of texts", "text")
    pair = None if text else _pair(every, texts)
    mine = pair or texts[:1]
    others = [column for column in every if column not in mine]
    labels = [target] if target else _labels(sample, others, mine[-1])
    if not labels and len(two := pair or texts[:2]) == 2:
        return _two_texts(two)
    if not labels:
        raise _nothing(every, "a column of labels or numbers", "label")
    roles = ["text1", "text2"] if pair else ["text"]
    about = {
        r: f"{c.about}{_or([] if pair else texts[1:])}" for r, c in zip(roles, mine, strict=True)
    }
    may_tell = bool(pair) or labels[0].kind == "number" or len(sample.rows) < ROWS_TO_TELL
    is_told = may_tell or told_share(sample, mine[0], labels[0]) > 0
    return _learnt(dict(zip(roles, mine, strict=True)), about, labels, "" if is_told else UNTOLD)


def seen_words(path: Path, columns: Collection[str], prefix: str = "") -> str:
    """The settings that read some columns of a file, as words of a command; empty if not seen.

    For ``text`` alone the file needs no labels.
    """
    try:
        sample = look_at(path)
        texts = _texts(_columns(sample)) if {*columns} == {"text"} else []
        found = {"text": texts[0].number} if texts else guess(sample).columns
    except (UserError, OSError):
        return ""
    if not columns or not {*columns} <= {*found}:
        return ""
    places = {n: sample.place(found[n]) for n in columns}
    how = [f"{n}={'true' if v is True else v}" for n, v in sample.settings.items()]
    options = "" if prefix else "--"  # of textmill predict, where the format is one
    words = [f"{options if word.startswith('format') else prefix}{word}" for word in how]
    return " ".join([*map(shlex.quote, words), columns_setting(places, prefix)])


def _columns(sample: Sample) -> list[SeenColumn]:
    every, rows = list[SeenColumn](), sample.rows
    if len(rows) > LOOKED_AT:  # they may be sorted by their labels
        drawn = random.Random(0).sample(range(len(rows)), LOOKED_AT)  # noqa: S311
        rows = [rows[at] for at in sorted(drawn)]
    for n, name in enumerate(sample.names):
        cells = [row[n] for row in rows]
        filled = [c if isinstance(c, ListCell) else c.strip() for c in cells if c.strip()]
        every.append(SeenColumn(name, n, filled))
    return every


def _learnt(
    inputs: Mapping[str, SeenColumn],
    about: Mapping[str, str],
    labels: Sequence[SeenColumn],
    doubt: str,
) -> Guess:
    """The guess for one or two texts and what is to be told of them, the likeliest first."""
    first, *others = labels
    columns = {role: column.number for role, column in inputs.items()}
    reasons = {**about, "label": f"{first.about}{doubt}{_or(others)}"}
    is_pair = len(inputs) == 2
    if first.kind == "number":
        reasons["score"] = reasons.pop("label")
        task: Task = "pair number" if is_pair else "number"
        return Guess(task, {**columns, "score": first.number}, reasons)
    columns["label"] = first.number
    if first.kind == "grade":
        columns["score"] = first.number
        reasons["score"] = "the same as an amount, for an experiment of numbers"
    if first.separator is None:
        return Guess("pair" if is_pair else "label", columns, reasons)
    several = next(value for value in first.values if len(parts_of(value, first.separator)) > 1)
    reasons["label"] = f"several labels a row, as {several!r:.60}{doubt}{_or(others)}"
    return Guess("pair" if is_pair else "labels", columns, reasons, first.separator)


def _named(every: Sequence[SeenColumn], name: str) -> SeenColumn:
    for column in every:
        if plain_name(name) in (plain_name(column.name), str(column.number)):
            return column
    names = {plain_name(column.name): column.name for column in every}
    near = difflib.get_close_matches(plain_name(name), names, n=1)
    meant = f" Is {names[near[0]]!r} meant?" if near else ""
    raise UserError(f"There is no column {name!r}.{meant} There are {_list(every)}.")


def _nothing(every: Sequence[SeenColumn], what: str, option: str) -> UserError:
    return UserError(f"Found {_list(every)}, but not {what}. Name it: --{option} COLUMN")


def _list(every: Sequence[SeenColumn]) -> str:
    return ", ".join(f"{column.name!r} ({column.about})" for column in every)[:1500]


def _or(columns: Sequence[SeenColumn]) -> str:
    shown = ", ".join(f"{column.name} ({column.about})" for column in columns[:4])
    return f"; or {shown}" if shown else ""


def _texts(every: Sequence[SeenColumn]) -> list[SeenColumn]:
    """The columns of texts, the likeliest first."""
    names = [c for c in every if c.kind == "name"]
    found = [c for c in every if c.kind == "text"]
    found = found or [c for c in names if c.rank("text") < UNNAMED] or names
    return sorted(found, key=lambda c: (c.rank("text"), -c.words))


def _labels(sample: Sample, others: Sequence[SeenColumn], text: SeenColumn) -> list[SeenColumn]:
    """The columns that may be what is to be learnt, the likeliest first."""
    ranks = {c.number: c.rank("label", "score") for c in others}
    usable = list[SeenColumn]()
    for column in others:
        is_named = ranks[column.number] < UNNAMED
        is_kind = column.kind in LEARNT
        most = column.counts.most_common(1)[0][1] if column.values else 0
        if column.rank("text") < UNNAMED:  # such as a title
            continue
        if (is_kind or (column.kind == "name" and is_named)) and len(column.counts) > 1:
            usable += [column] * (is_named or most <= MOSTLY * len(column.values))
    told = dict.fromkeys(ranks, 0.0)
    if len(usable) > 1:
        told = {c.number: told_share(sample, text, c) for c in usable}

    def likelier(column: SeenColumn) -> tuple[bool, int, float, bool]:
        share, rank = told[column.number], ranks[column.number]
        is_number = column.kind == "number"
        is_named_number = is_number and rank < UNNAMED
        is_untold = len(sample.rows) >= ROWS_TO_TELL and not share and not is_named_number
        return is_untold, rank, -share, is_number

    return sorted(usable, key=likelier)


def told_share(sample: Sample, text: SeenColumn, label: SeenColumn) -> float:
    """How much the texts tell a label, or of several the first; 0 if that may be chance."""
    if label.kind == "number":
        return 0
    cells = [row[label.number] for row in sample.rows]
    if label.separator is not None:
        cells = [parts_of(cell, label.separator)[0] if cell.strip() else "" for cell in cells]
    share = told_by([row[text.number] for row in sample.rows], cells)
    return share if share >= max(LEAST_TOLD, min(len(cells), TOLD_ROWS) ** -0.5) else 0


def told_by(texts: Sequence[str], labels: Sequence[str], *, rows: int = TOLD_ROWS) -> float:
    """How much better than always the same answer labels can be told from words: 0 is not at all.

    Naive Bayes over the words, trained on one half of some rows and asked for the other.
    """
    order = random.Random(0).sample(range(len(texts)), min(len(texts), 4 * rows))  # noqa: S311
    drawn = ((texts[at], labels[at]) for at in order)
    filled = [each for each in drawn if all(map(str.strip, each))]
    chosen = [
        ({*_TOKEN.findall(text[:READ].casefold())}, label.strip()) for text, label in filled[:rows]
    ]
    half = len(chosen) // 2
    every = Counter(label for _, label in chosen[:half])
    # A word that a label of few rows does not have says hardly anything of it.
    known = {label: n for label, n in every.items() if n >= max(LEAST_ROWS, half / 500)}
    if not 2 <= len(known) <= 200:
        return 0.0
    gains = defaultdict[str, dict[str, float]](dict)
    counts = Counter(
        (word, label) for words, label in chosen[:half] if label in known for word in words
    )
    for (word, label), count in counts.items():
        gains[word][label] = math.log((count + 0.1) / 0.1)
    right = 0
    for words, label in chosen[half:]:
        seen = words & gains.keys()
        scores = {
            name: math.log(count) - len(seen) * math.log(count + 0.2)
            for name, count in known.items()
        }
        for word in seen:
            for name, gain in gains[word].items():
                scores[name] += gain
        right += max(scores, key=lambda name: scores[name]) == label
    usual = sum(label == every.most_common(1)[0][0] for _, label in chosen[half:])
    return (right - usual) / (len(chosen) - half)


def _pair(every: Sequence[SeenColumn], texts: Sequence[SeenColumn]) -> list[SeenColumn] | None:
    """Two columns of texts that belong together: by their names, or if none has a name."""
    for one, other in itertools.combinations(sorted(texts, key=lambda c: c.number), 2):
        names = [plain_name(column.name) for column in (one, other)]
        stems = {_ONE_OF_TWO.sub("", name) for name in names}
        if names == ["premise", "hypothesis"] or (len(stems) == 1 and not stems & {*names, ""}):
            return [one, other]
    learnt = [column for column in every if column.kind in LEARNT and len(column.counts) > 1]
    is_bare = len(learnt) == 1 and all(column.name == str(column.number) for column in every)
    is_bare = is_bare and all(column.kind == "text" for column in texts)
    is_likely = is_bare and (learnt[0].kind == "number" or len(learnt[0].counts) <= PAIR_LABELS)
    if not is_likely or len(texts) != 2 or texts[0].words > PAIR_RATIO * texts[1].words:
        return None
    return sorted(texts, key=lambda c: c.number)


def _two_texts(pair: Sequence[SeenColumn]) -> Guess:
    """Text to text: what is written for a text, such as its translation."""
    one, other = sorted(pair, key=lambda c: (plain_name(c.name) in RESULTS, c.number))
    reasons = {"source": one.about, "target": f"{other.about}; the other way round: exchange them"}
    return Guess("texts", {"source": one.number, "target": other.number}, reasons)


def _tagged(sample: Sample, every: Sequence[SeenColumn]) -> Guess | None:
    """Words and their tags: two columns with as many parts in each row, one of few values."""
    for tags in every:
        kinds = Counter(itertools.chain.from_iterable(map(parts_of, tags.values[:SENTENCES])))
        count = min(len(tags.values), SENTENCES)
        is_listed = bool(tags.values) and isinstance(tags.values[0], ListCell)
        is_other = tags.kind in ("number", "grade", "id", "empty") and not is_listed
        if is_other or kinds.total() < max(10 * len(kinds), 1.5 * count):
            continue
        for words in every:
            some = sample.rows[:SENTENCES]
            both = [(parts_of(r[words.number]), parts_of(r[tags.number])) for r in some]
            same = sum(len(one) == len(other) > 0 for one, other in both)
            known = {word for one, _ in both for word in one}
            are_words = not any(len(word.split()) > 1 for word in known)
            if same < 0.97 * len(both) or len(known) < 2 * len(kinds) or not are_words:
                continue
            shown = ", ".join(name for name, _ in kinds.most_common(4))
            reasons = {
                "words": f"{words.words:.0f} words a row",
                "tags": f"a tag for each word: {shown}",
            }
            marks = sum(bool(_MARK.fullmatch(name)) for name in kinds)
            task: Task = "spans" if marks >= max(1, 0.5 * (len(kinds) - 1)) else "tags"
            return Guess(task, {"words": words.number, "tags": tags.number}, reasons)
    return None


def parts_of(cell: str, separator: str = "") -> Sequence[str]:
    """The parts of a list or, without one, of a text at a separator or at white space."""
    if isinstance(cell, ListCell):
        return cell.parts
    return cell.split(separator) if separator else cell.split()
