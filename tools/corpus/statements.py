"""The kinds of statements, each drawn as an English-French pair."""

from dataclasses import replace

from tools.corpus.clause_draws import TENSES, After, draw_clause, draw_negation, draw_time
from tools.corpus.draws import Draws
from tools.corpus.grammar.agreement import adjective_form
from tools.corpus.grammar.clauses import OBJECTS, Clause, be_en, be_fr, sentence
from tools.corpus.grammar.noun_phrases import PRONOUNS, NounPhrase, noun_phrase
from tools.corpus.grammar.numbers import number_en, number_fr
from tools.corpus.lexicon.adjectives import adjectives_of
from tools.corpus.lexicon.circumstances import (
    ROOMS,
    WHEN,
)
from tools.corpus.lexicon.nouns import nouns_of
from tools.corpus.lexicon.verbs import Verb, verbs_of
from tools.corpus.phrases import actor, named, person, thing

Pair = tuple[str, str]

_OBJECT = verbs_of("object")
TRANSITIVE = tuple(v for v in _OBJECT if set(v.follows) & set("PK") == set())
_TO_PEOPLE = tuple(v for v in _OBJECT if set(v.follows) & set("PK"))
_COST = Verb("alone", "cost", "cost", "costs", "coûter", "")
_STATE_ADVERBS = {"": (), "very": ("très",), "too": ("trop",)}
_IDIOMS = {"hungry": "faim", "thirsty": "soif", "right": "raison", "afraid": "peur"}


def _finish(draws: Draws, clause: Clause, *, percent: int = 60) -> Pair:
    """A statement, in `percent` of 100 draws with a time at its end or, after it, a comma."""
    clause = clause.told_apart()
    timeless = clause.verb.kind == "like" or clause.verb.fr == "habiter"
    if timeless or not draws.chance(percent):
        return sentence(clause.statement_en(), clause.statement_fr())
    en, fr = draw_time(draws, clause.tense)
    if draws.chance(30):
        return sentence(f"{en[0]}, {clause.statement_en()}", (f"{fr[0]},", *clause.statement_fr()))
    return sentence(" ".join((clause.statement_en(), *en)), (*clause.statement_fr(), *fr))


def statement_pair(draws: Draws) -> Pair:
    """Somebody does something, somewhere or at some time."""
    clause = draw_clause(draws, actor(draws), tense=draws.one(TENSES))
    is_present = clause.tense == "present" and not clause.negation
    # "habite toujours" would be "still lives".
    if is_present and clause.verb.fr != "habiter" and draws.chance(25):
        often = draws.one(("often", "always", "sometimes"))
        return _finish(draws, replace(clause, frequency=often), percent=0)
    return _finish(draws, clause)


def nothing_pair(draws: Draws) -> Pair:
    """Somebody does nothing: ne … rien."""
    clause = Clause(
        subject=actor(draws),
        verb=draws.one(TRANSITIVE),
        tense=draws.one(TENSES),
        negation="nothing",
    )
    return _finish(draws, clause, percent=0 if clause.tense == "present" else 90)


def pronoun_pair(draws: Draws) -> Pair:
    """Somebody sees me: pronouns before the verb, and the participle that agrees with them."""
    subject, pronoun = actor(draws), draws.one(tuple(OBJECTS.values()))
    same = {"I": "me us", "you": "you", "we": "us me"}.get(subject.en, "")
    if pronoun.en in same.split():
        pronoun = OBJECTS["them"]
    tense = draws.one(TENSES)
    clause = Clause(
        subject=subject,
        verb=draws.one(_TO_PEOPLE),
        tense=tense,
        negation=draw_negation(draws, tense),
        pronoun=pronoun,
    )
    return _finish(draws, clause, percent=75)


def modal_pair(draws: Draws) -> Pair:
    """Somebody wants, hopes, likes to do something, can or must."""
    clause = draw_clause(draws, actor(draws), tense="present")
    modal = draws.one(verbs_of("modal"))
    if clause.verb.particle or clause.verb.kind == "like":
        return statement_pair(draws)
    if clause.negation and modal.fr in ("aimer", "espérer"):
        return statement_pair(draws)
    if clause.negation == "never":
        clause = replace(clause, negation="not")
    if modal.fr == "aimer" or clause.verb.fr == "habiter" or draws.chance(60):
        return _finish(draws, replace(clause, modal=modal), percent=0)
    en, fr = draw_time(draws, "future")
    clause = replace(clause, modal=modal)
    return sentence(" ".join((clause.statement_en(), *en)), (*clause.statement_fr(), *fr))


def state_pair(draws: Draws) -> Pair:
    """She is very tired; the old house was empty; the baker is hungry."""
    tense = draws.one(TENSES)
    no = draws.one(("", "", "not", "no longer"))
    if draws.chance(20):
        subject, idiom = actor(draws), draws.one(tuple(_IDIOMS))
        en = f"{subject.en} {be_en(subject, tense, no)} {idiom}"
        return sentence(
            en, (*subject.fr, *be_fr("avoir", subject.person, tense, no), _IDIOMS[idiom])
        )
    subject, classes = _subject(draws)
    said = subject.en.split()
    fitting = [a for a in adjectives_of(classes) if a.is_predicate and a.en not in said]
    adjective = draws.one(fitting)
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


def comparison_pair(draws: Draws) -> Pair:
    """Somebody or something is more, less or as … as another."""
    first, classes = _subject(draws)
    second = person(draws) if classes == "K" else thing(draws, classes, definite=100)
    plain = [
        a for a in adjectives_of(classes) if a.is_predicate and a.en not in ("good", "bad", "old")
    ]
    adjective = draws.one(plain)
    tense = draws.one(TENSES)
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


def there_is_pair(draws: Draws) -> Pair:
    """There is, was or will be something in some place: il y a."""
    negated = draws.chance(25)
    classes = draws.one(("OLC", "OLC", "F", "AN"))
    what = thing(draws, classes, negated=negated, definite=0)
    tense = draws.one(TENSES)
    where = draws.one(tuple(ROOMS[classes]))
    verb = {"present": "a", "past": "avait", "future": "aura"}[tense]
    mid = ("ne", "y", verb, "pas") if negated else ("y", verb)
    no = "not" if negated else ""
    return sentence(
        f"there {be_en(what, tense, no)} {what.en} {where}",
        ("il", *mid, *what.fr, ROOMS[classes][where]),
    )


def age_pair(draws: Draws) -> Pair:
    """How old somebody is: avoir … ans."""
    subject = draws.one(PRONOUNS) if draws.chance(30) else person(draws)
    tense, years = draws.one(TENSES), 2 + draws.below(99)
    en, fr = _when_year(draws) if tense == "future" and draws.chance(70) else ((), ())
    return sentence(
        " ".join((f"{subject.en} {be_en(subject, tense)} {number_en(years)} years old", *en)),
        (*subject.fr, *be_fr("avoir", subject.person, tense), f"{number_fr(years)} ans", *fr),
    )


def _when_year(draws: Draws) -> After:
    when = draws.one(("next week", "next month", "next year", "tomorrow", "next summer"))
    return (when,), (WHEN["future"][when],)


def price_pair(draws: Draws) -> Pair:
    """What something costs, 2 to 100 euros."""
    what, euros = thing(draws, "OLCVR", definite=100), 2 + draws.below(99)
    after = f"{number_en(euros)} euros"
    clause = Clause(
        subject=what,
        verb=_COST,
        tense=draws.one(("present", "future")),
        after_en=(after,),
        after_fr=(f"{number_fr(euros)} euros",),
    )
    if clause.tense == "future":
        en, fr = _when_year(draws)
        clause = replace(clause, after_en=clause.after_en + en, after_fr=clause.after_fr + fr)
    return sentence(clause.statement_en(), clause.statement_fr())


def says_pair(draws: Draws) -> Pair:
    """She thinks that …: que before a clause."""
    verb = draws.one(verbs_of("say"))
    who = draws.one(PRONOUNS) if draws.chance(50) else named(draws)
    tense = "future" if verb.fr == "espérer" else draws.one(TENSES)
    inner = draw_clause(draws, actor(draws), tense=tense)
    outer = Clause(subject=who, verb=verb, tense="present")
    if inner.tense != tense and verb.fr == "espérer":  # one hopes for the future
        return statement_pair(draws)
    inner = inner.told_apart()
    return sentence(
        f"{outer.statement_en()} that {inner.statement_en()}",
        (*outer.statement_fr(), "que", *inner.statement_fr()),
    )
