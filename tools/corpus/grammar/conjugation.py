"""French verbs: présent, futur simple, past participle; and the imparfait of être and avoir.

Persons are counted 0 to 5: je, tu, il, nous, vous, ils.
"""

from dataclasses import dataclass

IMPERFECT = {
    "être": ("étais", "étais", "était", "étions", "étiez", "étaient"),
    "avoir": ("avais", "avais", "avait", "avions", "aviez", "avaient"),
}
_FUTURE = ("ai", "as", "a", "ons", "ez", "ont")

# infinitive: the six forms of the présent | past participle | stem of the futur
_IRREGULAR = """
aller: vais vas va allons allez vont | allé | ir
apprendre: apprends apprends apprend apprenons apprenez apprennent | appris | apprendr
attendre: attends attends attend attendons attendez attendent | attendu | attendr
avoir: ai as a avons avez ont | eu | aur
boire: bois bois boit buvons buvez boivent | bu | boir
comprendre: comprends comprends comprend comprenons comprenez comprennent | compris | comprendr
connaître: connais connais connaît connaissons connaissez connaissent | connu | connaîtr
construire: construis construis construit construisons construisez construisent \
 | construit | construir
courir: cours cours court courons courez courent | couru | courr
devoir: dois dois doit devons devez doivent | dû | devr
dire: dis dis dit disons dites disent | dit | dir
dormir: dors dors dort dormons dormez dorment | dormi | dormir
écrire: écris écris écrit écrivons écrivez écrivent | écrit | écrir
entendre: entends entends entend entendons entendez entendent | entendu | entendr
envoyer: envoie envoies envoie envoyons envoyez envoient | envoyé | enverr
être: suis es est sommes êtes sont | été | ser
faire: fais fais fait faisons faites font | fait | fer
lire: lis lis lit lisons lisez lisent | lu | lir
offrir: offre offres offre offrons offrez offrent | offert | offrir
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent | ouvert | ouvrir
partir: pars pars part partons partez partent | parti | partir
peindre: peins peins peint peignons peignez peignent | peint | peindr
perdre: perds perds perd perdons perdez perdent | perdu | perdr
pouvoir: peux peux peut pouvons pouvez peuvent | pu | pourr
prendre: prends prends prend prenons prenez prennent | pris | prendr
recevoir: reçois reçois reçoit recevons recevez reçoivent | reçu | recevr
répondre: réponds réponds répond répondons répondez répondent | répondu | répondr
revenir: reviens reviens revient revenons revenez reviennent | revenu | reviendr
rire: ris ris rit rions riez rient | ri | rir
savoir: sais sais sait savons savez savent | su | saur
servir: sers sers sert servons servez servent | servi | servir
sortir: sors sors sort sortons sortez sortent | sorti | sortir
sourire: souris souris sourit sourions souriez sourient | souri | sourir
souvenir: souviens souviens souvient souvenons souvenez souviennent | souvenu | souviendr
suivre: suis suis suit suivons suivez suivent | suivi | suivr
vendre: vends vends vend vendons vendez vendent | vendu | vendr
venir: viens viens vient venons venez viennent | venu | viendr
voir: vois vois voit voyons voyez voient | vu | verr
vouloir: veux veux veut voulons voulez veulent | voulu | voudr
"""


@dataclass(frozen=True)
class Conjugation:
    """The forms of one verb: six of the présent, six of the futur, the masculine participle."""

    infinitive: str
    present: tuple[str, ...]
    future: tuple[str, ...]
    participle: str


def _light(stem: str) -> str:
    """The stem of an -er verb before a silent ending: achet -> achèt, nettoy -> nettoi."""
    if stem in ("appel", "rappel", "jet"):
        return stem + stem[-1]
    if stem.endswith("y"):
        return stem[:-1] + "i"
    if stem.endswith(("et", "ev", "en")):  # acheter, lever, promener
        return stem[:-2] + "è" + stem[-1]
    if stem.endswith(("ér", "ét")):  # préférer
        return stem[:-2] + "è" + stem[-1]
    return stem


def _first_group(infinitive: str) -> Conjugation:
    stem = infinitive[:-2]
    light = _light(stem)
    we = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)  # mangeons, commençons
    present = (light + "e", light + "es", light + "e", we + "ons", stem + "ez", light + "ent")
    # é stays in the futur (préférerai, traditional spelling); e and y change (achèterai).
    future = infinitive if "é" in stem[-2:] else light + "er"
    return Conjugation(infinitive, present, tuple(future + e for e in _FUTURE), stem + "é")


def _second_group(infinitive: str) -> Conjugation:
    stem = infinitive[:-1]
    endings = ("s", "s", "t", "ssons", "ssez", "ssent")
    future = tuple(infinitive + e for e in _FUTURE)
    return Conjugation(infinitive, tuple(stem + e for e in endings), future, stem)


def _read_irregular() -> dict[str, Conjugation]:
    table = {}
    for line in _IRREGULAR.strip().splitlines():
        infinitive, forms = line.split(": ")
        present, participle, future = forms.split(" | ")
        table[infinitive] = Conjugation(
            infinitive,
            tuple(present.split()),
            tuple(future + e for e in _FUTURE),
            participle,
        )
    return table


_TABLE = _read_irregular()


def conjugate(infinitive: str) -> Conjugation:
    """All forms of a French verb, without its reflexive pronoun.

    >>> conjugate("manger").present[3], conjugate("acheter").future[2], conjugate("voir").participle
    ('mangeons', 'achètera', 'vu')
    >>> conjugate("choisir").present[5], conjugate("nettoyer").present[0]
    ('choisissent', 'nettoie')
    """
    if infinitive not in _TABLE:
        group = _second_group if infinitive.endswith("ir") else _first_group
        _TABLE[infinitive] = group(infinitive)
    return _TABLE[infinitive]
