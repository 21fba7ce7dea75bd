"""The corpus as the grammar writes it: distinct pairs, in parts of which train has every word."""

from textmill.recipes.corpus.parts import HELD_OUT, TRAIN, Pair, hold_out
from tools.corpus.dictionary import DICTIONARY
from tools.corpus.draws import Draws
from tools.corpus.sentences import draw_pair

_EXTRA = 100  # spare held-out pairs, for the five new sentences


def generate(seed: int = 0) -> list[Pair]:
    """The pairs of train, valid and test, and five more to try a translator on.

    Every English sentence and every French one occurs once. Each word of a held-out sentence
    occurs in train, in both languages. The same `seed` gives the same pairs on every machine.
    """
    pairs = _distinct(Draws(seed), TRAIN + 2 * HELD_OUT + _EXTRA)
    train, held_out = hold_out(pairs, 2 * HELD_OUT + _EXTRA)
    parts = held_out[: 2 * HELD_OUT]
    return [*train, *parts, *_five(held_out[2 * HELD_OUT :])]


def table(seed: int = 0) -> bytes:
    """All pairs, then the dictionary: a row each, English and French with a tab between."""
    rows = [*generate(seed), *DICTIONARY.items()]
    return "".join(f"{en}\t{fr}\n" for en, fr in rows).encode()


def _distinct(draws: Draws, count: int) -> list[Pair]:
    """The first `count` pairs drawn, leaving out what repeats either side."""
    english: set[str] = set()
    french: set[str] = set()
    pairs: list[Pair] = []
    while len(pairs) < count:
        pair = draw_pair(draws)
        if pair[0] not in english and pair[1] not in french:
            pairs.append(pair)
            english.add(pair[0])
            french.add(pair[1])
    return pairs


def _five(spare: list[Pair]) -> list[Pair]:
    """Five pairs of 7 to 11 English words that show different things, one a question."""
    middle = [p for p in spare if 7 <= len(p[0].split()) <= 11]
    questions = [p for p in middle if p[0].endswith("?")]
    negations = [p for p in middle if " not " in p[0] or " never " in p[0]]
    past = [p for p in middle if "est " in p[1] and p[0].endswith(".")]
    return list(dict.fromkeys([*questions[:1], *negations[:1], *past[:2], *middle]))[:5]
