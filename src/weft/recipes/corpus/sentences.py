"""The kinds of sentences, each drawn from the grammar as an English-French pair."""

from collections.abc import Callable
from dataclasses import replace

from weft.recipes.corpus.draws import Draws
from weft.recipes.corpus.grammar.agreement import adjective_form
from weft.recipes.corpus.grammar.clauses import OBJECTS, Clause, be_en, be_fr, sentence
from weft.recipes.corpus.grammar.elision import contract
from weft.recipes.corpus.grammar.noun_phrases import PRONOUNS, NounPhrase, noun_phrase
from weft.recipes.corpus.grammar.numbers import number_en, number_fr
from weft.recipes.corpus.lexicon.adjectives import adjectives_of
from weft.recipes.corpus.lexicon.circumstances import (
    HOURS,
    INSTRUMENTS,
    PLACES,
    REGIONS,
    ROOMS,
    WHEN,
)
from weft.recipes.corpus.lexicon.nouns import NAMES, nouns_of
from weft.recipes.corpus.lexicon.verbs import Verb, verbs_of
from weft.recipes.corpus.phrases import actor, named, person, thing

__all__ = ["draw_pair"]

Pair = tuple[str, str]
After = tuple[tuple[str, ...], tuple[str, ...]]

_TENSES = ("present", "past", "future")
_OBJECT = verbs_of("object")
_TRANSITIVE = tuple(v for v in _OBJECT if set(v.follows) & set("PK") == set())
_TO_PEOPLE = tuple(v for v in _OBJECT if set(v.follows) & set("PK"))
_PLAY = Verb("alone", "play", "played", "plays", "jouer", "")
_LIVE = Verb("alone", "live", "lived", "lives", "habiter", "")
_COST = Verb("alone", "cost", "cost", "costs", "coûter", "")
_OWN_CLAUSES = ("object", "object", "object", "give", "move", "move", "self", "alone", "leave")
_OTHER_CLAUSES = ("like", "person", "about", "region", "play", "live")
_STATE_ADVERBS = {"": (), "very": ("très",), "too": ("trop",)}
_IDIOMS = {"hungry": "faim", "thirsty": "soif", "right": "raison", "afraid": "peur"}


def _negation(draws: Draws, tense: str) -> str:
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
        place = draws.one(tuple(PLACES))
        return (place,), (PLACES[place],)
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


def _clause(draws: Draws, subject: NounPhrase, *, tense: str, has_negation: bool = True) -> Clause:
    """A clause of any kind of verb."""
    kind = draws.one(_OWN_CLAUSES if draws.chance(70) else _OTHER_CLAUSES)
    if kind == "like" or (kind in ("about", "live") and tense == "past"):
        tense = "present"  # their English past means the imparfait
    negation = _negation(draws, tense) if has_negation else ""
    verb, (after_en, after_fr) = _verb(draws, kind, negation)
    return Clause(
        subject=subject,
        verb=verb,
        tense=tense,
        negation=negation,
        after_en=after_en,
        after_fr=after_fr,
    )


def _when(draws: Draws, tense: str) -> After:
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


def _finish(draws: Draws, clause: Clause, *, percent: int = 60) -> Pair:
    """A statement, in `percent` of 100 draws with a time at its end or, after it, a comma."""
    timeless = clause.verb.kind == "like" or clause.verb.fr == "habiter"
    if timeless or not draws.chance(percent):
        return sentence(clause.statement_en(), clause.statement_fr())
    en, fr = _when(draws, clause.tense)
    if draws.chance(30):
        return sentence(f"{en[0]}, {clause.statement_en()}", (f"{fr[0]},", *clause.statement_fr()))
    return sentence(" ".join((clause.statement_en(), *en)), (*clause.statement_fr(), *fr))


def _statement(draws: Draws) -> Pair:
    clause = _clause(draws, actor(draws), tense=draws.one(_TENSES))
    if clause.tense == "present" and not clause.negation and draws.chance(25):
        often = draws.one(("often", "always", "sometimes"))
        return _finish(draws, replace(clause, frequency=often), percent=0)
    return _finish(draws, clause)


def _nothing(draws: Draws) -> Pair:
    clause = Clause(
        subject=actor(draws),
        verb=draws.one(_TRANSITIVE),
        tense=draws.one(_TENSES),
        negation="nothing",
    )
    return _finish(draws, clause, percent=90)


def _pronoun(draws: Draws) -> Pair:
    """Somebody sees me: pronouns before the verb, and the participle that agrees with them."""
    subject, pronoun = actor(draws), draws.one(tuple(OBJECTS.values()))
    same = {"I": "me us", "you": "you", "we": "us me"}.get(subject.en, "")
    if pronoun.en in same.split():
        pronoun = OBJECTS["them"]
    tense = draws.one(_TENSES)
    clause = Clause(
        subject=subject,
        verb=draws.one(_TO_PEOPLE),
        tense=tense,
        negation=_negation(draws, tense),
        pronoun=pronoun,
    )
    return _finish(draws, clause, percent=75)


def _modal(draws: Draws) -> Pair:
    clause = _clause(draws, actor(draws), tense="present")
    modal = draws.one(verbs_of("modal"))
    if clause.verb.particle or clause.verb.kind == "like":
        return _statement(draws)
    if clause.negation == "never" or modal.fr == "espérer":
        clause = replace(clause, negation="not" if clause.negation else "")
    if modal.fr == "aimer" or clause.verb.fr == "habiter" or draws.chance(60):
        return _finish(draws, replace(clause, modal=modal), percent=0)
    en, fr = _when(draws, "future")
    clause = replace(clause, modal=modal)
    return sentence(" ".join((clause.statement_en(), *en)), (*clause.statement_fr(), *fr))


def _state(draws: Draws) -> Pair:
    """She is very tired; the old house was empty; the baker is hungry."""
    tense = draws.one(_TENSES)
    no = draws.one(("", "", "not", "no longer"))
    if draws.chance(20):
        subject, idiom = actor(draws), draws.one(tuple(_IDIOMS))
        en = f"{subject.en} {be_en(subject, tense, no)} {idiom}"
        return sentence(
            en, (*subject.fr, *be_fr("avoir", subject.person, tense, no), _IDIOMS[idiom])
        )
    subject, classes = _subject(draws)
    adjective = draws.one([a for a in adjectives_of(classes) if a.is_predicate])
    how = draws.one(("", "very", "too")) if not no else ""
    form = adjective_form(adjective.fr, female=subject.female, plural=subject.plural)
    en = " ".join(filter(None, (subject.en, be_en(subject, tense, no), how, adjective.en)))
    fr = (*subject.fr, *be_fr("être", subject.person, tense, no), *_STATE_ADVERBS[how], form)
    return sentence(en, fr)


def _subject(draws: Draws) -> tuple[NounPhrase, str]:
    """A person or a thing, and the classes of the adjectives that fit it."""
    if draws.chance(50):
        return actor(draws), "K"
    noun = draws.one(nouns_of("AOLCVRB"))
    plural = draws.chance(35)
    things = noun.classes in ("O", "OQ", "L", "LQ", "C", "V")
    determiner = draws.one(("my", "his", "our", "their") if things else ("the", "this"))
    return noun_phrase(noun, determiner, plural=plural), noun.classes


def _comparison(draws: Draws) -> Pair:
    first, classes = _subject(draws)
    second = person(draws) if classes == "K" else thing(draws, classes, definite=100)
    plain = [
        a for a in adjectives_of(classes) if a.is_predicate and a.en not in ("good", "bad", "old")
    ]
    adjective = draws.one(plain)
    tense = draws.one(_TENSES)
    kind = draws.one(("more", "less", "as"))
    en = {
        "more": f"{adjective.more} than",
        "less": f"less {adjective.en} than",
        "as": f"as {adjective.en} as",
    }[kind]
    how = {"more": "plus", "less": "moins", "as": "aussi"}[kind]
    form = adjective_form(adjective.fr, female=first.female, plural=first.plural)
    return sentence(
        f"{first.en} {be_en(first, tense)} {en} {second.en}",
        (*first.fr, *be_fr("être", first.person, tense), how, form, "que", *second.fr),
    )


def _there_is(draws: Draws) -> Pair:
    negated = draws.chance(25)
    what = thing(draws, "OLACFN", negated=negated, definite=0)
    tense = draws.one(_TENSES)
    where = draws.one(tuple(ROOMS))
    verb = {"present": "a", "past": "avait", "future": "aura"}[tense]
    mid = ("ne", "y", verb, "pas") if negated else ("y", verb)
    no = "not" if negated else ""
    return sentence(
        f"there {be_en(what, tense, no)} {what.en} {where}", ("il", *mid, *what.fr, ROOMS[where])
    )


def _age(draws: Draws) -> Pair:
    subject = draws.one(PRONOUNS) if draws.chance(30) else person(draws)
    tense, years = draws.one(_TENSES), 2 + draws.below(99)
    en, fr = (), ()
    if tense == "future" and draws.chance(70):
        en, fr = _when_year(draws)
    return sentence(
        " ".join((f"{subject.en} {be_en(subject, tense)} {number_en(years)} years old", *en)),
        (*subject.fr, *be_fr("avoir", subject.person, tense), f"{number_fr(years)} ans", *fr),
    )


def _when_year(draws: Draws) -> After:
    when = draws.one(("next week", "next month", "next year", "tomorrow", "next summer"))
    return (when,), (WHEN["future"][when],)


def _price(draws: Draws) -> Pair:
    what, euros = thing(draws, "OLCVR", definite=100), 2 + draws.below(99)
    after = f"{number_en(euros)} euros"
    clause = Clause(
        subject=what,
        verb=_COST,
        tense=draws.one(("present", "future")),
        after_en=(after,),
        after_fr=(f"{number_fr(euros)} euros",),
    )
    return _finish(draws, clause, percent=40 if clause.tense == "future" else 0)


def _question(draws: Draws) -> Pair:
    """Yes or no, where, when, why."""
    tense = draws.one(_TENSES)
    subject = draws.one(PRONOUNS[1:]) if draws.chance(40) else actor(draws)
    if subject.en == "I":
        subject = PRONOUNS[1]
    clause = _clause(draws, subject, tense=tense, has_negation=False)
    if clause.tense == "present" and draws.chance(20) and not clause.verb.particle:
        modal = draws.one(tuple(v for v in verbs_of("modal") if v.fr in ("pouvoir", "vouloir")))
        clause = replace(clause, modal=modal) if clause.verb.kind != "like" else clause
    ask = draws.one(("", "", "when", "why", "where"))
    if ask == "where" and clause.verb.kind not in ("object", "self", "alone"):
        ask = "why"
    if clause.verb.fr == "habiter" and ask == "where":
        ask = ""
    return sentence(clause.question_en(ask), clause.question_fr(ask), "?")


def _what(draws: Draws) -> Pair:
    """What or how many: the object comes first, and the participle agrees with it."""
    verb, tense = draws.one(_TRANSITIVE), draws.one(_TENSES)
    subject = actor(draws)
    subject = PRONOUNS[1] if subject.en == "I" else subject
    time = _when(draws, tense) if draws.chance(60) else ((), ())
    clause = Clause(subject=subject, verb=verb, tense=tense, after_en=time[0], after_fr=time[1])
    counted = [n for n in nouns_of(verb.follows) if not n.is_mass]
    if draws.chance(35) or not counted:
        return sentence(clause.question_en("what"), clause.question_fr("what"), "?")
    noun = draws.one(counted)
    asked = noun_phrase(noun, "the", plural=True)
    clause = replace(clause, asked=replace(asked, en=noun.en_plural, fr=asked.fr[1:]))
    return sentence(clause.question_en(f"how many {noun.en_plural}"), clause.question_fr(), "?")


def _who(draws: Draws) -> Pair:
    tense = draws.one(_TENSES)
    clause = _clause(draws, NounPhrase("who", ("qui",)), tense=tense, has_negation=False)
    timeless = clause.verb.kind == "like" or clause.verb.fr == "habiter"
    time = _when(draws, clause.tense) if not timeless and draws.chance(60) else ((), ())
    clause = replace(clause, after_en=clause.after_en + time[0], after_fr=clause.after_fr + time[1])
    return sentence(clause.statement_en(), clause.statement_fr(), "?")


def _says(draws: Draws) -> Pair:
    """She thinks that …: que before a clause."""
    verb = draws.one(verbs_of("say"))
    who = draws.one(PRONOUNS) if draws.chance(50) else named(draws)
    tense = "future" if verb.fr == "espérer" else draws.one(_TENSES)
    inner = _clause(draws, actor(draws), tense=tense)
    outer = Clause(subject=who, verb=verb, tense="present")
    if inner.tense != tense:
        inner = replace(inner, tense=tense if verb.fr == "espérer" else inner.tense)
    return sentence(
        f"{outer.statement_en()} that {inner.statement_en()}",
        (*outer.statement_fr(), "que", *inner.statement_fr()),
    )


_KINDS: tuple[tuple[int, Callable[[Draws], Pair]], ...] = (  # shares of 100
    (30, _statement),
    (4, _nothing),
    (9, _pronoun),
    (7, _modal),
    (9, _state),
    (5, _comparison),
    (6, _there_is),
    (3, _age),
    (3, _price),
    (9, _question),
    (6, _what),
    (4, _who),
    (5, _says),
)
_BY_SHARE = tuple(draw for share, draw in _KINDS for _ in range(share))


def draw_pair(draws: Draws) -> Pair:
    """One English sentence and its French translation.

    >>> draw_pair(Draws(3))
    ()
    """
    while True:
        pair = draws.one(_BY_SHARE)(draws)
        if not _names_someone_twice(pair[0]):
            return pair


def _names_someone_twice(en: str) -> bool:
    """Whether one name stands for two people: Anne thinks of Anne."""
    return any(en.count(name) > 1 for name in NAMES)
