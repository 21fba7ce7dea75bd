"""The kinds of questions, each drawn as an English-French pair."""

from dataclasses import replace

from tools.corpus.clause_draws import TENSES, draw_clause, draw_time
from tools.corpus.draws import Draws
from tools.corpus.grammar.clauses import Clause, sentence
from tools.corpus.grammar.noun_phrases import PRONOUNS, NounPhrase, noun_phrase
from tools.corpus.lexicon.nouns import nouns_of
from tools.corpus.lexicon.verbs import verbs_of
from tools.corpus.phrases import actor

Pair = tuple[str, str]

# What one asks about things: what does she read? Not of animals fed or cars washed.
_ASKABLE = tuple(
    v
    for v in verbs_of("object")
    if not set(v.follows) & set("PK") and v.fr not in ("nourrir", "laver")
)


def question_pair(draws: Draws) -> Pair:
    """Yes or no, where, when, why."""
    tense = draws.one(TENSES)
    subject = draws.one(PRONOUNS[1:]) if draws.chance(40) else actor(draws)
    if subject.en == "I":
        subject = PRONOUNS[1]
    clause = draw_clause(draws, subject, tense=tense, has_negation=False)
    if clause.tense == "present" and draws.chance(20) and not clause.verb.particle:
        modal = draws.one(tuple(v for v in verbs_of("modal") if v.fr in ("pouvoir", "vouloir")))
        clause = replace(clause, modal=modal) if clause.verb.kind != "like" else clause
    ask = draws.one(("", "", "when", "why", "where"))
    if ask == "where" and clause.verb.kind not in ("object", "self", "alone"):
        ask = "why"
    if clause.verb.fr == "habiter" and ask == "where":
        ask = ""
    return sentence(clause.question_en(ask), clause.question_fr(ask), "?")


def what_pair(draws: Draws) -> Pair:
    """What or how many: the object comes first, and the participle agrees with it."""
    verb, tense = draws.one(_ASKABLE), draws.one(TENSES)
    subject = actor(draws)
    subject = PRONOUNS[1] if subject.en == "I" else subject
    time = draw_time(draws, tense) if draws.chance(60) else ((), ())
    clause = Clause(subject=subject, verb=verb, tense=tense, after_en=time[0], after_fr=time[1])
    counted = [n for n in nouns_of(verb.follows) if not n.is_mass]
    if draws.chance(35) or not counted:
        return sentence(clause.question_en("what"), clause.question_fr("what"), "?")
    noun = draws.one(counted)
    asked = noun_phrase(noun, "the", plural=True)
    clause = replace(clause, asked=replace(asked, en=noun.en_plural, fr=asked.fr[1:]))
    return sentence(clause.question_en(f"how many {noun.en_plural}"), clause.question_fr(), "?")


def who_pair(draws: Draws) -> Pair:
    """Who does what: the subject is asked for."""
    tense = draws.one(TENSES)
    clause = draw_clause(draws, NounPhrase("who", ("qui",)), tense=tense, has_negation=False)
    timeless = clause.verb.kind == "like" or clause.verb.fr == "habiter"
    time = draw_time(draws, clause.tense) if not timeless and draws.chance(60) else ((), ())
    clause = replace(clause, after_en=clause.after_en + time[0], after_fr=clause.after_fr + time[1])
    return sentence(clause.statement_en(), clause.statement_fr(), "?")
