"""Phenomenon by phenomenon: what the grammar writes, against pairs written by hand."""

import pytest

from tools.corpus.grammar.clauses import OBJECTS, Clause, sentence
from tools.corpus.grammar.conjugation import conjugate
from tools.corpus.grammar.elision import contract, join
from tools.corpus.grammar.noun_phrases import PRONOUNS, both, name_phrase, noun_phrase
from tools.corpus.grammar.numbers import number_en, number_fr
from tools.corpus.lexicon.adjectives import ADJECTIVES
from tools.corpus.lexicon.nouns import NOUNS
from tools.corpus.lexicon.verbs import VERBS

ADJECTIVE = {a.en: a for a in ADJECTIVES}
ME, YOU, HE, SHE, WE, THEY = PRONOUNS
MARIE, ANNE, PAUL = (name_phrase(n) for n in ("Marie", "Anne", "Paul"))


def phrase(determiner, text, *, plural=False):
    """ "old red car" with the French place of each adjective."""
    *adjectives, en = text.split()
    before = next((ADJECTIVE[a] for a in adjectives if ADJECTIVE[a].is_before), None)
    after = next((ADJECTIVE[a] for a in adjectives if not ADJECTIVE[a].is_before), None)
    noun = next(n for n in NOUNS if n.en == en)
    return noun_phrase(noun, determiner, plural=plural, before=before, after=after)


def verb(base, kind=None):
    return next(v for v in VERBS if v.base == base and kind in (None, v.kind))


@pytest.mark.parametrize(
    ("determiner", "text", "plural", "en", "fr"),
    [
        ("the", "dog", False, "the dog", "le chien"),
        ("the", "car", False, "the car", "la voiture"),
        ("the", "hospital", False, "the hospital", "l'hôpital"),
        ("the", "church", True, "the churches", "les églises"),
        ("the", "owl", False, "the owl", "le hibou"),
        ("the", "axe", False, "the axe", "la hache"),
        ("the", "hero", False, "the hero", "le héros"),
        ("the", "heroine", False, "the heroine", "l'héroïne"),
        ("the", "hedgehog", True, "the hedgehogs", "les hérissons"),
        ("a", "egg", False, "an egg", "un œuf"),
        ("a", "uniform", False, "a uniform", "un uniforme"),
        ("a", "useful box", False, "a useful box", "une boîte utile"),
        ("a", "old tree", False, "an old tree", "un vieil arbre"),
        ("a", "new hotel", False, "a new hotel", "un nouvel hôtel"),
        ("a", "beautiful bird", False, "a beautiful bird", "un bel oiseau"),
        ("a", "beautiful owl", False, "a beautiful owl", "un beau hibou"),
        ("a", "beautiful black dress", False, "a beautiful black dress", "une belle robe noire"),
        ("the", "new white house", False, "the new white house", "la nouvelle maison blanche"),
        ("the", "brown shoe", True, "the brown shoes", "les chaussures marron"),
        ("the", "wooden table", True, "the wooden tables", "les tables en bois"),
        ("the", "horse", True, "the horses", "les chevaux"),
        ("some", "water", False, "some water", "de l'eau"),
        ("some", "bread", False, "some bread", "du pain"),
        ("some", "beer", False, "some beer", "de la bière"),
        ("some", "apple", True, "some apples", "des pommes"),
        ("some", "small apple", True, "some small apples", "de petites pommes"),
        ("any", "water", False, "any water", "d'eau"),
        ("any", "bean", True, "any beans", "de haricots"),
        ("not a", "umbrella", False, "an umbrella", "de parapluie"),
        ("my", "friend", False, "my friend", "mon ami"),
        ("my", "ladder", False, "my ladder", "mon échelle"),
        ("my", "old ladder", False, "my old ladder", "ma vieille échelle"),
        ("her", "axe", False, "her axe", "sa hache"),
        ("his", "story", False, "his story", "son histoire"),
        ("their", "key", True, "their keys", "leurs clés"),
        ("this", "man", False, "this man", "cet homme"),
        ("this", "old man", False, "this old man", "ce vieil homme"),
        ("this", "lobster", False, "this lobster", "ce homard"),
        ("this", "church", False, "this church", "cette église"),
        ("this", "child", True, "these children", "ces enfants"),
        ("many", "oyster", True, "many oysters", "beaucoup d'huîtres"),
        ("all the", "woman", True, "all the women", "toutes les femmes"),
        ("", "cheese", False, "cheese", "le fromage"),
        (21, "pear", True, "twenty-one pears", "vingt et une poires"),
        (80, "cake", True, "eighty cakes", "quatre-vingts gâteaux"),
        (71, "knife", True, "seventy-one knives", "soixante et onze couteaux"),
        (ANNE, "brother", False, "Anne's brother", "le frère d'Anne"),
        (phrase("the", "baker"), "car", False, "the baker's car", "la voiture du boulanger"),
        (phrase("the", "hero"), "son", False, "the hero's son", "le fils du héros"),
        (phrase("the", "actor"), "hat", False, "the actor's hat", "le chapeau de l'acteur"),
    ],
)
def test_noun_phrases(determiner, text, *, plural, en, fr):
    made = phrase(determiner, text, plural=plural)
    assert (made.en, join(made.fr)) == (en, fr)


def said(subject, base, tense, *, kind=None, object_=None, to=None, ask=None, **more):
    """A whole sentence: statement, or question when `ask` is given."""
    if object_:
        more |= {"after_en": (object_.en,), "after_fr": object_.fr}
    if to:
        more |= {"after_en": (to[1].en,), "after_fr": contract(to[0], to[1].fr)}
    clause = Clause(subject=subject, verb=verb(base, kind), tense=tense, **more)
    if ask is None:
        return sentence(clause.statement_en(), clause.statement_fr())
    return sentence(clause.question_en(ask), clause.question_fr(ask), "?")


A_CAR, NO_CAR = phrase("a", "red car"), phrase("not a", "car")
MARKET, AIRPORT = phrase("the", "market"), phrase("the", "airport")


@pytest.mark.parametrize(
    ("pair", "en", "fr"),
    [
        (
            said(SHE, "buy", "present", object_=A_CAR),
            "She buys a red car.",
            "Elle achète une voiture rouge.",
        ),
        (
            said(SHE, "buy", "past", object_=A_CAR),
            "She bought a red car.",
            "Elle a acheté une voiture rouge.",
        ),
        (
            said(SHE, "buy", "future", object_=A_CAR),
            "She will buy a red car.",
            "Elle achètera une voiture rouge.",
        ),
        (
            said(ME, "buy", "present", negation="not", object_=NO_CAR),
            "I do not buy a car.",
            "Je n'achète pas de voiture.",
        ),
        (
            said(HE, "buy", "past", negation="never", object_=NO_CAR),
            "He never bought a car.",
            "Il n'a jamais acheté de voiture.",
        ),
        (
            said(THEY, "buy", "future", negation="no longer", object_=NO_CAR),
            "They will no longer buy a car.",
            "Ils n'achèteront plus de voiture.",
        ),
        (
            said(WE, "eat", "present", kind="object", negation="nothing"),
            "We eat nothing.",
            "Nous ne mangeons rien.",
        ),
        (
            said(MARIE, "eat", "past", kind="object", negation="nothing"),
            "Marie ate nothing.",
            "Marie n'a rien mangé.",
        ),
        (
            said(ME, "listen to", "present", pronoun=OBJECTS["her"]),
            "I listen to her.",
            "Je l'écoute.",
        ),
        (said(HE, "see", "past", pronoun=OBJECTS["her"]), "He saw her.", "Il l'a vue."),
        (said(HE, "see", "past", pronoun=OBJECTS["them"]), "He saw them.", "Il les a vus."),
        (
            said(YOU, "help", "past", negation="not", pronoun=OBJECTS["me"]),
            "You did not help me.",
            "Vous ne m'avez pas aidé.",
        ),
        (
            said(SHE, "go to", "past", to=("à", MARKET)),
            "She went to the market.",
            "Elle est allée au marché.",
        ),
        (
            said(both(MARIE, ANNE), "go to", "past", to=("à", AIRPORT)),
            "Marie and Anne went to the airport.",
            "Marie et Anne sont allées à l'aéroport.",
        ),
        (
            said(both(MARIE, PAUL), "arrive", "past"),
            "Marie and Paul arrived.",
            "Marie et Paul sont arrivés.",
        ),
        (said(YOU, "leave", "past"), "You left.", "Vous êtes parti."),
        (
            said(WE, "come back from", "past", to=("de", MARKET)),
            "We came back from the market.",
            "Nous sommes revenus du marché.",
        ),
        (said(ME, "get dressed", "present"), "I get dressed.", "Je m'habille."),
        (said(SHE, "get up", "past"), "She got up.", "Elle s'est levée."),
        (
            said(WE, "hurry", "present", negation="not"),
            "We do not hurry.",
            "Nous ne nous dépêchons pas.",
        ),
        (
            said(SHE, "go to bed", "present", modal=verb("want to")),
            "She wants to go to bed.",
            "Elle veut se coucher.",
        ),
        (
            said(PAUL, "swim", "present", modal=verb("can"), negation="not"),
            "Paul cannot swim.",
            "Paul ne peut pas nager.",
        ),
        (
            said(THEY, "sleep", "present", modal=verb("must")),
            "They must sleep.",
            "Ils doivent dormir.",
        ),
        (said(SHE, "sing", "present", ask=""), "Does she sing?", "Est-ce qu'elle chante ?"),
        (
            said(PAUL, "sleep", "past", ask="where"),
            "Where did Paul sleep?",
            "Où est-ce que Paul a dormi ?",
        ),
        (
            said(THEY, "leave", "future", ask="when"),
            "When will they leave?",
            "Quand est-ce qu'ils partiront ?",
        ),
        (
            said(YOU, "laugh", "present", ask="why"),
            "Why do you laugh?",
            "Pourquoi est-ce que vous riez ?",
        ),
        (
            said(ANNE, "read", "present", ask="what"),
            "What does Anne read?",
            "Qu'est-ce qu'Anne lit ?",
        ),
        (
            said(HE, "need", "present", to=("de", phrase("a", "axe"))),
            "He needs an axe.",
            "Il a besoin d'une hache.",
        ),
        (
            said(ME, "answer", "present", to=("à", phrase("all the", "boy", plural=True))),
            "I answer all the boys.",
            "Je réponds à tous les garçons.",
        ),
        (
            said(SHE, "speak to", "present", to=("à", phrase("the", "student", plural=True))),
            "She speaks to the students.",
            "Elle parle aux étudiants.",
        ),
        (said(ME, "sing", "present", frequency="often"), "I often sing.", "Je chante souvent."),
    ],
)
def test_clauses(pair, en, fr):
    assert pair == (en, fr)


def test_the_participle_agrees_with_what_was_counted():
    apples = phrase("the", "apple", plural=True)
    asked = noun_phrase(next(n for n in NOUNS if n.en == "apple"), "the", plural=True)
    clause = Clause(
        subject=SHE,
        verb=verb("buy"),
        tense="past",
        asked=type(asked)(asked.en, apples.fr[1:], female=True, plural=True),
    )
    assert sentence(clause.question_en("how many apples"), clause.question_fr(), "?") == (
        "How many apples did she buy?",
        "Combien de pommes est-ce qu'elle a achetées ?",
    )


def test_read_is_told_apart_by_the_futur():
    clause = Clause(subject=THEY, verb=verb("read"), tense="past").told_apart()
    assert sentence(clause.statement_en(), clause.statement_fr()) == (
        "They will read.",
        "Ils liront.",
    )
    kept = Clause(subject=SHE, verb=verb("read"), tense="past")
    assert kept.told_apart() is kept


@pytest.mark.parametrize(
    ("infinitive", "present", "first_future", "participle"),
    [
        ("manger", "mange manges mange mangeons mangez mangent", "mangerai", "mangé"),
        (
            "préférer",
            "préfère préfères préfère préférons préférez préfèrent",
            "préférerai",
            "préféré",
        ),
        ("appeler", "appelle appelles appelle appelons appelez appellent", "appellerai", "appelé"),
        (
            "nettoyer",
            "nettoie nettoies nettoie nettoyons nettoyez nettoient",
            "nettoierai",
            "nettoyé",
        ),
        ("lever", "lève lèves lève levons levez lèvent", "lèverai", "levé"),
        (
            "remercier",
            "remercie remercies remercie remercions remerciez remercient",
            "remercierai",
            "remercié",
        ),
        ("nager", "nage nages nage nageons nagez nagent", "nagerai", "nagé"),
        ("espérer", "espère espères espère espérons espérez espèrent", "espérerai", "espéré"),
        ("obéir", "obéis obéis obéit obéissons obéissez obéissent", "obéirai", "obéi"),
        ("arrêter", "arrête arrêtes arrête arrêtons arrêtez arrêtent", "arrêterai", "arrêté"),
        ("voir", "vois vois voit voyons voyez voient", "verrai", "vu"),
        ("envoyer", "envoie envoies envoie envoyons envoyez envoient", "enverrai", "envoyé"),
    ],
)
def test_conjugations(infinitive, present, first_future, participle):
    forms = conjugate(infinitive)
    assert " ".join(forms.present) == present
    assert (forms.future[0], forms.participle) == (first_future, participle)


def test_every_verb_of_the_lexicon_has_six_forms():
    for found in VERBS:
        forms = conjugate(found.fr)
        assert len(forms.present) == len(forms.future) == 6, found
        assert all(" " not in form for form in (*forms.present, *forms.future))


NUMBERS = {
    1: "un", 16: "seize", 17: "dix-sept", 20: "vingt", 21: "vingt et un", 22: "vingt-deux",
    60: "soixante", 61: "soixante et un", 69: "soixante-neuf", 70: "soixante-dix",
    71: "soixante et onze", 72: "soixante-douze", 79: "soixante-dix-neuf", 80: "quatre-vingts",
    81: "quatre-vingt-un", 89: "quatre-vingt-neuf", 90: "quatre-vingt-dix",
    91: "quatre-vingt-onze", 97: "quatre-vingt-dix-sept", 99: "quatre-vingt-dix-neuf", 100: "cent",
}  # fmt: skip


def test_numbers():
    assert {n: number_fr(n) for n in NUMBERS} == NUMBERS
    for spell in (number_en, number_fr):
        assert len({spell(n) for n in range(101)}) == 101
    feminine = {n for n in range(1, 101) if number_fr(n, female=True) != number_fr(n)}
    assert feminine == {1, 21, 31, 41, 51, 61, 81}
