"""Sections of a document by their headings: references, abstract and body."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from textmill.pipelines.documents.document import Document, Line, Parts, Passage, joined_passages
from textmill.pipelines.documents.line_ends import Vocabulary, join_lines, vocabulary_of
from textmill.pipelines.documents.references import (
    FORMS,
    column_edges,
    labelled_starts,
    unlabelled_starts,
)

REFERENCES = frozenset(
    re.sub(r"\s", "", name)
    for name in """
    references / main references / selected references / key references / additional references
    supplementary references / reference list / list of references / references and notes
    notes and references
    references cited / cited references / literature cited / literature / works cited / bibliography
    selected bibliography / references and further reading / cited literature / citations / sources
    literaturverzeichnis / literatur / quellenverzeichnis / quellen / literaturangaben / referenzen
    références / références bibliographiques / bibliographie / ouvrages cités
    referencias / referencias bibliográficas / bibliografía / obras citadas
    riferimenti / riferimenti bibliografici / bibliografia
    referências / referências bibliográficas / literatuur / literatuurlijst / referenties
    referenser / källor / litteratur / referencer / litteraturliste / referanser / kilder
    lähteet / kirjallisuus / literatura / piśmiennictwo / spis literatury / seznam literatury
    irodalomjegyzék / kaynaklar / kaynakça / литература / список литературы / список літератури
    βιβλιογραφία / 参考文献 / 參考文獻 / 引用文献 / 참고문헌 / المراجع / daftar pustaka
    tài liệu tham khảo
    """.casefold()
    .replace("\n", "/")
    .split("/")
    if name.strip()
)
"""What the section of the references is called, white taken out."""
AFTER = re.compile(
    r"appendi(?:x|ces)\b.*|annex(?:es)?\b.*|anhang\b.*|annexe?s?\b.*|supplement(?:ary|al)?\b.*"
    r"|support(?:ing|ive) information\b.*|acknowledg\w*|danksagung|remerciements"
    r"|authors?['’]? (?:biograph|contribution|information|detail)\w*|about the authors?"
    r"|biograph(?:y|ies)|author index|subject index|index|glossary|funding|financial support"
    r"|conflicts? of interests?|competing interests?|declarations?|(?:data|code) availability.*"
    r"|ethic\w* statement|list of (?:figures|tables)|figure (?:captions|legends)|figures|tables"
    r"|publisher['’]s note|additional information|.{0,20}checklist|notes|endnotes|curriculum vitae"
)
"""What a section after the references is called."""
NUMBERED = re.compile(
    r"\A(?:§\s*|section |chapter )?(?:\d{1,2}(?:\.\d{1,2})*|[ivxl]{1,6}|[a-z])[.):]?\s+"
)
LONGEST = 80
"""Characters of a heading."""
SAME_SIZE = 0.3
"""Points: by how much the sizes of headings of one level differ."""


def heading_key(text: str) -> str:
    """What a heading says: no number before it, no sign after it, small letters."""
    text = text.casefold().strip(" .:—–-")
    return NUMBERED.sub("", text, count=1) if not _is_name(text) else text


def _is_name(text: str) -> bool:
    return re.sub(r"\s", "", text) in REFERENCES


def is_reference_heading(line: Line) -> bool:
    """Whether a line is the heading of a list of references, in letters however spaced.

    A word in small letters with a full stop ends a paragraph.
    """
    ends_paragraph = line.text[:1].islower() and line.text.endswith(".")
    return len(line.text) <= LONGEST and not ends_paragraph and _is_name(heading_key(line.text))


def dominant_size(lines: Sequence[Line]) -> float:
    """The size of most characters; 0 of no lines."""
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


MOST_LINES = 50_000
"""Of a list of references: 1,000 pages of them."""
MOST_LISTS = 10
"""Beginnings of a list without a heading that are looked at, from the last."""
LONGEST_REFERENCE = 6
"""Lines of a labelled one, on average, by which a list without a heading is one of references."""
LOOKED_AT = 40
"""Lines below a heading by which it is one of references."""
FIRST = 3
"""Lines of a list that say what size it has: not more, as another text may stand beside it."""
OTHER_SIZE = 0.75
"""Points: what is larger or smaller by more than that is no reference: a footnote, a caption."""
YEAR = re.compile(r"\b(?:1[6-9]|20)\d\d[a-z]?\b")
CAPTION = re.compile(
    r"(?:fig(?:ure|\.)|table|algorithm|scheme|plate|chart) ?\d+\s?[.:|—–]", re.IGNORECASE
)
GAP = 1.2
"""Of the usual distance of lines: what is farther below is set apart."""
LONGEST_FOOTNOTE = 8
"""Lines of the footnotes below a column."""
WIDER = 1.5
"""Of the usual distance of lines: a gap that ends a caption, an abstract or a paragraph."""
ABSTRACT = {
    "abstract", "summary", "zusammenfassung", "résumé", "resumen", "sommario", "riassunto",
    "resumo", "samenvatting", "sammanfattning", "synopsis", "摘要",
}  # fmt: skip
RUN_IN = re.compile(
    r"(?:abstract|summary|zusammenfassung|résumé|resumen)\s*[.:—–-]+\s*(?=\S)", re.IGNORECASE
)
ABSTRACT_ENDS = re.compile(
    r"(?:keywords?|key words|index terms|ccs concepts|categories and subject|general terms|jel\b"
    r"|msc\b|acm reference format|introduction$|einleitung$"
    r"|schlüsselwörter|mots[- ]clés|palabras clave)",
    re.IGNORECASE,
)
INTRODUCTION = {
    "introduction", "einleitung", "introducción", "introduzione", "introdução", "background",
}  # fmt: skip
LEADERS = re.compile(r"(?:\. ?){5}")
"""Dots before a page number, in a table of contents."""
LONGEST_ABSTRACT = 120
"""Lines."""
SHORTEST_ABSTRACT = 200
"""Characters of a paragraph that is the abstract though no heading says so."""


def find_parts(document: Document) -> Parts:
    """References, abstract and body of a document."""
    lines = [line for line in document.lines if line.text.strip()]  # blank ones of a text are gaps
    vocabulary = vocabulary_of(lines)
    sections = _reference_sections(lines)
    abstract = _abstract(lines)
    references = [
        passage
        for start, stop in sections
        for passage in _split(lines[start + 1 : stop], vocabulary)
    ]
    return Parts(
        references,
        None if abstract is None else _abstract_passage(lines[slice(*abstract)], vocabulary),
        _body(lines, sections, abstract, vocabulary),
    )


def _parts(document: Document) -> Parts:
    return document.parts or find_parts(document)


def find_references(document: Document) -> list[Passage]:
    """The references of a document in their order, each a passage; those of a text, its lines.

    They are the sections that a heading says are references. Each is split by its labels, else by
    indents, gaps and what lines say. A label, as ``[12]``, is not in the text but beside it.
    """
    return list(_parts(document).references)


def _reference_sections(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Each list of references: its heading, and the line after its last."""
    found = list[tuple[int, int]]()
    headings = [n for n, line in enumerate(lines) if is_reference_heading(line)]
    for place, heading in enumerate(headings):
        limit = headings[place + 1] if place + 1 < len(headings) else len(lines)
        stop = _section_end(lines, heading, min(limit, heading + MOST_LINES))
        if _are_references(lines[heading + 1 : stop]):
            found.append((heading, stop))
    return found or _labelled_at_the_end(lines)


def _section_end(lines: Sequence[Line], heading: int, limit: int) -> int:
    """The line at which another section begins, by its name or because it is set as the heading."""
    first, below = lines[heading], lines[heading + 1 : heading + 1 + LOOKED_AT]
    size, bold = dominant_size(below), Counter(line.bold for line in below).most_common(1)
    stands_out = first.size > size + SAME_SIZE or (first.bold and not (bold and bold[0][0]))
    for n in range(heading + 1, limit):
        line = lines[n]
        if len(line.text) > LONGEST:
            continue
        is_same = line.bold == first.bold and abs(line.size - first.size) <= SAME_SIZE
        if AFTER.fullmatch(heading_key(line.text)) and line.size >= size - SAME_SIZE:
            ends = is_same or not stands_out or line.bold or line.size > size
        else:
            ends = stands_out and is_same
        if ends:
            return n
    return limit


def _are_references(lines: Sequence[Line]) -> bool:
    """Whether lines have labels or years as often as references have."""
    first = lines[:LOOKED_AT]
    if not first:
        return False
    years = sum(bool(YEAR.search(line.text)) for line in first)
    labels = sum(bool(FORMS["bracket"].match(line.text)) for line in first)
    return max(years, labels) >= max(1, len(first) / 8)


def _labelled_at_the_end(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """References without a heading: from the last ``[1]`` that other labelled lines follow."""
    first = [n for n, line in enumerate(lines) if re.match(r"\[ ?1 ?\]\s", line.text)]
    for n in first[: -MOST_LISTS - 1 : -1]:
        rest = lines[n : n + MOST_LINES]
        labelled = labelled_starts(rest, column_edges(rest))
        if len(labelled) >= 3 and (
            _are_references(rest) or len(rest) <= LONGEST_REFERENCE * len(labelled)
        ):
            return [(n - 1, len(lines))]
    return []


def _split(lines: Sequence[Line], vocabulary: Vocabulary) -> Iterator[Passage]:
    lines = list(_of_references(lines))
    lines = lines[: _list_end(lines)]
    if not lines:
        return
    edges = column_edges(lines)
    starts: Sequence[tuple[int, str | None, int]] = labelled_starts(lines, edges)
    starts = starts or [(n, None, 0) for n in unlabelled_starts(lines, edges)]
    stops = [*(n for n, _, _ in starts[1:]), len(lines)]
    for (start, label, offset), stop in zip(starts, stops, strict=True):
        own = lines[start:stop] if stop < len(lines) else _until_gap(lines, start)
        passage = join_lines(own, vocabulary, label=label)
        text = passage.text[offset:]
        pages = tuple((max(at - offset, 0), page) for at, page in passage.starts)
        if text:
            yield Passage(text, label=label, starts=pages)


def _of_references(lines: Sequence[Line]) -> Iterator[Line]:
    """Lines of a list, without footnotes, and captions and figures that float in it.

    A line of another size is of the list where it goes on from one above, as an address does.
    """
    size = dominant_size(lines[:FIRST])
    usual = _usual_step(lines)
    footnotes = set[int]() if lines and lines[0].raised else _footnotes(lines, usual)
    caption = kept = False
    before: Line | None = None
    for n, line in enumerate(lines):
        if n in footnotes:
            continue
        step = line.y - before.y if before is not None and before.where == line.where else 0.0
        caption = caption and 0 < step <= WIDER * usual
        if abs(line.size - size) <= OTHER_SIZE:
            caption = caption or bool(CAPTION.match(line.text))
            kept = not caption
        else:
            kept = kept and 0 < step <= GAP * usual and not CAPTION.match(line.text)
        if kept:
            yield line
        before = line


def _list_end(lines: Sequence[Line]) -> int:
    """Where a list ends that white follows, and then no more references."""
    most, bottom = 2.5 * _usual_step(lines), max((line.y for line in lines), default=0.0)
    for n in range(1, len(lines)):
        before, line = lines[n - 1], lines[n]
        white = (line.y if before.where == line.where else bottom) - before.y
        if white > most > 0 and not _are_references(lines[n : n + LOOKED_AT]):
            return n
    return len(lines)


def _footnotes(lines: Sequence[Line], usual: float) -> set[int]:
    """Lines below a gap that begin with a raised mark and end their column."""
    found, last = set[int](), len(lines)
    for n in range(len(lines) - 1, 0, -1):
        before, line = lines[n - 1], lines[n]
        if line.where != before.where:
            last = n
        elif line.raised and line.y - before.y > GAP * usual > 0 and last - n <= LONGEST_FOOTNOTE:
            found.update(range(n, last))
            last = n
    return found


def _usual_step(lines: Sequence[Line]) -> float:
    steps = Counter(round(b.y - a.y, 1) for a, b in pairwise(lines) if b.y > a.y)
    return steps.most_common(1)[0][0] if steps else 0.0


def _until_gap(lines: Sequence[Line], start: int) -> Sequence[Line]:
    """The lines of the last reference, up to a wide gap."""
    most = 2.5 * _usual_step(lines)
    for stop in range(start + 1, len(lines)):
        before, line = lines[stop - 1], lines[stop]
        if most and before.where == line.where and line.y - before.y > most:
            return lines[start:stop]
    return lines[start:]


def find_abstract(document: Document) -> Passage | None:
    """The abstract, by its heading, else the longest paragraph above the introduction."""
    return _parts(document).abstract


def _abstract_passage(lines: Sequence[Line], vocabulary: Vocabulary) -> Passage:
    """The text of the abstract, without a heading that stands on its first line."""
    passage = join_lines(lines, vocabulary)
    if match := RUN_IN.match(passage.text):
        starts = tuple((max(at - match.end(), 0), page) for at, page in passage.starts)
        return Passage(passage.text[match.end() :], starts=starts)
    return passage


def _abstract(lines: Sequence[Line]) -> tuple[int, int] | None:
    for n, line in enumerate(lines[: 10 * LONGEST_ABSTRACT]):
        is_heading = re.sub(r"\s", "", heading_key(line.text)) in ABSTRACT
        if is_heading or RUN_IN.match(line.text):
            start = n + is_heading
            stop = _abstract_end(lines, start)
            if stop > start and not any(LEADERS.search(line.text) for line in lines[start:stop]):
                return start, stop
    above = next((n for n, line in enumerate(lines) if _introduces(line)), 0)
    paragraphs = _paragraphs(lines[:above])
    sizes = {
        (a, b): sum(len(line.text) for line in lines[a:b])
        for a, b in paragraphs
        if not any(LEADERS.search(line.text) for line in lines[a:b])
    }
    longest = max(sizes, key=lambda each: sizes[each], default=None)
    return longest if longest and sizes[longest] >= SHORTEST_ABSTRACT else None


def _introduces(line: Line) -> bool:
    return heading_key(line.text) in INTRODUCTION


def _abstract_end(lines: Sequence[Line], start: int) -> int:
    usual = _usual_step(lines[start : start + LOOKED_AT])
    last = min(len(lines), start + LONGEST_ABSTRACT)
    for n in range(start + 1, last):
        line, before = lines[n], lines[n - 1]
        far = usual and line.y - before.y > WIDER * usual and line.page == before.page
        next_column = line.column != before.column and before.text.endswith(".")
        if far or next_column or ABSTRACT_ENDS.match(heading_key(line.text)):
            return n
    return last


def _paragraphs(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """First line of each paragraph, and the line after its last: by gaps, indents, short ends."""
    if not lines:
        return
    usual, start = _usual_step(lines), 0
    for n in range(1, len(lines)):
        before, line = lines[n - 1], lines[n]
        is_same = before.where == line.where
        far = is_same and bool(usual) and not 0 <= line.y - before.y <= WIDER * usual
        far = far or _introduces(before)
        other = abs(line.size - before.size) > OTHER_SIZE or line.bold != before.bold
        first = (line.second - line.x0) or (line.x1 - line.x0)
        room = before.right - before.x1 > first + 0.5 * before.size
        ended = room and before.text.endswith((".", "?", "!"))
        indented = is_same and line.x0 - before.x0 > 0.5 * line.size
        if far or other or ended or indented:
            yield start, n
            start = n
    yield start, len(lines)


def find_body(document: Document) -> Passage:
    """The body: from the introduction, else from below the abstract, to the references.

    Headings, captions and what is set smaller or larger than the body are left out; between
    paragraphs is an empty line. A document without any of that is its own body.
    """
    return _parts(document).body


def _body(
    lines: Sequence[Line],
    sections: Sequence[tuple[int, int]],
    abstract: tuple[int, int] | None,
    vocabulary: Vocabulary,
) -> Passage:
    begin = next((n for n, line in enumerate(lines) if _introduces(line)), None)
    if begin is None:
        begin = abstract[1] if abstract else 0
    end = next((start for start, _ in sections if start > begin), len(lines))
    size = dominant_size(lines[begin:end])
    paragraphs = (lines[begin + a : begin + b] for a, b in _paragraphs(lines[begin:end]))
    return joined_passages(
        join_lines(own, vocabulary) for own in paragraphs if _is_of_body(own, size)
    )


def _is_of_body(lines: Sequence[Line], size: float) -> bool:
    first = lines[0]
    if abs(dominant_size(lines) - size) > OTHER_SIZE or CAPTION.match(first.text):
        return False
    if _introduces(first) or is_reference_heading(first):
        return False
    is_title = len(lines) <= 2 and first.bold and not lines[-1].text.endswith(".")
    return not is_title
