"""ROUGE of summaries: n-grams and longest common subsequences that a text shares with references.

Written after Lin 2004 and the package ``rouge-score``, whose numbers it gives.
Common subsequences are found a row at a time, as the bits of one integer (Hyyrö 2004): of two texts
of 300 words, ``rougeL`` takes 0.2 ms, in that package 19.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from typing_extensions import override

from textmill.metrics import registries
from textmill.metrics.accumulators import TextMetric
from textmill.metrics.metric import MetricError, with_references
from textmill.metrics.streaming import Averaged

_IRREGULAR = {
    **{"skies": "sky", "dying": "die", "lying": "lie", "tying": "tie"},
    **{f"{word}s": word for word in ("inning", "outing", "canning")},
    **{word: word for word in ("sky", "news", "inning", "outing", "canning")},
    **{word: word for word in ("howe", "proceed", "exceed", "succeed")},
}
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"),
    ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"),
    ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
    ("fulli", "ful"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a word in lower case, so that ``losses`` and ``loss`` are one word (Porter 1980).

    With the departures of NLTK's stemmer, which ``rouge-score`` takes: irregular words, short words
    as they are, ``ie`` for ``-ies`` and ``-ied`` of four letters, ``y`` after a consonant only, and
    the endings ``-fulli``, ``-logi`` and ``-alli`` in step 2.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    step_3 = partial(_replaced, endings=_STEP_3)
    for step in (_plural, _past, _y, _step_2, step_3, _step_4, _final_e_and_l):
        word = step(word)
    return word


def _consonants(word: str) -> list[bool]:
    found: list[bool] = []
    for letter in word:
        found.append(letter not in "aeiou" and not (letter == "y" and found and found[-1]))
    return found


def _measure(word: str) -> int:
    """How many times consonants follow vowels: Porter's m."""
    return sum(not before and after for before, after in pairwise(_consonants(word)))


def _is_short(word: str) -> bool:
    ends = _consonants(word)[-3:]
    return ends == [False, True] or (ends == [True, False, True] and word[-1] not in "wxy")


def _replaced(
    word: str,
    endings: Sequence[tuple[str, str]],
    allowed: Callable[[str], bool] = lambda rest: _measure(rest) > 0,
) -> str:
    for ending, new in endings:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + new if allowed(rest) else word
    return word


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) == 4:
        return word[:-1]
    return _replaced(word, [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")], lambda _: True)


def _past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and not all(_consonants(rest)):
            break
    else:
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if rest[-2:-1] == rest[-1] and _consonants(rest)[-1]:
        return rest if rest[-1] in "lsz" else rest[:-1]
    return f"{rest}e" if _measure(rest) == 1 and _is_short(rest) else rest


def _y(word: str) -> str:
    rest = word.removesuffix("y")
    return f"{rest}i" if rest != word and len(rest) > 1 and _consonants(rest)[-1] else word


def _step_2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step_2(word[:-2])
    if word.endswith("logi") and not word.endswith(tuple(ending for ending, _ in _STEP_2)):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replaced(word, _STEP_2)


def _step_4(word: str) -> str:
    def allowed(rest: str) -> bool:
        return _measure(rest) > 1 and (not word.endswith("ion") or rest[-1] in "st")

    return _replaced(word, [(ending, "") for ending in _STEP_4], allowed)


def _final_e_and_l(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


RougeKind = Literal["rouge1", "rouge2", "rougeL", "rougeLsum"]
"""Words, pairs of words, the longest common subsequence of the texts, or of their lines."""

_WORDS = re.compile(r"[a-z0-9]+")
SHORT = 3  # letters of words that stay as they are


@registries.metrics.register("rouge")
class Rouge(Averaged, TextMetric):
    """Generated texts against one or more references each: the mean F1 of each kind, from 0 to 1.

    Words are runs of ``a``-``z`` and digits in lower case: other letters separate them, so it is a
    measure for English. Each kind takes a row's best reference, or all take the one that is best by
    ``chosen_by``. ``rougeLsum`` takes the lines of a text as its sentences: put each on a line of
    its own.
    """

    class Config(TextMetric.Config):
        kinds: tuple[RougeKind, ...] = ("rouge1", "rouge2", "rougeL", "rougeLsum")
        """What to measure."""
        chosen_by: RougeKind | None = None
        """The kind that chooses the reference of all; SciTLDR is scored so, by ``rouge1``
        (Cachola et al. 2020)."""
        stems: bool = False
        """Whether words of more than three letters are compared by their stems, as most published
        numbers are."""

        def __post_init__(self) -> None:
            asked = [*self.kinds, *([self.chosen_by] if self.chosen_by is not None else [])]
            unknown = [kind for kind in asked if kind not in _SCORES]
            if unknown or not self.kinds:
                found = repr(unknown[0]) if unknown else "none"
                listed = ", ".join(_SCORES)
                raise MetricError(f"The kinds of ROUGE are {listed}, but given is {found}.")

    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(dict.fromkeys(config.kinds, "higher"))
        self.config = config
        self._choose = None if config.chosen_by is None else _SCORES[config.chosen_by]

    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for text, right in with_references(self, texts, references):
            given, *wanted = [_Text.read(one, stems=self.config.stems) for one in (text, *right)]
            if self._choose is not None:
                scores = [self._choose(one, given) for one in wanted]
                wanted = [wanted[scores.index(max(scores))]]
            for kind in self.directions():
                self.add(kind, max(_SCORES[kind](one, given) for one in wanted))


class _Text(NamedTuple):
    """The words of a text, of each line and in all."""

    lines: list[list[str]]
    words: list[str]

    @classmethod
    def read(cls, text: str, *, stems: bool) -> "_Text":
        lines = [_WORDS.findall(line) for line in text.lower().split("\n")]
        if stems:
            lines = [[stem(w) if len(w) > SHORT else w for w in line] for line in lines]
        return cls(lines, list(chain.from_iterable(lines)))


def _n_grams(n: int, right: _Text, given: _Text) -> float:
    ours, theirs = (
        Counter(zip(*(text.words[i:] for i in range(n)), strict=False)) for text in (given, right)
    )
    return _f1((ours & theirs).total(), theirs.total(), ours.total())


def _whole(right: _Text, given: _Text) -> float:
    hits = _length(_prefixes(right.words, given.words)[-1], len(given.words))
    return _f1(hits, len(right.words), len(given.words))


def _by_line(right: _Text, given: _Text) -> float:
    # Each word of ``given`` counts in one match at most, as in ROUGE 1.5.5 (the paper counts more).
    left, hits = Counter(given.words), 0
    for line in right.lines:
        places = {place for other in given.lines for place in _common(line, other)}
        for word in (line[place] for place in sorted(places)):
            if left[word]:
                hits += 1
                left[word] -= 1
    return _f1(hits, len(right.words), len(given.words))


def _f1(hits: int, right: int, given: int) -> float:
    precision, recall = hits / max(given, 1), hits / max(right, 1)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def _prefixes(right: Sequence[str], given: Sequence[str]) -> list[int]:
    """For each prefix of ``right``, from the empty one, a row of the table of common subsequences.

    Bit j of a row is 0 where ``given[j]`` makes the longest one with ``given`` up to there longer.
    """
    places: dict[str, int] = {}
    for j, word in enumerate(given):
        places[word] = places.get(word, 0) | 1 << j
    every = (1 << len(given)) - 1
    rows = [every]
    for word in right:
        row = rows[-1]
        found = row & places.get(word, 0)
        rows.append(((row + found) | (row - found)) & every)
    return rows


def _length(row: int, words: int) -> int:
    return words - (row & ((1 << words) - 1)).bit_count()


def _common(right: Sequence[str], given: Sequence[str]) -> set[int]:
    """The places in ``right`` of one longest common subsequence: that which rouge-score takes."""
    rows = _prefixes(right, given)
    i, j = len(right), len(given)
    places = set()
    while i and j:
        if right[i - 1] == given[j - 1]:
            i, j = i - 1, j - 1
            places.add(i)
        elif _length(rows[i], j - 1) > _length(rows[i - 1], j):
            j -= 1
        else:
            i -= 1
    return places


_SCORES: dict[str, Callable[[_Text, _Text], float]] = {
    "rouge1": partial(_n_grams, 1),
    "rouge2": partial(_n_grams, 2),
    "rougeL": _whole,
    "rougeLsum": _by_line,
}
