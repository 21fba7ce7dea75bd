"""Nouns with gender and class. A class says which verbs and adjectives a noun goes with.

P person, K relative, A animal, F food, D drink, R something to read, O object one carries,
L furniture, C clothes, V own vehicle, T public vehicle, B building, N plant; S has no plural here,
Y is young, Q marks what can be opened, W what one writes, M a mass (no plural).
"""

from dataclasses import dataclass

from tools.corpus.lexicon.plurals import plural_en, plural_fr

# English[/plural] : French[/plural] gender; one class for each line's first word.
_TABLE = """
K brother: frère m, sister: sœur f, uncle: oncle m, aunt: tante f
K cousin: cousin m, son: fils/fils m, daughter: fille f, friend: ami m
KS father: père m, mother: mère f, grandmother: grand-mère f, grandfather: grand-père m
P teacher: professeur m, doctor: médecin m, nurse: infirmière f, baker: boulanger m
P neighbour: voisin m, singer: chanteur m, actress: actrice f, actor: acteur m
P waitress: serveuse f, waiter: serveur m, student: étudiant m
P man/men: homme m, woman/women: femme f
PY child/children: enfant m, girl: fille f, boy: garçon m
P lady: dame f
P lawyer: avocat m, engineer: ingénieur m, farmer: fermier m, queen: reine f, king: roi m
P princess: princesse f, writer: écrivain m, artist: artiste m, journalist: journaliste m
P tourist: touriste m, hero/heroes: héros/héros m, heroine: héroïne f, customer: client m
P witch: sorcière f
A dog: chien m, cat: chat m, horse: cheval m, bird: oiseau m, owl: hibou m, rabbit: lapin m
A cow: vache f, hen: poule f, mouse/mice: souris f, turtle: tortue f, donkey: âne m
A spider: araignée f, bear: ours/ours m, hamster: hamster m, hedgehog: hérisson m
A swallow: hirondelle f, duck: canard m, bee: abeille f, wolf/wolves: loup m
F apple: pomme f, orange: orange f, pear: poire f, egg: œuf m, tomato/tomatoes: tomate f
F potato/potatoes: pomme de terre/pommes de terre f, cake: gâteau m, sandwich: sandwich m
F lobster: homard m, bean: haricot m, carrot: carotte f, onion: oignon m, cherry: cerise f
F strawberry: fraise f, mushroom: champignon m, oyster: huître f, banana: banane f
F lemon: citron m, apricot: abricot m, peach: pêche f, pancake: crêpe f
FM bread: pain m, cheese: fromage m, meat: viande f, rice: riz m, butter: beurre m
FM jam: confiture f, soup: soupe f, honey: miel m, ham: jambon m, chocolate: chocolat m
DM water: eau f, milk: lait m, coffee: café m, tea: thé m, wine: vin m, beer: bière f
DM lemonade: limonade f
RQ book: livre m, magazine: magazine m
R newspaper: journal m
RWQ letter: lettre f
RW poem: poème m, novel: roman m, story: histoire f, article: article m, message: message m
L table: table f, chair: chaise f, bed: lit m, mirror: miroir m, clock: horloge f, sofa: canapé m
L ladder: échelle f, piano: piano m
O key: clé f, knife/knives: couteau m, fork: fourchette f, plate: assiette f, glass: verre m
O umbrella: parapluie m, vase: vase m, telephone: téléphone m, computer: ordinateur m
O pencil: crayon m, toy: jouet m, ball: ballon m, axe: hache f, tool: outil m, lamp: lampe f
O pillow: oreiller m, guitar: guitare f, harp: harpe f, ring: bague f
O needle: aiguille f
N flower: fleur f, plant: plante f, rose: rose f, tree: arbre m
OQ box: boîte f, bag: sac m, bottle: bouteille f, present: cadeau m
LQ wardrobe: armoire f, door: porte f, window: fenêtre f
C dress: robe f, shirt: chemise f, coat: manteau m, hat: chapeau m, skirt: jupe f
C shoe: chaussure f, scarf/scarves: écharpe f, sweater: pull m, jacket: veste f, glove: gant m
C sock: chaussette f, uniform: uniforme m, boot: botte f, tie: cravate f
V car: voiture f, bicycle: vélo m, boat: bateau m, truck: camion m, motorbike: moto f
T plane: avion m, bus: bus/bus m, train: train m, ambulance: ambulance f
B house: maison f, school: école f, church: église f, station: gare f, hotel: hôtel m
B hospital: hôpital m, restaurant: restaurant m, museum: musée m, market: marché m
B library: bibliothèque f, office: bureau m, theatre: théâtre m, university: université f
B airport: aéroport m, bakery: boulangerie f, pharmacy: pharmacie f, castle: château m
B bank: banque f, factory: usine f, cinema: cinéma m, inn: auberge f, farm: ferme f
B shop: magasin m
"""

# People by name: an English sentence keeps the name as it is.
NAMES = {
    "Marie": True,
    "Claire": True,
    "Anne": True,
    "Alice": True,
    "Sophie": True,
    "Julie": True,
    "Paul": False,
    "Pierre": False,
    "Louis": False,
    "Antoine": False,
    "Thomas": False,
    "Olivier": False,
}


@dataclass(frozen=True)
class Noun:
    """One noun of both languages; `female` is the French gender."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    female: bool
    classes: str

    @property
    def is_mass(self) -> bool:
        """Whether it takes a partitive article and no plural: some water, de l'eau."""
        return "M" in self.classes


def _read() -> tuple[Noun, ...]:
    nouns = []
    for line in _TABLE.strip().splitlines():
        classes, entries = line.split(" ", 1)
        for entry in entries.split(", "):
            english, french = entry.split(": ")
            french, gender = french.rsplit(" ", 1)
            en, _, en_plural = english.partition("/")
            fr, _, fr_plural = french.partition("/")
            nouns.append(
                Noun(
                    en=en,
                    en_plural=en_plural or plural_en(en),
                    fr=fr,
                    fr_plural=fr_plural or plural_fr(fr),
                    female=gender == "f",
                    classes=classes,
                )
            )
    return tuple(nouns)


NOUNS = _read()
_BY_CLASSES: dict[str, tuple[Noun, ...]] = {}


def nouns_of(classes: str) -> tuple[Noun, ...]:
    """Every noun of at least one of `classes`; a verb's objects, for example.

    >>> [noun.en for noun in nouns_of("D")][:3]
    ['water', 'milk', 'coffee']
    """
    if classes not in _BY_CLASSES:
        _BY_CLASSES[classes] = tuple(n for n in NOUNS if set(n.classes) & set(classes))
    return _BY_CLASSES[classes]
