"""Verbs with their English forms, their French infinitive and what may follow them."""

from dataclasses import dataclass

# kind: base/past[/third person] = French infinitive, what may follow.
# object: classes of nouns; person: a person, after à; about: classes, after de; give: classes;
# self: reflexive; alone: nothing; move: to a place (à, de, dans), with être.
_TABLE = """
object: eat/ate = manger F; drink/drank = boire D; buy/bought = acheter FOLCVRDN
object: sell/sold = vendre FOLCVRN; find/found = trouver OLCRAN; lose/lost = perdre OCR
object: look for/looked for/looks for = chercher OCRA; see/saw = voir PABVTO
object: look at/looked at/looks at = regarder PALBVTN; read/read = lire R; write/wrote = écrire W
object: wear/wore = porter C; wash/washed/washes = laver CVTA; repair/repaired = réparer VTOL
object: break/broke = casser OL; open/opened = ouvrir Q; close/closed = fermer Q
object: paint/painted = peindre BNL; choose/chose = choisir FOLCVRN; borrow/borrowed = emprunter ORV
object: keep/kept = garder OCR; hide/hid = cacher ORC; forget/forgot = oublier OCR
object: prepare/prepared = préparer F; taste/tasted = goûter FD
object: order/ordered = commander FD; bring/brought = apporter FORD; serve/served = servir FD
object: visit/visited = visiter B; build/built = construire B; draw/drew = dessiner ABNL
object: photograph/photographed = photographier ABPNT; invite/invited = inviter PK
object: help/helped = aider PK; thank/thanked = remercier PK; meet/met = rencontrer PK
object: follow/followed = suivre PKA; listen to/listened to/listens to = écouter PK
object: wait for/waited for/waits for = attendre PKT; hear/heard = entendre PKA
object: call/called = appeler PK; understand/understood = comprendre PKR
object: take/took = prendre T; admire/admired = admirer PBN
object: receive/received = recevoir RW; feed/fed = nourrir A
object: touch/touched/touches = toucher OLAN
like: like/liked = aimer FDA; hate/hated = détester FDA; prefer/preferred = préférer FDA
person: speak to/spoke to/speaks to = parler; answer/answered = répondre
person: smile at/smiled at/smiles at = sourire; think of/thought of/thinks of = penser
person: obey/obeyed = obéir
about: talk about/talked about/talks about = parler PKBR
about: dream of/dreamed of/dreams of = rêver BVK; need/needed = avoir:besoin OLCVR
give: give/gave = donner FOCRN; show/showed = montrer OCR; send/sent = envoyer RW
give: lend/lent = prêter OCVR; offer/offered = offrir OCFRN
self: get up/got up/gets up = lever; wash/washed/washes = laver; rest/rested = reposer
self: go to bed/went to bed/goes to bed = coucher; get dressed/got dressed/gets dressed = habiller
self: wake up/woke up/wakes up = réveiller; have fun/had fun/has fun = amuser
self: hurry/hurried = dépêcher; stop/stopped = arrêter
alone: work/worked = travailler; sleep/slept = dormir; sing/sang = chanter; dance/danced = danser
alone: laugh/laughed = rire; cry/cried = pleurer; run/ran = courir; swim/swam = nager
alone: eat/ate = manger
move: go to/went to/goes to = aller à; arrive at/arrived at/arrives at = arriver à
move: come to/came to/comes to = venir à; return to/returned to/returns to = retourner à
move: stay at/stayed at/stays at = rester à; go into/went into/goes into = entrer dans
move: come back from/came back from/comes back from = revenir de
move: go out of/went out of/goes out of = sortir de
leave: leave/left = partir; arrive/arrived = arriver; go out/went out/goes out = sortir
leave: come back/came back/comes back = revenir
say: say/said = dire; think/thought = penser; know/knew = savoir; hope/hoped = espérer
modal: want to/wanted to/wants to = vouloir; like to/liked to/likes to = aimer
modal: can = pouvoir; must = devoir; hope to/hoped to/hopes to = espérer
"""

_WITH_BE = frozenset(
    {"aller", "arriver", "venir", "retourner", "rester", "entrer", "revenir", "sortir", "partir"}
)


@dataclass(frozen=True)
class Verb:
    """One verb of both languages; `follows` is what its kind says may come after it."""

    kind: str
    base: str
    past: str
    third: str
    fr: str
    follows: str
    particle: str = ""  # a noun that belongs to the French verb: avoir besoin

    @property
    def is_reflexive(self) -> bool:
        """Whether French says it of oneself: se lever."""
        return self.kind == "self"

    @property
    def has_be(self) -> bool:
        """Whether its passé composé is made with être."""
        return self.is_reflexive or self.fr in _WITH_BE


def _third(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def _read() -> tuple[Verb, ...]:
    verbs = []
    for line in _TABLE.strip().splitlines():
        kind, entries = line.split(": ", 1)
        for entry in entries.split("; "):
            english, french = entry.split(" = ")
            base, past, third = (*english.split("/"), "", "")[:3]
            fr, _, follows = french.partition(" ")
            fr, _, particle = fr.partition(":")
            verbs.append(Verb(kind, base, past, third or _third(base), fr, follows, particle))
    return tuple(verbs)


VERBS = _read()


def verbs_of(kind: str) -> tuple[Verb, ...]:
    """The verbs of one kind.

    >>> [verb.fr for verb in verbs_of("modal")]
    ['vouloir', 'aimer', 'pouvoir', 'devoir', 'espérer']
    """
    return tuple(verb for verb in VERBS if verb.kind == kind)
