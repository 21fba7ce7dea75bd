"""Number and gender: the plural of nouns, the four forms of an adjective or a participle."""

from weft.recipes.corpus.grammar.elision import starts_with_vowel

__all__ = ["adjective_form", "feminine", "plural_en", "plural_fr"]

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


def plural_fr(word: str) -> str:
    """The regular plural of a French noun or masculine adjective.

    >>> [plural_fr(w) for w in ("pomme", "gâteau", "cheval", "souris", "hibou")]
    ['pommes', 'gâteaux', 'chevaux', 'souris', 'hiboux']
    """
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "hibou")):
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


def plural_en(word: str) -> str:
    """The regular plural of an English noun.

    >>> [plural_en(w) for w in ("apple", "box", "cherry", "boy", "church")]
    ['apples', 'boxes', 'cherries', 'boys', 'churches']
    """
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


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
