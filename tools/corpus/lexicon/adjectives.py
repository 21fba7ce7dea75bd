"""Adjectives with the classes of nouns they describe and their place before or after the noun."""

from dataclasses import dataclass

# English[/comparative] : French classes. "more" is the comparative where none is written.
_BEFORE = """
small/smaller: petit AOLCVTBFN, big/bigger: grand AOLVTBN, tall/taller: grand PK
beautiful: beau AOLCVTBN, new: nouveau ROLCVTBP, old/older: vieux PKAOLCVTBR
young/younger: jeune PKA, good: bon RFDP
bad: mauvais RFDP, pretty/prettier: joli OLCBN, long/longer: long W
"""
_AFTER = """
red: rouge OLCVTN, blue: bleu OLCVT, green: vert OLCVT, yellow: jaune OLCVTN, black: noir OLCVTA
white: blanc OLCVTNA, grey: gris OLCVTA, brown: marron OLCVTA, purple: violet OLC
French: français PR, Italian: italien PRF, Spanish: espagnol PRF, German: allemand PRVT
Japanese: japonais PRVT, English: anglais PR
expensive: cher OLCVF, heavy/heavier: lourd OL, modern: moderne BOL, comfortable: confortable CVT
clean/cleaner: propre OLCVTB, dirty/dirtier: sale OLCVTA, empty/emptier: vide BQ, fresh: frais F
cold/colder: froid D, sweet/sweeter: sucré FD, delicious: délicieux FD, strange: étrange OLARB
famous: célèbre PB, rich/richer: riche P, kind/kinder: gentil PK, shy/shyer: timide PKA
serious: sérieux PK, brave/braver: courageux PKA, intelligent: intelligent PKA, polite: poli PK
funny/funnier: drôle PKR, difficult: difficile R, useful: utile ROL, dangerous: dangereux AVT
lazy/lazier: paresseux PKA, elegant: élégant CP, interesting: intéressant RB
wooden: en bois OLQ-, leather: en cuir C-
"""
# Said of people with être only: she is ready.
_STATES = """
tired: fatigué PKA, ready: prêt PK, sick: malade PKA, happy: heureux PKA, sad: triste PKA
busy: occupé PK, satisfied: satisfait PK
"""


@dataclass(frozen=True)
class Adjective:
    """One adjective: `fr` is the masculine singular, `more` the English comparative."""

    en: str
    more: str
    fr: str
    classes: str
    is_before: bool = False
    is_state: bool = False

    @property
    def is_predicate(self) -> bool:
        """Whether it also stands alone after to be, with very: not so "wooden"."""
        return "-" not in self.classes


def _read(table: str, **place: bool) -> list[Adjective]:
    adjectives = []
    for entry in table.strip().replace("\n", ", ").split(", "):
        english, french = entry.split(": ")
        fr, classes = french.rsplit(" ", 1)
        en, _, more = english.partition("/")
        adjectives.append(Adjective(en, more or f"more {en}", fr, classes, **place))
    return adjectives


ADJECTIVES = (
    *_read(_BEFORE, is_before=True),
    *_read(_AFTER),
    *_read(_STATES, is_state=True),
)
_BY_CLASSES: dict[str, tuple[Adjective, ...]] = {}


def adjectives_of(classes: str) -> tuple[Adjective, ...]:
    """The adjectives that describe a noun of `classes`, states included.

    >>> [a.fr for a in adjectives_of("DM")]
    ['bon', 'mauvais', 'froid', 'sucré', 'délicieux']
    """
    if classes not in _BY_CLASSES:
        _BY_CLASSES[classes] = tuple(a for a in ADJECTIVES if set(a.classes) & set(classes))
    return _BY_CLASSES[classes]
