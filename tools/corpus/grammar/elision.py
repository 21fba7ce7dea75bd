"""How French words meet: elision (l'eau), contraction (au, du), and the h that forbids both."""

import unicodedata
from collections.abc import Iterable

# Words with h aspiré, by their beginning: le hibou, la hache. Every other h here is silent.
_ASPIRATE = ("hach", "hamster", "haricot", "harpe", "haut", "hibou", "homard", "héros", "hériss")
_ELIDED = frozenset({"le", "la", "je", "me", "te", "se", "ne", "de", "que"})
_NOT_ELIDED_BEFORE = frozenset({"huit", "onze"})  # numbers that behave like h aspiré


def starts_with_vowel(word: str) -> bool:
    """Whether the word before `word` is elided.

    >>> [starts_with_vowel(w) for w in ("eau", "hôtel", "hibou", "œuf", "yaourt", "onze")]
    [True, True, False, True, False, False]
    >>> starts_with_vowel("héroïne"), starts_with_vowel("héros")
    (True, False)
    """
    word = word.lower()
    if word == "y":  # il n'y a pas; but le yaourt
        return True
    if word in _NOT_ELIDED_BEFORE or word.startswith(_ASPIRATE):
        return False
    first = unicodedata.normalize("NFD", word)[:1]
    return first in "aeiouœh"


def join(words: Iterable[str]) -> str:
    """Writes French words one after another, with elision.

    >>> join(["je", "ne", "aime", "pas", "le", "hôtel"])
    "je n'aime pas l'hôtel"
    >>> join(["est-ce que", "elle", "a", "la", "hache"])
    "est-ce qu'elle a la hache"
    """
    text = ""
    previous = ""
    for word in words:
        last = previous.rsplit(" ", 1)[-1]
        if last in _ELIDED and starts_with_vowel(word):
            text = text[:-1] + "'" + word
        else:
            text += " " + word if text else word
        previous = word
    return text


def contract(preposition: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Puts `preposition` before a noun phrase; "à" and "de" melt with the articles le and les.

    `preposition` may end in one of the two ("près de"). "à l'" and "de l'" do not melt, so the
    article stays when the next word begins with a vowel.

    >>> contract("à", ("le", "marché")), contract("de", ("les", "amis"))
    (('au', 'marché'), ('des', 'amis'))
    >>> contract("près de", ("le", "hôtel"))
    ('près de', 'le', 'hôtel')
    """
    before, _, last = preposition.rpartition(" ")
    melted = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}.get(
        f"{last} {words[0]}"
    )
    if melted is None or (words[0] == "le" and starts_with_vowel(words[1])):
        return (preposition, *words)
    return (f"{before} {melted}".strip(), *words[1:])
