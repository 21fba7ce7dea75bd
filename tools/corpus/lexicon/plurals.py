"""The regular plurals of both languages; the irregular ones are written in the lexicon."""


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
