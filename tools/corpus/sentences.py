"""All kinds of sentences, each with its share of the corpus."""

from collections.abc import Callable

from tools.corpus.draws import Draws
from tools.corpus.lexicon.nouns import NAMES
from tools.corpus.questions import question_pair, what_pair, who_pair
from tools.corpus.statements import (
    age_pair,
    comparison_pair,
    modal_pair,
    nothing_pair,
    price_pair,
    pronoun_pair,
    says_pair,
    state_pair,
    statement_pair,
    there_is_pair,
)

Pair = tuple[str, str]

_KINDS: tuple[tuple[int, Callable[[Draws], Pair]], ...] = (  # shares of 100
    (29, statement_pair),
    (4, nothing_pair),
    (9, pronoun_pair),
    (7, modal_pair),
    (9, state_pair),
    (6, comparison_pair),
    (6, there_is_pair),
    (3, age_pair),
    (3, price_pair),
    (9, question_pair),
    (6, what_pair),
    (4, who_pair),
    (5, says_pair),
)
_BY_SHARE = tuple(draw for share, draw in _KINDS for _ in range(share))


def draw_pair(draws: Draws) -> Pair:
    """One English sentence and its French translation.

    >>> draw_pair(Draws(3))[1]
    "Hier matin, beaucoup d'actrices ont joué de l'orgue."
    """
    while True:
        pair = draws.one(_BY_SHARE)(draws)
        if not _names_someone_twice(pair[0]):
            return pair


def _names_someone_twice(en: str) -> bool:
    """Whether one name stands for two people: Anne thinks of Anne."""
    return any(en.count(name) > 1 for name in NAMES)
