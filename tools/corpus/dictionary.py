"""One French word for each English word form: what a pocket dictionary would say."""

from tools.corpus.grammar.conjugation import conjugate
from tools.corpus.grammar.elision import join
from tools.corpus.grammar.numbers import number_en, number_fr
from tools.corpus.lexicon.adjectives import ADJECTIVES
from tools.corpus.lexicon.nouns import NAMES, NOUNS
from tools.corpus.lexicon.verbs import VERBS, Verb

# An empty translation leaves the word out: French has no word for "do" in a question.
_FUNCTION_WORDS = """
the: le, a: un, an: un, some: des, any: de, this: ce, these: ces, my: mon, your: votre, his: son
her: sa, our: notre, their: leur, several: plusieurs, few: quelques, many: beaucoup de, all: tous
i: je, you: vous, he: il, she: elle, we: nous, they: ils, me: me, him: le, us: nous, them: les
is: est, are: sont, am: suis, was: était, were: étaient, be: être, will: , do: , does: , did:
not: ne pas, cannot: ne peut pas, never: jamais, no: non, longer: plus, nothing: rien, can: peut
must: doit, often: souvent, always: toujours, sometimes: parfois, very: très, too: trop
more: plus, less: moins, as: aussi, than: que, that: que, and: et, who: qui, what: que
where: où, when: quand, why: pourquoi, how: comment, there: là, at: à, to: à, in: dans, on: sur
of: de, from: de, into: dans, for: pour, up: , out: dehors, under: sous, behind: derrière
every: chaque, day: jour, days: jours, morning: matin, evening: soir, week: semaine, month: mois
year: année, years: ans, ago: il y a, next: prochain, last: dernier, today: aujourd'hui
yesterday: hier, tomorrow: demain, monday: lundi, mondays: lundis, friday: vendredi
fridays: vendredis, sunday: dimanche, sundays: dimanches, summer: été, winter: hiver
spring: printemps, o'clock: heures, half: demi, past: passé, noon: midi, midnight: minuit
hundred: cent, euros: euros, hungry: faim, thirsty: soif, right: raison, afraid: peur
kitchen: cuisine, garden: jardin, street: rue, living: vivant, room: pièce, forest: forêt
park: parc, home: maison, beach: plage, bridge: pont, wall: mur, village: village
attic: grenier, cellar: cave, bedroom: chambre, violin: violon, organ: orgue
football: football, tennis: tennis, cards: cartes, chess: échecs, bed: lit, dressed: habillé
fun: plaisir, france: France, italy: Italie, spain: Espagne, germany: Allemagne, japan: Japon
canada: Canada, portugal: Portugal, united: Unis, states: États, paris: Paris, lyon: Lyon
play: jouer, plays: joue, played: a joué, live: habiter, lives: habite, cost: coûter
costs: coûte, about: sur, back: retour, get: obtenir, gets: obtient, got: a obtenu
come: venir, go: aller, goes: va
went: est allé, came: est venu, comes: vient, look: regarder, looks: regarde
looked: a regardé, wake: réveiller, wakes: réveille, woke: a réveillé, have: avoir, has: a
had: avait, old: vieux, like: aimer, likes: aime
"""


def _verb_forms(verb: Verb) -> dict[str, str]:
    forms = conjugate(verb.fr)
    reflexive = ("se",) if verb.is_reflexive else ()
    noun = (verb.particle,) if verb.particle else ()
    helper = "est" if verb.has_be else "a"
    return {
        verb.base: join((*reflexive, verb.fr, *noun)),
        verb.third: join((*reflexive, forms.present[2], *noun)),
        verb.past: join((*reflexive, helper, forms.participle, *noun)),
    }


def _build() -> dict[str, str]:
    """Later entries never replace earlier ones: function words come first, then the lexicon."""
    entries: list[tuple[str, str]] = []
    for entry in _FUNCTION_WORDS.strip().replace("\n", ", ").split(", "):
        en, _, fr = entry.partition(":")
        entries.append((en, fr.strip()))
    for noun in NOUNS:
        entries += [(noun.en, noun.fr), (noun.en_plural, noun.fr_plural)]
    for adjective in ADJECTIVES:
        entries.append((adjective.en, adjective.fr))
        more = adjective.more.rsplit(" ", 1)
        if len(more) == 1:
            entries.append((more[0], f"plus {adjective.fr}"))
    entries += [(number_en(n), number_fr(n)) for n in range(1, 100)]
    for verb in VERBS:
        for en, fr in _verb_forms(verb).items():
            entries.append((en.split(" ")[0], fr))
    entries += [(name, name) for name in NAMES]
    words: dict[str, str] = {}
    for en, fr in entries:
        words.setdefault(en.lower(), fr)
    words.pop("", None)
    return words


DICTIONARY = _build()
