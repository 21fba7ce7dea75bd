"""Make train.jsonl and valid.jsonl for tagging/references out of published sets of references.

    python examples/prepare_references.py data/references
    textmill train tagging/references train_data.path=data/references/train.jsonl \
        valid_data.path=data/references/valid.jsonl

Without files it downloads AnyStyle's core.xml, in which Cora's references are, too. It reads three
formats, known by the ending:

- ``.txt``: ParsCit's tagged text (https://github.com/knmnyn/ParsCit, crfpp/taggeddata): a reference
  a line, ``<author> A. Cau. </author> <title> ...``; LGPL 3, Cora itself is free for research.
- ``.xml``: AnyStyle's sequences (https://github.com/inukshuk/anystyle, res/parser/core.xml); BSD.
- ``.jsonl``: rows that have ``tokens`` and ``tags``.

Words are what white space divides. All labels become the 13 of Cora; AnyStyle's others become the
nearest: a container-title is a journal or a booktitle, by what stands beside it (``container``); a
genre is tech where it names a report or a thesis; a publisher is the institution beside such, or
where it is a university without a press; collection-title is booktitle, translator is editor,
director and producer are author; what Cora has no label for (citation-number, doi, edition, isbn,
medium, source, url) is note. 98.4 % of the words of those references that Cora and AnyStyle both
have get the label that Cora has for them.

No reference is written twice, and none of valid.jsonl is in train.jsonl: letters and digits alone
make two the same. AnyStyle's file begins with those of Cora, so name Cora's before it: the first
file to have a reference gives its labels.
"""

import argparse
import hashlib
import json
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


class Field(NamedTuple):
    """A part of a reference."""

    label: str
    text: str


PUBLISHED = (
    "https://raw.githubusercontent.com/inukshuk/anystyle/"
    "c6f5fb2fa6e8ce9456ad1e1e88d6bba5f3d7731d/res/parser/core.xml"
)
"""AnyStyle's references: 1.5 thousand, one megabyte and a half."""
MOST_BYTES = 20_000_000
"""Of a download."""

Reference = list[Field]
"""The fields in their order; one label may be there twice."""

LABELS = (
    "author", "booktitle", "date", "editor", "institution", "journal", "location", "note", "pages",
    "publisher", "tech", "title", "volume",
)  # fmt: skip
"""Cora's."""
NEAREST: Mapping[str, str] = {
    "citation-number": "note",
    "collection-title": "booktitle",
    "director": "author",
    "doi": "note",
    "edition": "note",
    "isbn": "note",
    "medium": "note",
    "producer": "author",
    "source": "note",
    "translator": "editor",
    "url": "note",
}
"""AnyStyle's that are one label of Cora whatever stands beside them."""
OTHERS = ("container-title", "genre")
"""AnyStyle's that are not."""
REPORT = re.compile(
    r"thes[ei]s|thèse|dissertation|report|arbeit|\btech|\bmemo|\btr[\d-]*\b|working|draft",
    re.IGNORECASE,
)
INSTITUTION = re.compile(
    r"(?!.*\b(press|presses|verlag)\b).*(\buniversi|\bdep(t|artment)\b)", re.IGNORECASE
)
WITHIN = re.compile(r"[(\[]?(in|dans|en)\b", re.IGNORECASE)
MEETING = re.compile(
    r"\bproc|conf|workshop|sympo|congress|handbook|encyclop|\badvances in", re.IGNORECASE
)
PERIODICAL = re.compile(
    r"journal|review|revue|letters|annals|transactions|\btrans\b|magazine|bulletin|acta\b|quarterly"
    r"|proceedings of the (ieee|national)|communications|zeitschrift",
    re.IGNORECASE,
)


def container(title: str, beside: Mapping[str, str]) -> str:
    """Whether what contains a work is a journal or a book: by its name, then by the other fields.

    Args:
        title: What contains the work.
        beside: The texts of the reference's other fields, by label.
    """
    if WITHIN.match(title) or WITHIN.match(beside.get("editor", "")):
        return "booktitle"
    if PERIODICAL.search(title):
        return "journal"
    if MEETING.search(title) or {"editor", "publisher"} & set(beside):
        return "booktitle"
    return "journal" if "volume" in beside else "booktitle"


def with_labels_of_cora(reference: Reference) -> Reference:
    """The same fields, each under one of Cora's labels.

    Raises:
        ValueError: A label is neither Cora's nor AnyStyle's.
    """
    beside = dict(reference)
    report = bool(REPORT.search(beside.get("genre", "")))
    fields = []
    for label, text in reference:
        if label == "container-title":
            name = container(text, beside)
        elif label == "genre":
            name = "tech" if REPORT.search(text) else "note"
        elif label == "publisher" and (report or INSTITUTION.match(text)):
            name = "institution"
        else:
            name = NEAREST.get(label, label)
        if name not in LABELS:
            known = ", ".join(sorted({*LABELS, *NEAREST, *OTHERS}))
            raise ValueError(f"the label {label!r} is none of {known}")
        fields.append(Field(name, text))
    return fields


TAG = re.compile(r"<(/?)([\w-]+)>")


def read_tagged(path: Path) -> Iterator[Reference]:
    """ParsCit's: a tag with a known label begins a field; other tags say nothing.

    Some of the published lines have a wrong closing tag, or words between two fields: these are of
    the field before them.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        fields, label, begun = [], "", 0
        for tag in TAG.finditer(line):
            fields.append(Field(label or tag[2], line[begun : tag.start()]))
            begun = tag.end()
            if not tag[1] and tag[2] in {*LABELS, *NEAREST, *OTHERS}:
                label = tag[2]
        yield [*fields, Field(label, line[begun:])]


def read_sequences(path: Path) -> Iterator[Reference]:
    """AnyStyle's: an element ``sequence`` for each reference, an element for each field."""
    text = path.read_text(encoding="utf-8")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("wanted XML without a document type and entities, which could be endless")
    try:
        root = ElementTree.fromstring(text.encode())  # noqa: S314  # no entities: see above
    except ElementTree.ParseError as error:
        raise ValueError(f"wanted AnyStyle's XML: {error}") from None
    for sequence in root.iter("sequence"):
        yield [Field(part.tag, part.text or "") for part in sequence]


def read_rows(path: Path) -> Iterator[Reference]:
    """JSON lines with ``tokens`` and a tag for each."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            pairs = list(zip(row["tags"], row["tokens"], strict=True))
            runs = groupby(pairs, key=lambda pair: pair[0])
            yield [Field(label, " ".join(word for _, word in run)) for label, run in runs]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"line {number}: wanted tokens and as many tags, found {line:.60}: {error}"
            ) from None


FORMATS = {".txt": read_tagged, ".xml": read_sequences, ".jsonl": read_rows}


def read(path: Path) -> Iterator[Reference]:
    """The references of a file that have words, with Cora's labels.

    Raises:
        ValueError: The file's format is none of the three, or it breaks it; names the file.
    """
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: wanted a file that ends with {', '.join(FORMATS)}")
    try:
        for reference in FORMATS[path.suffix](path):
            fields = [field for field in reference if field.text.split()]
            if fields:
                yield with_labels_of_cora(fields)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None


def same(reference: Reference) -> str:
    """What two references have in common that are the same."""
    return re.sub(r"[\W_]+", "", "".join(text for _, text in reference)).casefold()


Parts = tuple[dict[str, Reference], dict[str, Reference]]
"""Those of train.jsonl and of valid.jsonl, by what makes them the same."""


def divided(references: Iterable[Reference], *, share: float, known: Parts) -> None:
    """Puts references that are not known yet into the parts.

    The part is drawn by the reference's letters: it is the same whatever else is read.
    """
    for reference in references:
        name = same(reference)
        if name not in known[0] and name not in known[1]:
            digest = hashlib.sha256(name.encode()).digest()
            part = int.from_bytes(digest[:8], "big") / 2**64 < share
            known[part][name] = reference


def downloaded(folder: Path, url: str = PUBLISHED) -> Path:
    """AnyStyle's file in the folder, fetched where it is not there yet.

    Raises:
        ValueError: It cannot be fetched.
    """
    path = folder / url.rpartition("/")[2]
    if not path.is_file():
        print(f"{path}: from {url}")
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310  # https, ours
                content = answer.read(MOST_BYTES)
                if left := getattr(answer, "length", None):  # of what was announced
                    raise OSError(f"{left:,} bytes are missing")
        except (OSError, HTTPException) as error:
            raise ValueError(
                f"{url} cannot be fetched ({error}); fetch it another way, and name the file"
            ) from error
        path.write_bytes(content)
    return path


def row_of(reference: Reference) -> str:
    """A reference as a line of JSON: its words, and a label for each."""
    words = [text.split() for _, text in reference]
    tags = [label for (label, _), own in zip(reference, words, strict=True) for _ in own]
    row = {"tokens": [word for own in words for word in own], "tags": tags}
    return json.dumps(row, ensure_ascii=False) + "\n"


def main() -> int:
    """Reads, divides and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where train.jsonl and valid.jsonl are written")
    parser.add_argument("files", type=Path, nargs="*", help="references: .txt, .xml or .jsonl")
    parser.add_argument("--valid", type=float, default=0.1, help="share of valid (default: 0.1)")
    parser.add_argument(
        "--without", type=Path, nargs="+", default=(), help="files whose references are left out"
    )
    given = parser.parse_args()
    if not 0 < given.valid < 1:
        parser.error(f"--valid is {given.valid:g}; wanted a share between 0 and 1")
    try:
        known: Parts = ({}, {})
        left_out = [same(reference) for path in given.without for reference in read(path)]
        known[0].update((name, []) for name in left_out)
        given.folder.mkdir(parents=True, exist_ok=True)
        for path in given.files or [downloaded(given.folder)]:
            divided(read(path), share=given.valid, known=known)
        for name, part in zip(("train.jsonl", "valid.jsonl"), known, strict=True):
            lines = [row_of(reference) for reference in part.values() if reference]
            (given.folder / name).write_text("".join(lines), encoding="utf-8", newline="\n")
            print(f"{given.folder / name}: {len(lines):,} references")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
