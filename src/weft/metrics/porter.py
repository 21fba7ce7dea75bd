"""Stems of English words, so that ``losses`` and ``loss`` are one word (Porter 1980).

With the departures of NLTK's stemmer, which ``rouge-score`` takes: irregular words, short words as
they are, ``ie`` for ``-ies`` and ``-ied`` of four letters, ``y`` after a consonant only, and the
endings ``-fulli``, ``-logi`` and ``-alli`` in step 2.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

__all__ = ["stem"]

_IRREGULAR = {
    "skies": "sky",
    "sky": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
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
    """The stem of a word in lower case.

    Example:
        >>> [stem(word) for word in ("losses", "relational", "controlling", "happily", "skies")]
        ['loss', 'relat', 'control', 'happili', 'sky']
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _past, _y, _step_2, _step_3, _step_4, _final_e, _final_l):
        word = step(word)
    return word


def _consonants(word: str) -> list[bool]:
    """For each letter whether it is a consonant; ``y`` is one first, and behind a vowel."""
    found: list[bool] = []
    for letter in word:
        found.append(letter not in "aeiou" and not (letter == "y" and found and found[-1]))
    return found


def _measure(word: str) -> int:
    """How many times consonants follow vowels: Porter's m."""
    found = _consonants(word)
    return sum(not before and after for before, after in pairwise(found))


def _is_double(word: str) -> bool:
    """Whether it ends with the same consonant twice."""
    return len(word) > 1 and word[-1] == word[-2] and _consonants(word)[-1]


def _is_short(word: str) -> bool:
    """Whether it ends with consonant, vowel, consonant, not w, x or y; or is vowel, consonant."""
    ends = _consonants(word)[-3:]
    return ends == [False, True] or (ends == [True, False, True] and word[-1] not in "wxy")


def _replaced(
    word: str,
    endings: Sequence[tuple[str, str]],
    allowed: Callable[[str], bool] = lambda rest: _measure(rest) > 0,
) -> str:
    """The word with the first ending that it has replaced, where what is before it allows that."""
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
    if _is_double(rest):
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


def _step_3(word: str) -> str:
    return _replaced(word, _STEP_3)


def _step_4(word: str) -> str:
    def allowed(rest: str) -> bool:
        return _measure(rest) > 1 and (not word.endswith("ion") or rest[-1] in "st")

    return _replaced(word, [(ending, "") for ending in _STEP_4], allowed)


def _final_e(word: str) -> str:
    rest = word.removesuffix("e")
    if rest == word:
        return word
    measure = _measure(rest)
    return rest if measure > 1 or (measure == 1 and not _is_short(rest)) else word


def _final_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
