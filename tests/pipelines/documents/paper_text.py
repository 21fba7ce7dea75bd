"""References and prose made up at random, written as papers write them."""

import random
from collections.abc import Callable

SURNAMES = [
    name.replace("|", " ")
    for name in """
    Smith Johnson Müller García O'Neil van|der|Berg de|la|Cruz Håkansson Žižek Šimic Çelik Kowalski
    Ivanov Tanaka Li Wang Zhang Ng Lê El-Sayed Garcia-Molina Dupont Rossi Silva Öztürk McDonald
    MacKay Fernández Sørensen Petrovic Schölkopf Gauß Kim Park Singh Patel Hernandez-Orallo Lévy
    Björk Núñez Vapnik Zimmermann Abadi Brown Chen Devlin Eisner Fielding Goodfellow Hinton Jurafsky
    Kaplan Manning Quirk Radford Socher Titov Ushakov Vaswani Weston Xu Yamada Bengio Cho Dyer
    """.split()  # noqa: SIM905
]
FORENAMES = """
Anna Björn Carla David Élodie Frank Grace Hiro Ivan José Karin Luis Maria Noam Olga Peter Qing René
Sofía Thomas Ursula Viktor Wei Xavier Yoko Zoë
""".split()  # noqa: SIM905
NOUNS = """
network model parser algorithm database language representation inference protein cell graph
classifier translation summarization optimization estimation regularization transformer corpus
annotation benchmark evaluation framework architecture memory attention embedding clustering
regression sequence retrieval
""".split()  # noqa: SIM905
ADJECTIVES = """
neural efficient probabilistic self-supervised cross-lingual state-of-the-art large-scale
hierarchical unsupervised distributed low-rank end-to-end graph-based long-term bidirectional
contextual Bayesian statistical robust sparse multilingual discriminative recurrent semantic
approximate
""".split()  # noqa: SIM905
TAILS = """
for information extraction|in biomedical literature|with limited supervision|from 1990 to 2010|
under distribution shift|of the 21st century: a survey|using conditional random fields|at TREC 2004|
with 100 languages|for low-resource settings|in the wild|: theory and practice|without tears|
and its applications to bioinformatics|: lessons from 25 years of research|revisited|
through iterative refinement|over structured data|for question answering and dialogue
""".replace("\n", "").split("|")
JOURNALS = [
    "Journal of Machine Learning Research", "Computational Linguistics", "Bioinformatics", "Nature",
    "Communications of the ACM", "IEEE Transactions on Pattern Analysis and Machine Intelligence",
    "Information Processing and Management", "Proceedings of the National Academy of Sciences",
    "Machine Learning", "Physical Review Letters", "The Computer Journal", "Zeitschrift für Physik",
    "Revista Española de Lingüística",
]  # fmt: skip
VENUES = [
    "Proceedings of the 45th Annual Meeting of the Association for Computational Linguistics",
    "Advances in Neural Information Processing Systems 26",
    "Proc. Int. Conf. on Machine Learning (ICML)",
    "Proceedings of the 2014 Conference on Empirical Methods in Natural Language Processing",
    "Proc. 12th Symp. Operating Systems Design and Implementation",
    "International Conference on Learning Representations",
]
CITIES = ["New York, NY", "Cambridge, MA", "Berlin", "San Francisco, CA, USA", "Paris, France"]
PUBLISHERS = ["Springer", "MIT Press", "Cambridge University Press", "Springer-Verlag", "ACM"]
GLUE = "the of we a in is and that for with this to on which are by can from as an our".split()  # noqa: SIM905
VERBS = "show propose train evaluate compare report measure improve describe consider".split()  # noqa: SIM905


class Entry:
    """What a reference says, whatever its style."""

    def __init__(self, rng: random.Random) -> None:
        count = rng.choice([1, 1, 2, 2, 2, 3, 3, 4, 5, 7])
        self.authors = [
            (rng.choice(SURNAMES), [rng.choice(FORENAMES) for _ in range(rng.choice([1, 1, 2]))])
            for _ in range(count)
        ]
        self.year = str(rng.randint(1965, 2024))
        self.title = title(rng)
        self.is_journal = rng.random() < 0.5
        self.venue = rng.choice(JOURNALS if self.is_journal else VENUES)
        self.volume, self.issue = rng.randint(1, 99), rng.randint(1, 12)
        self.first = rng.randint(1, 1800)
        self.last = self.first + rng.randint(5, 40)
        self.city, self.publisher = rng.choice(CITIES), rng.choice(PUBLISHERS)
        within = f"{rng.choice(['s', 'j.', ''])}{rng.randint(10**6, 10**8)}"
        self.doi = f"10.{rng.randint(1000, 9999)}/{within}.{rng.randint(10, 9999)}"
        self.link = rng.random()

    @property
    def key(self) -> tuple[str, str]:
        return (self.authors[0][0].casefold(), self.year)

    @property
    def address(self) -> str:
        """At the end of some of them: a DOI or a URL."""
        if self.link < 0.15:
            return f" https://doi.org/{self.doi}"
        if self.link < 0.25:
            return f" doi:{self.doi}"
        if self.link < 0.35:
            word = self.title.split()[0].lower()
            return (
                f" URL http://www.example-site.org/papers/{self.year}/{self.first}/{word}_final.pdf"
            )
        return ""


def title(rng: random.Random) -> str:
    words = [rng.choice(ADJECTIVES), rng.choice(NOUNS)]
    if rng.random() < 0.6:
        words = [rng.choice(ADJECTIVES), *words]
    if rng.random() < 0.4:
        words += ["and", rng.choice(ADJECTIVES), rng.choice(NOUNS)]
    tail = rng.choice(TAILS)
    text = " ".join(words) + ("" if tail.startswith(":") else " ") + tail
    return text[0].upper() + text[1:]


def initials(names: list[str], *, dots: bool = True, space: str = " ") -> str:
    return space.join(name[0] + ("." if dots else "") for name in names)


def joined(names: list[str], last: str, most: int = 99) -> str:
    if len(names) > most:
        return f"{names[0]} et al."
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + last + names[-1]


def apa(e: Entry) -> str:
    names = joined([f"{s}, {initials(f)}" for s, f in e.authors], ", & ")
    where = (
        f"{e.venue}, {e.volume}({e.issue}), {e.first}–{e.last}"
        if e.is_journal
        else f"In {e.venue} (pp. {e.first}–{e.last}). {e.city}: {e.publisher}"
    )
    return f"{names} ({e.year}). {e.title}. {where}.{e.address}"


def ieee(e: Entry) -> str:
    names = joined(
        [f"{initials(f)} {s}" for s, f in e.authors], ", and " if len(e.authors) > 2 else " and ", 6
    )
    where = (
        f"{e.venue}, vol. {e.volume}, no. {e.issue}, pp. {e.first}–{e.last}, {e.year}"
        if e.is_journal
        else f"in {e.venue}, {e.city}, {e.year}, pp. {e.first}–{e.last}"
    )
    return f"{names}, “{e.title},” {where}.{e.address}"


def acm(e: Entry) -> str:
    names = joined(
        [f"{' '.join(f)} {s}" for s, f in e.authors], ", and " if len(e.authors) > 2 else " and "
    )
    where = (
        f"{e.venue} {e.volume}, {e.issue} ({e.year}), {e.first}–{e.last}"
        if e.is_journal
        else f"In {e.venue}. {e.publisher}, {e.city}, {e.first}–{e.last}"
    )
    return f"{names}. {e.year}. {e.title}. {where}.{e.address}"


def acl(e: Entry) -> str:
    names = joined(
        [f"{' '.join(f)} {s}" for s, f in e.authors], ", and " if len(e.authors) > 2 else " and "
    )
    where = (
        f"{e.venue}, {e.volume}({e.issue}):{e.first}–{e.last}"
        if e.is_journal
        else f"In {e.venue}, pages {e.first}–{e.last}, {e.city}. {e.publisher}"
    )
    return f"{names}. {e.year}. {e.title}. {where}.{e.address}"


def nature(e: Entry) -> str:
    names = joined([f"{s}, {initials(f)}" for s, f in e.authors], " & ", 5)
    where = (
        f"{e.venue} {e.volume}, {e.first}–{e.last} ({e.year})."
        if e.is_journal
        else f"in {e.venue} {e.first}–{e.last} ({e.publisher}, {e.year})."
    )
    return f"{names} {e.title}. {where}{e.address}"


def springer(e: Entry) -> str:
    names = joined([f"{s}, {initials(f, space='')}" for s, f in e.authors], ", ")
    where = (
        f"{e.venue} {e.volume}({e.issue}), {e.first}–{e.last} ({e.year})"
        if e.is_journal
        else f"In: {e.venue}, pp. {e.first}–{e.last}. {e.publisher}, {e.city} ({e.year})"
    )
    return f"{names}: {e.title}. {where}{'.' if not e.address else '.' + e.address}"


def vancouver(e: Entry) -> str:
    names = joined([f"{s} {initials(f, dots=False, space='')}" for s, f in e.authors], ", ", 6)
    where = f"{e.year};{e.volume}({e.issue}):{e.first}–{e.last}"
    return f"{names}. {e.title}. {e.venue}. {where}.{e.address}"


def chicago(e: Entry) -> str:
    (surname, given), *others = e.authors
    names = joined(
        [f"{surname}, {' '.join(given)}", *(f"{' '.join(f)} {s}" for s, f in others)], ", and "
    )
    where = (
        f"{e.venue} {e.volume} ({e.issue}): {e.first}–{e.last}"
        if e.is_journal
        else f"In {e.venue}, {e.first}–{e.last}. {e.city}: {e.publisher}"
    )
    return f"{names}. {e.year}. “{e.title}.” {where}.{e.address}"


Style = Callable[[Entry], str]
STYLES: dict[str, Style] = {
    f.__name__: f for f in (apa, ieee, acm, acl, nature, springer, vancouver, chicago)
}


def references(rng: random.Random, style: str, count: int, *, by_author: bool) -> list[str]:
    """As many references of one style, sorted by author where they have no numbers."""
    entries = [Entry(rng) for _ in range(count)]
    if by_author:
        entries.sort(key=lambda entry: entry.key)
    return [STYLES[style](entry).replace("  ", " ").replace("..", ".") for entry in entries]


def sentence(rng: random.Random) -> str:
    words = ["We", rng.choice(VERBS), "a"]
    for _ in range(rng.randint(3, 9)):
        words += [rng.choice(ADJECTIVES), rng.choice(NOUNS), rng.choice(GLUE)]
    words += [
        rng.choice(NOUNS),
        rng.choice(
            [
                f"({rng.choice(SURNAMES)}, {rng.randint(1970, 2020)})",
                f"[{rng.randint(1, 30)}]",
                "again",
            ]
        ),
    ]
    return " ".join(words) + "."


def paragraph(rng: random.Random, sentences: int = 5) -> str:
    return " ".join(sentence(rng) for _ in range(sentences))
