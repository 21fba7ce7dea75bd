"""``make results RESULTS=papers``: references of published PDFs, beside refextract and pdftotext.

The papers are not ours to hand on. ``--data`` names a folder with a folder ``papers`` of them,
which has a folder for each set; beside each ``NAME.pdf`` a ``NAME.txt`` has its references, one a
line, as a person reads them on the page. The table names each paper by its SHA-256.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.results.measuring import say
from benchmarks.results.table import markdown, write
from textmill.errors import UserError
from textmill.pipelines.documents import find_references, read_pdf

BEGIN = "<!-- made by make results RESULTS=papers: begin -->"
END = "<!-- made by make results RESULTS=papers: end -->"
COLUMNS = (
    "papers",
    "read by",
    "references",
    "found",
    "exact (%)",
    "split (%)",
    "spurious (%)",
    "s",
)
EACH = ("papers", "SHA-256", "references", "found", "exact", "split")
PEER = "REFEXTRACT_PYTHON"
"""The environment variable that names the Python of an environment with refextract."""
ASKED = (
    "import json, sys; from refextract import extract_references_from_file as read; "
    "print(json.dumps([each['raw_ref'][0] for each in read(sys.argv[1])]))"
)
HEADING = re.compile(r"\W*(?:[\dIVX]+\W+)?(?:references|bibliography|literature)\W*", re.IGNORECASE)
LABEL = re.compile(r"\s*(?:\[[^\]]{1,20}\]|\d{1,3}\.)\s+")
BEGINNING = 18
"""Letters by which a reference that was found is one of the list, and else spurious."""
QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


def by_textmill(path: Path) -> list[str]:
    """The references that textmill finds."""
    return [reference.text for reference in find_references(read_pdf(path))]


def by_refextract(path: Path) -> list[str]:
    """Those of refextract, without their labels."""
    told = subprocess.run(  # the Python that the caller names
        [os.environ[PEER], "-c", ASKED, str(path)], capture_output=True, text=True, check=False
    )
    if told.returncode:
        say(f"{path}: refextract failed: {told.stderr.strip().rpartition(chr(10))[2]}")
    last = told.stdout.strip().rpartition("\n")[2]
    return [LABEL.sub("", text, count=1) for text in json.loads(last or "[]")]


def by_pdftotext(path: Path) -> list[str]:
    """What pdftotext writes below the last heading: split by labels, else by empty lines."""
    program = shutil.which("pdftotext") or "pdftotext"
    told = subprocess.run(  # of the system
        [program, str(path), "-"], capture_output=True, text=True, check=False, errors="replace"
    )
    lines = told.stdout.splitlines()
    headings = [n for n, line in enumerate(lines) if HEADING.fullmatch(line)]
    lines = lines[headings[-1] + 1 :] if headings else []
    labelled = sum(bool(LABEL.match(line)) for line in lines) > len(lines) / 10
    parts = list[list[str]]()
    for before, line in zip(["", *lines], lines, strict=False):
        if LABEL.match(line) if labelled else not before.strip():
            parts.append([])
        if parts and line.strip():
            parts[-1].append(LABEL.sub("", line, count=1) if labelled else line)
    texts = (re.sub(r"-\s+(?=[a-z])", "", " ".join(part)) for part in parts)
    return [text for text in texts if text]


def exact(text: str) -> str:
    """What is compared: all characters but white space, quotation marks and forms of one letter."""
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text.translate(QUOTES)))


def letters(text: str) -> str:
    """Letters and digits alone, without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("\u0131", "i"))
    return "".join(filter(str.isalnum, plain))


@dataclass
class Found:
    """How many references of lists are wanted, found, exact, split right, and of no list."""

    wanted: int = 0
    found: int = 0
    exact: int = 0
    split: int = 0
    spurious: int = 0
    seconds: float = field(default=0.0, compare=False)

    def add(self, wanted: Sequence[str], found: Sequence[str]) -> "Found":
        """Counts a paper."""
        known = {letters(text)[:BEGINNING] for text in wanted}
        self.wanted, self.found = self.wanted + len(wanted), self.found + len(found)
        for name, form in (("exact", exact), ("split", letters)):
            same = Counter(map(form, wanted)) & Counter(map(form, found))
            setattr(self, name, getattr(self, name) + same.total())
        self.spurious += sum(letters(text)[:BEGINNING] not in known for text in found)
        return self

    def row(self, *names: str) -> list[str]:
        """Its row in the table."""
        shares = [100 * n / max(self.wanted, 1) for n in (self.exact, self.split)]
        shares.append(100 * self.spurious / max(self.found, 1))
        counts = [f"{n:,}" for n in (self.wanted, self.found)]
        return [*names, *counts, *(f"{share:.1f}" for share in shares), f"{self.seconds:.0f}"]


def readers() -> Mapping[str, Callable[[Path], list[str]]]:
    """What there is to read papers with."""
    found = {"textmill": by_textmill}
    if os.environ.get(PEER):
        found["refextract"] = by_refextract
    if shutil.which("pdftotext"):
        found["pdftotext and 20 lines"] = by_pdftotext
    return found


def measured(name: str, papers: Sequence[Path]) -> Iterator[tuple[list[str], list[list[str]]]]:
    """A row for each reader of a set of papers; with textmill's, rows for each paper."""
    for reader, read in readers().items():
        of_all, rows = Found(), list[list[str]]()
        for path in papers:
            wanted = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
            start = time.monotonic()
            try:
                found = read(path)
            except UserError as error:
                say(f"{path}: {error}")
                found = []
            of_all.seconds += time.monotonic() - start
            of_all.add(wanted, found)
            own = Found().add(wanted, found)
            counts = map(str, (own.wanted, own.found, own.exact, own.split))
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            rows.append([name, f"`{digest}`", *counts])
        say(f"{name} by {reader}: {of_all}")
        yield of_all.row(f"{len(papers)}, {name}", reader), rows if read is by_textmill else []


def main(data: Path, page: Path) -> None:
    """Measures all sets, and writes the tables."""
    sets = sorted(folder for folder in (data / "papers").glob("*") if folder.is_dir())
    if not sets:
        raise SystemExit(f"{data / 'papers'}: wanted a folder for each set of papers.")
    rows, each = list[list[str]](), list[list[str]]()
    for folder in sets:
        papers = [path.with_suffix(".pdf") for path in sorted(folder.glob("*.txt"))]
        for row, of_papers in measured(folder.name.replace("_", " "), papers):
            rows.append(row)
            each += of_papers
    text = "\n".join([*markdown(COLUMNS, rows), "", *markdown(EACH, each)])
    write(page, text, begin=BEGIN, end=END)
