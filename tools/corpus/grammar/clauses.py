"""Clauses: subject, verb group with negation and pronouns, and what follows, in both languages."""

from dataclasses import dataclass, replace

from tools.corpus.grammar.agreement import adjective_form
from tools.corpus.grammar.conjugation import IMPERFECT, conjugate
from tools.corpus.grammar.elision import join
from tools.corpus.grammar.noun_phrases import NounPhrase
from tools.corpus.lexicon.verbs import Verb

NEGATION = {"not": "pas", "never": "jamais", "no longer": "plus", "nothing": "rien"}
FREQUENCY = {"often": "souvent", "always": "toujours", "sometimes": "parfois"}

# The pronoun before the verb, and what a participle agrees with.
OBJECTS = {
    "me": NounPhrase("me", ("me",)),
    "you": NounPhrase("you", ("vous",)),
    "him": NounPhrase("him", ("le",)),
    "her": NounPhrase("her", ("la",), female=True),
    "us": NounPhrase("us", ("nous",), plural=True),
    "them": NounPhrase("them", ("les",), plural=True),
}
_REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
_BE_PRESENT = {"I": "am", "third": "is", "plural": "are"}
_BE_PAST = {"I": "was", "third": "was", "plural": "were"}
_ASK_FR = {
    "": "est-ce que",
    "where": "où est-ce que",
    "when": "quand est-ce que",
    "why": "pourquoi est-ce que",
    "what": "qu'est-ce que",
}


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One clause, to be written as a statement or a question in either language.

    `negation` is a key of NEGATION or empty, `pronoun` an object before the French verb, `asked`
    the noun phrase of a "how many" question (the participle agrees with it), `after` all the rest.
    """

    subject: NounPhrase
    verb: Verb
    tense: str
    negation: str = ""
    frequency: str = ""
    modal: Verb | None = None
    pronoun: NounPhrase | None = None
    asked: NounPhrase | None = None
    after_en: tuple[str, ...] = ()
    after_fr: tuple[str, ...] = ()

    def told_apart(self) -> "Clause":
        """In the futur where a statement's English past and present are one: they read."""
        is_one = self.verb.base == self.verb.past and self.subject.en_person != "third"
        if not is_one or self.modal or self.negation == "not" or self.tense == "future":
            return self
        return replace(self, tense="future", frequency="")

    def statement_en(self) -> str:
        """The clause in English, without capital and full stop."""
        return _spaced(self.subject.en, *self._verb_group_en(), *self._rest_en())

    def question_en(self, ask: str = "") -> str:
        """The clause as a question; `ask` is "", "where", "when", "why", "what" or "how many …"."""
        head = self.modal or self.verb
        if self.modal and not head.past:
            return _spaced(ask, head.base, self.subject.en, self.verb.base, *self._rest_en())
        helper = {"future": "will", "past": "did"}.get(self.tense)
        if helper is None:
            helper = "does" if self.subject.en_person == "third" else "do"
        bases = (head.base, self.verb.base) if self.modal else (head.base,)
        return _spaced(ask, helper, self.subject.en, *bases, *self._rest_en())

    def statement_fr(self) -> tuple[str, ...]:
        """The clause in French: words before elision."""
        return (*self.subject.fr, *self._verb_group_fr(), *self.after_fr)

    def question_fr(self, ask: str = "") -> tuple[str, ...]:
        """The clause as a question with est-ce que."""
        if self.asked:
            return ("combien", "de", *self.asked.fr, "est-ce que", *self.statement_fr())
        return (_ASK_FR[ask], *self.statement_fr())

    def _rest_en(self) -> tuple[str, ...]:
        pronoun = (self.pronoun.en,) if self.pronoun else ()
        nothing = ("nothing",) if self.negation == "nothing" else ()
        return (*pronoun, *nothing, *self.after_en)

    def _verb_group_en(self) -> tuple[str, ...]:
        head = self.modal or self.verb
        rest = (self.verb.base,) if self.modal else ()
        no = self.negation if self.negation != "nothing" else ""
        if self.modal and not head.past:  # can, must: no -s, no do
            group = {"can": "cannot"}.get(head.base, "must not") if no == "not" else head.base
            return (group, no if no != "not" else "", *rest)
        if self.tense == "future":
            return ("will", no, head.base, *rest)
        is_third = self.subject.en_person == "third"
        if no == "not":
            does = "did" if self.tense == "past" else "does" if is_third else "do"
            return (does, "not", head.base, *rest)
        finite = head.past if self.tense == "past" else head.third if is_third else head.base
        return (no or self.frequency, finite, *rest)

    def _verb_group_fr(self) -> tuple[str, ...]:
        head = self.modal or self.verb
        person = self.subject.person
        clitics = self.pronoun.fr if self.pronoun else ()
        if self.verb.is_reflexive:
            clitics = (_REFLEXIVE[person],)
        ne = ("ne",) if self.negation else ()
        adverb = NEGATION.get(self.negation) or FREQUENCY.get(self.frequency)
        pas = (adverb,) if adverb else ()
        particle = (self.verb.particle,) if self.verb.particle else ()
        if self.modal:
            finite = conjugate(head.fr).present[person]
            return (*ne, finite, *pas, *clitics, self.verb.fr)
        forms = conjugate(head.fr)
        if self.tense != "past":
            finite = (forms.present if self.tense == "present" else forms.future)[person]
            return (*ne, *clitics, finite, *pas, *particle)
        helper = conjugate("être" if head.has_be else "avoir").present[person]
        return (*ne, *clitics, helper, *pas, self._participle(forms.participle))

    def _participle(self, participle: str) -> str:
        """Agrees with the subject after être, with an object already said after avoir."""
        with_what = self.subject if self.verb.has_be else self.pronoun or self.asked
        if with_what is None:
            return participle
        return adjective_form(participle, female=with_what.female, plural=with_what.plural)


def _spaced(*words: str) -> str:
    return " ".join(word for word in words if word)


def be_en(subject: NounPhrase, tense: str, no: str = "") -> str:
    """English to be, with its subject's person: "is", "was not", "will not be".

    >>> be_en(NounPhrase("I", ("je",), person=0), "future", "not")
    'will not be'
    """
    if tense == "future":
        return _spaced("will", no, "be")
    forms = _BE_PRESENT if tense == "present" else _BE_PAST
    return _spaced(forms[subject.en_person], no)


def be_fr(verb: str, person: int, tense: str, no: str = "") -> tuple[str, ...]:
    """être or avoir in présent, imparfait (for English was) or futur, negated by `no`.

    >>> be_fr("être", 2, "past", "not")
    ('ne', 'était', 'pas')
    """
    forms = conjugate(verb)
    tenses = {"present": forms.present, "past": IMPERFECT[verb], "future": forms.future}
    finite = tenses[tense][person]
    return ("ne", finite, NEGATION[no]) if no else (finite,)


def sentence(en: str, fr: tuple[str, ...], mark: str = ".") -> tuple[str, str]:
    """A finished pair: elision, a capital letter, and the mark (a space before a French "?").

    >>> sentence("does she swim", ("est-ce que", "elle", "nage"), "?")
    ('Does she swim?', "Est-ce qu'elle nage ?")
    """
    french = join(fr)
    return (
        en[0].upper() + en[1:] + mark,
        french[0].upper() + french[1:] + (" ?" if mark == "?" else mark),
    )
