"""Draws clauses: a verb of any kind, what it takes after it, and when it happens."""

from tools.corpus.draws import Draws
from tools.corpus.grammar.clauses import Clause
from tools.corpus.grammar.elision import contract
from tools.corpus.grammar.noun_phrases import NounPhrase, noun_phrase
from tools.corpus.grammar.numbers import number_en, number_fr
from tools.corpus.lexicon.circumstances import (
    HOURS,
    INSTRUMENTS,
    PLACES,
    REGIONS,
    WHEN,
)
from tools.corpus.lexicon.nouns import nouns_of
from tools.corpus.lexicon.verbs import Verb, verbs_of
from tools.corpus.phrases import person, thing

After = tuple[tuple[str, ...], tuple[str, ...]]

TENSES = ("present", "past", "future")
_PLAY = Verb("alone", "play", "played", "plays", "jouer", "")
_LIVE = Verb("alone", "live", "lived", "lives", "habiter", "")
_OWN_CLAUSES = ("object", "object", "object", "give", "move", "self", "alone", "alone", "leave")
_OTHER_CLAUSES = ("like", "person", "about", "region", "play", "live")


def draw_negation(draws: Draws, tense: str) -> str:
    """A negation in one clause of four, else nothing; "no longer" is not said of the past."""
    if not draws.chance(25):
        return ""
    kinds = (
        ("not", "not", "not", "never") if tense == "past" else ("not", "not", "never", "no longer")
    )
    return draws.one(kinds)


def _after(phrase: NounPhrase, preposition: str = "") -> After:
    words = contract(preposition, phrase.fr) if preposition else phrase.fr
    return (phrase.en,), words


def _complement(draws: Draws, verb: Verb, negation: str) -> After:
    """What follows `verb`, as its kind says."""
    negated = bool(negation)
    if verb.kind == "object":
        return _after(thing(draws, verb.follows, negated=negated))
    if verb.kind == "like":
        noun = draws.one(nouns_of(verb.follows))
        return _after(noun_phrase(noun, "", plural=not noun.is_mass))
    if verb.kind == "person":
        return _after(person(draws), "à")
    if verb.kind == "about":
        return _after(thing(draws, verb.follows, definite=100), "de")
    if verb.kind == "give":
        given, to = thing(draws, verb.follows, negated=negated), person(draws)
        return (given.en, "to", to.en), (*given.fr, *contract("à", to.fr))
    if verb.kind == "move":
        noun = draws.one(nouns_of("B"))
        place = noun_phrase(noun, draws.one(("the", "the", "this")))
        return _after(place, verb.follows)
    if verb.kind in ("alone", "self") and draws.chance(50):
        is_private = verb.is_reflexive and verb.fr not in ("reposer", "amuser", "arrêter")
        where = "at home" if is_private else draws.one(tuple(PLACES))
        return (where,), (PLACES[where],)
    return (), ()


def _region(draws: Draws) -> tuple[Verb, After]:
    """To a country or back from it: en France, du Japon."""
    where = draws.one(tuple(REGIONS))
    moves = {v.base: v for v in verbs_of("move")}
    verb = moves[draws.one(("go to", "return to", "come back from"))]
    inside, outof = REGIONS[where]
    return verb, ((where,), (outof if verb.fr == "revenir" else inside,))


def _verb(draws: Draws, kind: str, negation: str) -> tuple[Verb, After]:
    if kind == "region":
        return _region(draws)
    if kind == "play":
        what = draws.one(tuple(INSTRUMENTS))
        return _PLAY, ((what,), (INSTRUMENTS[what],))
    if kind == "live":
        where = draws.one(tuple(REGIONS))
        return _LIVE, ((f"in {where}",), (REGIONS[where][0],))
    verb = draws.one(verbs_of(kind))
    return verb, _complement(draws, verb, negation)


def draw_clause(
    draws: Draws, subject: NounPhrase, *, tense: str, has_negation: bool = True
) -> Clause:
    """A clause of any kind of verb."""
    kind = draws.one(_OWN_CLAUSES if draws.chance(70) else _OTHER_CLAUSES)
    if kind == "like" or (kind == "live" and tense == "past"):
        tense = "present"  # their English past means the imparfait
    negation = draw_negation(draws, tense) if has_negation else ""
    if kind == "live" and negation:
        negation = "not"
    verb, (after_en, after_fr) = _verb(draws, kind, negation)
    if verb.particle and tense == "past":
        tense = "present"  # needed: avait besoin
    return Clause(
        subject=subject,
        verb=verb,
        tense=tense,
        negation=negation,
        after_en=after_en,
        after_fr=after_fr,
    )


def draw_time(draws: Draws, tense: str) -> After:
    """A time that goes with `tense`: the hour, a number of days, or a phrase."""
    if draws.chance(30):
        hour = 2 + draws.below(10)
        half = draws.chance(30)
        en = f"at half past {number_en(hour)}" if half else f"at {number_en(hour)} o'clock"
        fr = f"à {number_fr(hour)} heures" + (" et demie" if half else "")
        return (en,), (fr,)
    if tense != "present" and draws.chance(15):
        days = 2 + draws.below(29)
        english, french = number_en(days), number_fr(days)
        if tense == "past":
            return (f"{english} days ago",), (f"il y a {french} jours",)
        return (f"in {english} days",), (f"dans {french} jours",)
    if draws.chance(5):
        hour_en = draws.one(tuple(HOURS))
        return (hour_en,), (HOURS[hour_en],)
    phrase = draws.one(tuple(WHEN[tense]))
    return (phrase,), (WHEN[tense][phrase],)
