"""Gender and number: the four forms of an adjective or a past participle."""

from tools.corpus.grammar.elision import starts_with_vowel
from tools.corpus.lexicon.plurals import plural_fr

_FEMININE = {
    "beau": "belle",
    "blanc": "blanche",
    "bon": "bonne",
    "doux": "douce",
    "frais": "fraîche",
    "gentil": "gentille",
    "gros": "grosse",
    "long": "longue",
    "nouveau": "nouvelle",
    "vieux": "vieille",
}
_BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}
_INVARIABLE = frozenset({"marron"})


def feminine(word: str) -> str:
    """The feminine singular of a French adjective or past participle.

    >>> [feminine(w) for w in ("vert", "rouge", "heureux", "cher", "italien", "blanc", "allé")]
    ['verte', 'rouge', 'heureuse', 'chère', 'italienne', 'blanche', 'allée']
    """
    if word in _INVARIABLE or word.endswith("e") or " " in word:
        return word
    if word in _FEMININE:
        return _FEMININE[word]
    for ending, other in (("eux", "euse"), ("er", "ère"), ("ien", "ienne"), ("f", "ve")):
        if word.endswith(ending):
            return word[: -len(ending)] + other
    return word + "e"


def adjective_form(word: str, *, female: bool, plural: bool, before: str = "") -> str:
    """`word` (masculine singular) as it agrees; `before` is the word it stands in front of, if any.

    >>> adjective_form("vieux", female=False, plural=False, before="homme")
    'vieil'
    >>> adjective_form("nouveau", female=True, plural=True)
    'nouvelles'
    >>> adjective_form("en bois", female=True, plural=True)
    'en bois'
    """
    if word in _INVARIABLE or " " in word:
        return word
    if female:
        return feminine(word) + ("s" if plural else "")
    if plural:
        return plural_fr(word)
    if before and word in _BEFORE_VOWEL and starts_with_vowel(before):
        return _BEFORE_VOWEL[word]
    return word
