"""Rows of the reference parser: AnyStyle's references, and as many articles written another way.

Of AnyStyle's 1,514 references 37 have no title, and 19 words hold a volume with its pages
(``32(6):67-71``). In physics most references look like that. So each article is there once more,
in one of the ways of :data:`STYLES`: its authors, with its title or without, its journal or one of
:data:`JOURNALS`, and numbers that are drawn.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from examples.prepare_references import (
    Field,
    Reference,
    downloaded,
    read_rows,
    read_sequences,
    row_of,
)
from textmill.pipelines.documents.references import leading_label

JOURNALS = (
    "A&A", "AJ", "ApJ", "ApJS", "Acta Phys. Polon. {s}", "Ann. Phys.", "Appl. Phys. Lett.",
    "Ann. Rev. Nucl. Part. Sci.", "Astrophys. J.", "Chem. Phys. Lett.", "Class. Quantum Grav.",
    "Commun. Math. Phys.", "Comput. Phys. Commun.", "Eur. Phys. J. {s}", "Europhys. Lett.",
    "Icarus", "Int. J. Mod. Phys. {s}", "J. Am. Chem. Soc.", "J. Appl. Phys.", "J. Chem. Phys.",
    "J. High Energy Phys.", "J. Math. Phys.", "J. Phys. {s}", "JCAP", "JHEP", "JINST",
    "Living Rev. Relativity", "MNRAS", "Mod. Phys. Lett. {s}", "Mon. Not. R. Astron. Soc.",
    "Nat. Commun.", "Nature", "Nature Phys.", "New J. Phys.", "Nucl. Instrum. Meth. {s}",
    "Nucl. Phys. {s}", "Opt. Lett.", "PASP", "Phys. Lett.", "Phys. Lett. {s}", "Phys. Rept.",
    "Phys. Rev.", "Phys. Rev. Lett.", "Phys. Rev. {s}", "Phys. Scr.", "Physica {s}",
    "Proc. Natl. Acad. Sci.", "Prog. Theor. Phys.", "Rept. Prog. Phys.", "Rev. Mod. Phys.",
    "Science", "Z. Phys. {s}",
)  # fmt: skip
"""Journals of physics as they are abbreviated; ``{s}`` is the letter of a section."""
STYLES = (
    "journal={j} volume={v}, pages={p} date=({y})",
    "journal={j} volume={v}, pages={p} date=({y})",
    "journal={j} volume={v} date=({y}) pages={p}",
    "journal={j} volume={s}{v}, pages={p} date=({y})",
    "date={y}, journal={j}, volume={v}, pages={p}",
    "journal={j} volume={v}({i}):{p}, date={y}",
    "journal={j}, volume={v}:{p}, date={y}",
    "journal={j} volume={y};{v}({i}):{p}",
    "journal={j}, volume=vol. volume={v}, volume=no. volume={i}, pages=pp. pages={p}, date={y}",
    "journal={j}, volume=vol. volume={v}, pages=p. pages={p}, date={y}",
    "note=arXiv:{a}",
    "date=({y})",
)
"""What stands behind authors and title: for each word, or words, ``field=text``."""
PREPRINTS = (
    "note=arXiv:{a}",
    "note=arXiv:{a} note=[{c}]",
    "note=[arXiv:{a}] note=[INSPIRE]",
    "note=[arXiv:{a} note=[{c}]]",
    "note={c}/{o}",
    "note=[{c}/{o}]",
)
"""What may stand behind these."""
ARCHIVES = ("astro-ph", "cond-mat", "gr-qc", "hep-ex", "hep-ph", "hep-th", "nucl-th", "quant-ph")
GROUPS = (
    "ALICE Collaboration", "ATLAS Collaboration", "BABAR Collaboration", "Belle Collaboration",
    "CDF Collaboration", "CMS Collaboration", "Hadron Spectrum", "LHCb Collaboration",
    "LIGO Scientific Collaboration", "Particle Data Group", "Planck Collaboration",
)  # fmt: skip
SECTIONS = "ABCDEX"


@dataclass
class Written:
    """A reference that is written word by word."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def put(self, tag: str, words: Iterable[str]) -> None:
        """Adds words of a field; nothing for those that are empty."""
        some = [word for word in words if word]
        self.words += some
        self.tags += [tag] * len(some)

    def reference(self) -> Reference:
        return [Field(tag, word) for tag, word in zip(self.tags, self.words, strict=True)]


def ended(words: Sequence[str], sign: str) -> list[str]:
    """Words with another sign at their end; the full stop of an initial stays."""
    last = words[-1].rstrip(",;:")
    if not re.fullmatch(r"(?:.*[A-Z]|al)\.", last):
        last = last.rstrip(".")
    return [*words[:-1], last if sign == "." and last.endswith(".") else last + sign]


def people(draw: random.Random, words: Sequence[str]) -> list[str]:
    """Authors, with initials as some journals set them; sometimes of a group."""
    text, chance = " ".join(words), draw.random()
    if chance < 0.25:
        text = re.sub(r"(?<=\b[A-Z]\.) (?=[A-Z]\.)", "", text)  # J.M. Lee
    elif chance < 0.4:
        text = re.sub(r"(?<=\b[A-Z]\.) (?=[A-Z])", "", text)  # J.M.Lee
    found, chance = text.split(), draw.random()
    if chance < 0.06:
        return f"{draw.choice(GROUPS)},".split() + found
    if chance < 0.12:
        return [*ended(found, ""), *f"({draw.choice(GROUPS)})".split()]
    return found


def numbers(draw: random.Random) -> dict[str, str]:
    """What a style's letters stand for: volume, issue, pages, year, section, preprint."""
    first, section = draw.randint(1, 3000), draw.choice(SECTIONS)
    last = first + draw.randint(1, 40)
    forms = (f"{first}", f"{first}-{last}", f"{first}\u2013{last}", f"{section}{first}")
    month, year = draw.randint(1, 12), draw.randint(1950, 2025)
    return {
        "v": str(draw.randint(1, 900)) if draw.random() < 0.8 else f"{month:02}",
        "i": str(draw.randint(1, 12)),
        "p": draw.choice((*forms, f"{draw.randint(1, 99999):06}")),
        "y": str(year),
        "s": section,
        "a": f"{draw.randint(7, 25):02}{month:02}.{draw.randint(1, 9999):0{draw.choice((4, 5))}}",
        "c": draw.choice(ARCHIVES),
        "o": f"{year % 100:02}{month:02}{draw.randint(1, 999):03}",
    }


def pieces(style: str, values: dict[str, str]) -> list[tuple[str, list[str]]]:
    """The fields of a style with their words."""
    parts = (piece.partition("=") for piece in style.split())
    return [(tag, text.format(**values).split()) for tag, _, text in parts]


def another_way(draw: random.Random, fields: dict[str, list[str]]) -> Reference:
    """An article in a style that is drawn; half of them have no title."""
    style, values = draw.choice(STYLES), numbers(draw)
    journal = draw.choice(JOURNALS).format(s=values["s"])
    if draw.random() < 0.4:
        journal = " ".join(fields["journal"]).strip(" .,;")
    if "{s}{v}" in style:
        journal = re.sub(r" [A-EX]$", "", journal)
    parts = pieces(style, {**values, "j": journal})
    made, is_short = Written(), len(parts) == 1
    early = parts.pop(0) if parts[0][0] == "date" and not is_short else None
    made.put("author", ended(people(draw, fields["author"]), draw.choice((",", ",", ",", ".", ""))))
    if early:
        made.put(*early)
    share = 0.4 if not is_short else 0.9 if parts[0][0] == "date" else 0.5
    if "title" in fields and draw.random() < share:
        title = ended(fields["title"], draw.choice((",", ",", ".")))
        if draw.random() < 0.25 and title[0][0] not in "\"'\u2018\u201c":
            title = [f"\u201c{title[0]}", *title[1:]]
            title[-1] += "\u201d"
        made.put("title", title)
    for tag, words in parts:
        made.put(tag, words)
    if parts[-1][0] != "note" and draw.random() < 0.4:
        made.words[-1] += draw.choice((",", ""))
        for tag, words in pieces(draw.choice(PREPRINTS), values):
            made.put(tag, words)
    if draw.random() < 0.6:
        made.words[-1] += "."
    return made.reference()


def without_label(reference: Reference) -> Reference:
    """A reference without the label it begins with, which the pipeline takes away, too."""
    words = [Field(label, word) for label, text in reference for word in text.split()]
    text = " ".join(word for _, word in words)
    return words[len(text[: leading_label(text)[1]].split()) :] or words


def rows(references: Iterable[Reference]) -> Iterator[str]:
    """The lines of JSON that the model learns from: all references, then articles again."""
    known = [*map(without_label, references)]
    yield from map(row_of, known)
    draw = random.Random(0)  # the same rows each time
    for reference in known:
        fields = defaultdict[str, list[str]](list)
        for label, word in reference:
            fields[label].append(word)
        if {"author", "journal"} <= set(fields):
            yield row_of(another_way(draw, fields))


def read(data: Path) -> list[Reference]:
    """AnyStyle's references, of ``anystyle.core.jsonl`` or ``core.xml``; fetched if not there."""
    lines = data / "refstrings" / "anystyle.core.jsonl"
    return [*(read_rows(lines) if lines.is_file() else read_sequences(downloaded(data)))]
