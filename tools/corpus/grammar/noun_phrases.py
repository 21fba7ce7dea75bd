"""Noun phrases: determiner, adjectives and noun in both languages, with what others agree with."""

from dataclasses import dataclass

from tools.corpus.grammar.agreement import adjective_form
from tools.corpus.grammar.elision import contract, starts_with_vowel
from tools.corpus.grammar.numbers import number_en, number_fr
from tools.corpus.lexicon.adjectives import Adjective
from tools.corpus.lexicon.nouns import NAMES, Noun


@dataclass(frozen=True)
class NounPhrase:
    """A phrase of both languages. `fr` is words before elision; `person` is 0 to 5 (je … ils)."""

    en: str
    fr: tuple[str, ...]
    female: bool = False
    plural: bool = False
    person: int = 2

    @property
    def en_person(self) -> str:
        """How an English verb agrees with it: "I", "third" or "plural" ("you" is plural)."""
        return ("I", "plural", "third", "plural", "plural", "plural")[self.person]


# "you" is one man spoken to politely; "we" and "they" are masculine: one translation each.
PRONOUNS = (
    NounPhrase("I", ("je",), person=0),
    NounPhrase("you", ("vous",), person=4),
    NounPhrase("he", ("il",)),
    NounPhrase("she", ("elle",), female=True),
    NounPhrase("we", ("nous",), plural=True, person=3),
    NounPhrase("they", ("ils",), plural=True, person=5),
)

_POSSESSIVES = {  # masculine (or before a vowel), feminine, plural
    "my": ("mon", "ma", "mes"),
    "your": ("votre", "votre", "vos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
_QUANTITIES = {"several": ("plusieurs",), "many": ("beaucoup", "de"), "a few": ("quelques",)}


def name_phrase(name: str) -> NounPhrase:
    """A person by name.

    >>> name_phrase("Marie").female
    True
    """
    return NounPhrase(name, (name,), female=NAMES[name])


def both(first: NounPhrase, second: NounPhrase) -> NounPhrase:
    """Two phrases joined by and; feminine only if both are.

    >>> both(name_phrase("Marie"), name_phrase("Paul")).female
    False
    """
    return NounPhrase(
        f"{first.en} and {second.en}",
        (*first.fr, "et", *second.fr),
        female=first.female and second.female,
        plural=True,
        person=5,
    )


def _article_en(word: str) -> str:
    silent_or_vowel = word[0].lower() in "aeiou" and not word.startswith(("uni", "use"))
    return "an" if silent_or_vowel or (word.startswith("hon") and word != "honey") else "a"


def _definite(female: bool, plural: bool) -> str:
    return "les" if plural else "la" if female else "le"


def _indefinite(noun: Noun, determiner: str, plural: bool, has_before: bool) -> tuple[str, ...]:
    """The French of a, some and any: un, des, de la; de in a negation or before an adjective."""
    if determiner in ("any", "not a") or (plural and has_before):
        return ("de",)
    if noun.is_mass:
        return ("de", "la") if noun.female else ("du",)
    if plural:
        return ("des",)
    return ("une",) if noun.female else ("un",)


def _determiner_fr(
    noun: Noun, determiner: str, first: str, *, plural: bool, has_before: bool
) -> tuple[str, ...]:
    """French words of `determiner` before the word `first`."""
    female, vowel = noun.female, starts_with_vowel(first)
    if determiner == "the":
        return (_definite(female, plural),)
    if determiner == "all the":
        return ("toutes" if female else "tous", "les")
    if determiner == "this":
        if plural:
            return ("ces",)
        return ("cette",) if female else ("cet",) if vowel else ("ce",)
    if determiner in _POSSESSIVES:
        masculine, feminine, many = _POSSESSIVES[determiner]
        return (many if plural else feminine if female and not vowel else masculine,)
    if determiner in _QUANTITIES:
        return _QUANTITIES[determiner]
    words = _indefinite(noun, determiner, plural, has_before)
    # Partitive du before a vowel is de l': ("de", "le") is elided where it is written.
    return ("de", "le") if words == ("du",) and vowel else words


def _determiner_en(determiner: str, plural: bool, first: str) -> str:
    if determiner in ("a", "not a"):
        return _article_en(first)
    return "these" if determiner == "this" and plural else determiner


def noun_phrase(
    noun: Noun,
    determiner: str | int | NounPhrase,
    *,
    plural: bool = False,
    before: Adjective | None = None,
    after: Adjective | None = None,
) -> NounPhrase:
    """A noun with its determiner and at most two adjectives, one on each side in French.

    Args:
        noun: What is named.
        determiner: "the", "a", "not a" (a in a negation: pas de), "some", "any", "this",
            a possessive, "several", "a few", "many", "all the", "" (English bare plural or mass:
            French le, la, les); a number of 2 or more; or the owner (the baker's).
        plural: Whether more than one is meant; always so for a number.
        before: The adjective that stands before the French noun.
        after: The adjective that follows it.

    >>> from tools.corpus.lexicon.nouns import nouns_of
    >>> from tools.corpus.lexicon.adjectives import ADJECTIVES
    >>> hotel = next(n for n in nouns_of("B") if n.en == "hotel")
    >>> new = next(a for a in ADJECTIVES if a.en == "new")
    >>> noun_phrase(hotel, "a", before=new)
    NounPhrase(en='a new hotel', fr=('un', 'nouvel', 'hôtel'), female=False, plural=False, person=2)
    """
    plural = plural or isinstance(determiner, int)
    fr_noun = noun.fr_plural if plural else noun.fr
    words: tuple[str, ...] = (fr_noun,)
    en = noun.en_plural if plural else noun.en
    if after:
        en = f"{after.en} {en}"
        words = (*words, adjective_form(after.fr, female=noun.female, plural=plural))
    if before:
        en = f"{before.en} {en}"
        form = adjective_form(before.fr, female=noun.female, plural=plural, before=fr_noun)
        words = (form, *words)
    if isinstance(determiner, NounPhrase):
        en = f"{determiner.en}'s {en}"
        words = (_definite(noun.female, plural), *words, *contract("de", determiner.fr))
    elif isinstance(determiner, int):
        en = f"{number_en(determiner)} {en}"
        words = (number_fr(determiner, female=noun.female), *words)
    else:
        en = f"{_determiner_en(determiner, plural, en)} {en}".strip()
        words = (
            *_determiner_fr(
                noun, determiner or "the", words[0], plural=plural, has_before=before is not None
            ),
            *words,
        )
    return NounPhrase(en, words, female=noun.female, plural=plural, person=5 if plural else 2)
