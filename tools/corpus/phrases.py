"""Draws noun phrases that make sense: who acts, and on what."""

from tools.corpus.draws import Draws
from tools.corpus.grammar.noun_phrases import (
    PRONOUNS,
    NounPhrase,
    both,
    name_phrase,
    noun_phrase,
)
from tools.corpus.lexicon.adjectives import Adjective, adjectives_of
from tools.corpus.lexicon.nouns import NAMES, Noun, nouns_of

_NAMES = tuple(NAMES)
# Where the two French words together mean something else: un grand homme is a great man.
_OTHER_MEANING = {
    "man": "tall",
    "lady": "tall",
    "uncle": "tall",
    "aunt": "tall",
    "father": "tall",
    "mother": "tall",
    "grandfather": "tall",
    "grandmother": "tall",
    "daughter": "young old",
}
_POSSESSIVES = ("my", "your", "his", "her", "our", "their")


def named(draws: Draws) -> NounPhrase:
    """Somebody by name."""
    return name_phrase(draws.one(_NAMES))


def adjectives_for(draws: Draws, noun: Noun) -> tuple[Adjective | None, Adjective | None]:
    """At most one adjective on each side of the noun; two in one phrase of eight."""
    fitting = [a for a in adjectives_of(noun.classes) if not a.is_state]
    unfit = _OTHER_MEANING.get(noun.en, "")
    fitting = [a for a in fitting if a.en not in unfit.split()]
    if noun.is_mass:
        fitting = [a for a in fitting if a.en != "small"]
    before = [a for a in fitting if a.is_before]
    after = [a for a in fitting if not a.is_before]
    kind = draws.below(8)
    first = draws.one(before) if before and kind in (0, 1, 2) else None
    second = draws.one(after) if after and kind in (2, 3, 4) else None
    return first, second


def person(draws: Draws, *, can_be_named: bool = True) -> NounPhrase:
    """One person or several, never a pronoun: Marie, my old aunt, the baker's sister."""
    kind = draws.below(10)
    if kind < 2 and can_be_named:
        return named(draws)
    plural = draws.chance(25)
    if kind < 6:
        noun = draws.one(nouns_of("K"))
        plural = plural and "S" not in noun.classes
        determiner: str | NounPhrase = draws.one(_POSSESSIVES)
        if draws.chance(30):
            determiner = named(draws) if draws.chance(50) else _owner(draws)
    else:
        noun = draws.one(nouns_of("P"))
        dets = ("the", "the", "these", "several", "many", "all the", "a few")
        determiner = draws.one(dets) if plural else draws.one(("the", "the", "this"))
        determiner = "this" if determiner == "these" else determiner
    before, after = adjectives_for(draws, noun) if draws.chance(40) else (None, None)
    return noun_phrase(noun, determiner, plural=plural, before=before, after=after)


def _owner(draws: Draws) -> NounPhrase:
    """Whose relative or thing it is: the baker's, but no child's son."""
    return noun_phrase(draws.one([n for n in nouns_of("P") if "Y" not in n.classes]), "the")


def actor(draws: Draws) -> NounPhrase:
    """The subject of a verb: a pronoun, a name, two names, or a person."""
    kind = draws.below(20)
    if kind < 8:
        return draws.one(PRONOUNS)
    if kind < 10:
        return named(draws)
    if kind == 10:
        first, second = named(draws), named(draws)
        return first if first == second else both(first, second)
    return person(draws, can_be_named=False)


def _some(draws: Draws, noun: Noun, negated: bool, plural: bool) -> str | int:
    """An indefinite determiner, or a number; "de" in a negation."""
    if noun.is_mass:
        return "any" if negated else "some"
    if negated:
        return "any" if plural else "not a"
    if not plural:
        return "a"
    if draws.chance(40):
        return 2 + draws.below(99)
    return draws.one(("some", "some", "several", "many", "a few"))


def thing(draws: Draws, classes: str, *, negated: bool = False, definite: int = 55) -> NounPhrase:
    """An object of one of `classes`, definite in `definite` of 100 draws."""
    noun = draws.one(nouns_of(classes))
    plural = not set(noun.classes) & set("MS") and draws.chance(35)
    determiner: str | int | NounPhrase
    is_thing = not set(noun.classes) & set("AFDBPKTN")
    if "K" in noun.classes:
        determiner = draws.one(_POSSESSIVES)
    elif not draws.chance(definite):
        determiner = _some(draws, noun, negated, plural)
        plural = plural or isinstance(determiner, int)
    elif is_thing and draws.chance(55):
        determiner = draws.one(_POSSESSIVES)
        if draws.chance(35):
            determiner = named(draws) if draws.chance(40) else _owner(draws)
    else:
        determiner = draws.one(("the", "the", "this"))
        if plural and draws.chance(20):
            determiner = "all the"
    before, after = adjectives_for(draws, noun)
    return noun_phrase(noun, determiner, plural=plural, before=before, after=after)
